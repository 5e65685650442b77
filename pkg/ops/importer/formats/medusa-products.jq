# Consecutive rows with one handle are of one product. Prices are those in the
# organization's currency.
def price_column:
  "Variant Price " as $prefix
  | [columns[] | select(length == 17 and (.[:14] | lower) == ($prefix | lower)) | .[14:]] as $all
  | if $all == [] then error("it has no column Variant Price EUR, or of another currency")
    elif currency == "" and ($all | length) > 1 then
      error("it has prices in \($all | join(", ")): name the organization's with --currency")
    elif currency != "" and ($all | index([currency]) == null) then
      error("it has no prices in \(currency), only in \($all | join(", "))")
    elif currency == "" then $prefix + $all[0]
    else $prefix + currency end;

.[0] as $first
| ($first | price_column) as $price
| ($first | required("Product Handle|Product Id|Product Title")) as $key
| ($first | series("Variant Option %d Name")) as $names
| ($first | [series("Product Category %d")[] | select(. != null) | path | select(. != "")]) as $categories
| ([.[] | get("Product Thumbnail"), series("Product Image %d|Product Image %d Url")[]] | distinct) as $images
| each(
    . as $row
    | series("Variant Option %d Value") as $values
    | select($row == $first or ($values | any(. != null)) or get("Variant Sku") != null or get($price) != null)
    | variant("medusa/"; $key; $first | get("Product Title"); options($names; $values); []; $images)
    | .categories = $categories
    | .record |= categorized($categories)
    | .record += ($row | {
        description: ($first | get("Product Description")),
        type: (if $first | flag("Product Is Giftcard") then "GIFT_CARD" else "PHYSICAL" end),
        unit: "PIECE",
        isActive: ($first | get("Product Status") == null or is("Product Status"; "published")),
        tags: ($first | series("Product Tag %d") | map(select(. != null))),
        sku: code("Variant Sku"),
        barcode: code("Variant Barcode|Variant Ean|Variant Upc"),
        sellingPrice: amount($price),
        trackInventory: flag("Variant Manage Inventory")
      })
    | .record.attributes += ($first | {
        handle: get("Product Handle"),
        subtitle: get("Product Subtitle"),
        medusaId: get("Product Id"),
        material: get("Product Material"),
        collection: get("Product Collection Id"),
        productType: get("Product Type Id"),
        externalId: get("Product External Id")
      })
    | .record.attributes += ($row | {
        variantTitle: get("Variant Title"),
        inventoryQuantity: get("Variant Inventory Quantity"),
        weight: get("Variant Weight|Product Weight")
      })
  )
