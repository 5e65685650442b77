# Consecutive rows with one handle are of one product. Prices are those in the
# organization's currency; Medusa 1 begins their columns with Price.
def prices:
  columns[] as $column
  | ("Variant Price |Price " | split("|")[]) as $prefix
  | ($prefix | length) as $n
  | select($column[:$n] | lower == ($prefix | lower))
  | {key: $column[$n:], value: $column};

def price_column:
  [prices | select(.key | length == 3)] as $columns
  | [$columns[].key] as $all
  | if $all == [] then error("it has no column Variant Price EUR, or of another currency")
    elif currency == "" and ($all | length) > 1 then
      error("it has prices in \($all | join(", ")): name the organization's with --currency")
    elif currency != "" and ($all | index([currency]) == null) then
      error("it has no prices in \(currency), only in \($all | join(", "))")
    else first($columns[] | select(currency == "" or .key == currency)).value end;

.[0] as $first
| ($first | price_column) as $price
| ($first | required("Product Handle|Product Id|Product Title")) as $key
| ($first | series("Variant Option %d Name|Option %d Name")) as $names
| ($first | [series("Product Category %d")[] | select(. != null) | path | select(. != "")]) as $categories
| ([.[] | get("Product Thumbnail"), series("Product Image %d|Product Image %d Url|Image %d Url")[]] | distinct) as $images
| each(
    . as $row
    | series("Variant Option %d Value|Option %d Value") as $values
    | select($row == $first or ($values | any(. != null)) or get("Variant Sku") != null or get($price) != null)
    | variant("medusa/"; $key; $first | get("Product Title"); options($names; $values); []; $images)
    | .categories = $categories
    | .externalRef = ($row | get("Variant Id"))
    | .record |= categorized($categories)
    | .record += ($row | {
        description: ($first | get("Product Description")),
        type: (if $first | flag("Product Is Giftcard") then "GIFT_CARD" else "PHYSICAL" end),
        unit: "PIECE",
        isActive: ($first | get("Product Status") == null or is("Product Status"; "published")),
        tags: ($first | series("Product Tag %d") + list("Product Tags"; ",") | distinct),
        sku: code("Variant Sku"),
        barcode: code("Variant Barcode|Variant Ean|Variant Upc"),
        sellingPrice: amount($price),
        trackInventory: flag("Variant Manage Inventory")
      })
    | .record.attributes += ($row | others($first)) + ($first | {
        handle: get("Product Handle"),
        subtitle: get("Product Subtitle"),
        medusaId: get("Product Id"),
        collection: get("Product Collection Id|Product Collection Handle"),
        productType: get("Product Type Id|Product Type"),
        externalId: get("Product External Id")
      })
    | .record.attributes += ($row | {
        variantTitle: get("Variant Title"),
        inventoryPolicy: (flag("Variant Allow Backorder") | if . == null then . elif . then "continue" else "deny" end),
        prices: (. as $row | [prices | .value |= (. as $column | $row | get($column))] | if length > 1 then from_entries else null end),
        weight: get("Variant Weight|Product Weight"),
        length: get("Variant Length|Product Length"),
        width: get("Variant Width|Product Width"),
        height: get("Variant Height|Product Height"),
        hsCode: get("Variant HS Code|Product HS Code"),
        originCountry: get("Variant Origin Country|Product Origin Country"),
        midCode: get("Variant MID Code|Product MID Code"),
        material: get("Variant Material|Product Material")
      })
    | stocked($row | amount("Variant Inventory Quantity"))
  )
