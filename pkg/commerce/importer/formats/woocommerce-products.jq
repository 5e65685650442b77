# A product has one row, or one and a row for each variation.
.[0] as $product
| .[-1] as $row
| ($product | list("Type"; ",") | map(ascii_downcase)) as $kinds
| ($product | get("Categories") // "" | gsub("\\\\,"; "\u0000") | divided(",")
    | map(path | gsub("\u0000"; ",")) | map(select(. != ""))) as $categories
| ($product | series("Attribute %d name")) as $names
| def own_or_product(f): $row | f // ($product | f);
[$row] | each(
    (get("Sale price") != null and get("Date sale price starts") == null) as $sale
    | required("ID|SKU") as $id
    | (get("Name") // ($product | get("Name"))) as $name
    | variant(""; ""; ""; options($names; series("Attribute %d value(s)")); list("Images"; ","); $product | list("Images"; ","))
    | .categories = $categories
    | .externalRef = ($row | code("ID"))
    | .record |= (branded($product | list("Brands"; ",")[0]) | categorized($categories))
    | .record += ($row | {
        id: id("woocommerce/" + $id),
        name: $name,
        description: (get("Description|Short description") // ($product | get("Description|Short description"))),
        type: (if $kinds | any(. == "grouped") then "BUNDLE"
          elif $kinds | any(IN("virtual", "downloadable")) then "DIGITAL" else "PHYSICAL" end),
        unit: "PIECE",
        isActive: (flag("Published") | if . == null then ($product | flag("Published") // false) else . end),
        tags: ($product | list("Tags"; ",")),
        sku: code("SKU"),
        barcode: code("GTIN, UPC, EAN, or ISBN"),
        purchasePrice: amount("Cost of goods"),
        sellingPrice: amount(if $sale then "Sale price" else "Regular price" end),
        trackInventory: (get("Stock") != null),
        reorderPoint: amount("Low stock amount")
      })
    | own_or_product(measured("Weight ")) as $weight
    | [("Length ", "Width ", "Height ") as $side | own_or_product(measured($side))] as $sides
    | .record.attributes += ($row | others($product)) + ($row | {
        slug: ($product | get("Slug")),
        shortDescription: ($product | get("Short description")),
        compareAtPrice: (if $sale then get("Regular price") else null end),
        inStock: get("In stock?"),
        parent: get("Parent"),
        productType: ($product | get("Type")),
        published: get("Published"),
        brands: ($product | list("Brands"; ",") | if length > 1 then . else null end),
        salePrice: (if $sale then null else get("Sale price") end),
        salePriceStarts: get("Date sale price starts"),
        salePriceEnds: get("Date sale price ends"),
        seoTitle: ($product | get("Meta: _yoast_wpseo_title|Meta: rank_math_title|Meta: _aioseo_title")),
        seoDescription: ($product | get("Meta: _yoast_wpseo_metadesc|Meta: rank_math_description|Meta: _aioseo_description")),
        inventoryPolicy: (if is("Backorders allowed?"; "1") then "continue"
          elif is("Backorders allowed?"; "0") then "deny" else get("Backorders allowed?") end),
        weight: $weight.value,
        weightUnit: $weight.unit,
        length: $sides[0].value,
        width: $sides[1].value,
        height: $sides[2].value,
        dimensionUnit: ([$sides[].unit | select(.)][0]),
        taxStatus: get("Tax status"),
        taxClass: get("Tax class"),
        externalUrl: get("External URL"),
        groupedProducts: get("Grouped products")
      })
    | stocked($row | amount("Stock"))
  )
