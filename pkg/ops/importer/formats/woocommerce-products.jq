# A product has one row, or one and a row for each variation.
.[0] as $product
| .[-1] as $row
| ($product | list("Type"; ",") | map(ascii_downcase)) as $kinds
| ($product | get("Categories") // "" | gsub("\\\\,"; "\u0000") | divided(",")
    | map(path | gsub("\u0000"; ",")) | map(select(. != ""))) as $categories
| ($product | series("Attribute %d name")) as $names
| [$row] | each(
    (get("Sale price") != null and get("Date sale price starts") == null) as $sale
    | required("ID|SKU") as $id
    | (get("Name") // ($product | get("Name"))) as $name
    | variant(""; ""; ""; options($names; series("Attribute %d value(s)")); list("Images"; ","); $product | list("Images"; ","))
    | .categories = $categories
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
        sellingPrice: amount(if $sale then "Sale price" else "Regular price" end),
        trackInventory: (get("Stock") != null),
        reorderPoint: amount("Low stock amount")
      })
    | .record.attributes += ($row | {
        slug: ($product | get("Slug")),
        shortDescription: ($product | get("Short description")),
        compareAtPrice: (if $sale then get("Regular price") else null end),
        inventoryQuantity: get("Stock"),
        inStock: get("In stock?"),
        parent: get("Parent"),
        taxClass: get("Tax class"),
        externalUrl: get("External URL"),
        groupedProducts: get("Grouped products")
      })
  )
