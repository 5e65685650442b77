# Consecutive rows with one handle are of one product. A row without an option,
# a price and a SKU adds an image only.
.[0] as $first
| ([.[] | get("Image Src|Product image URL")] | distinct) as $images
| ($first | series("Option%d Name")) as $names
| ($first | {
    description: get("Body (HTML)|Description"),
    type: (if flag("Gift Card") then "GIFT_CARD"
      elif is("Variant Requires Shipping|Requires shipping"; "false") then "DIGITAL" else "PHYSICAL" end),
    unit: "PIECE",
    isActive: (is("Published|Published on online store"; "false") | not) and (get("Status") == null or is("Status"; "active")),
    tags: list("Tags"; ",")
  }) as $shared
| ($first | get("Vendor")) as $brand
| ($first | [get("Product Category|Standardized Product Type|Standard Product Type|Type|Custom Product Type") // ""
    | path | select(. != "")]) as $categories
| each(
    . as $row
    | series("Option%d Value") as $values
    | select($row == $first or ($values | any(. != null)) or get("Variant Price|Price|Variant SKU|SKU"))
    | ($first | required("Handle|URL handle")) as $handle
    | variant("shopify/"; $handle; $first | get("Title"); options($names; $values); [get("Variant Image|Variant image URL")]; $images)
    | .categories = $categories
    | .record |= (. + $shared | branded($brand) | categorized($categories))
    | .record += ($row | {
        sku: code("Variant SKU|SKU"),
        barcode: code("Variant Barcode|Barcode"),
        sellingPrice: amount("Variant Price|Price"),
        purchasePrice: amount("Cost per item"),
        trackInventory: (get("Variant Inventory Tracker|Inventory tracker") != null)
      })
    | .record.attributes += ($row | {
        handle: $handle,
        productType: ($first | get("Type|Custom Product Type")),
        compareAtPrice: get("Variant Compare At Price|Compare-at price"),
        grams: get("Variant Grams|Weight value (grams)"),
        weightUnit: get("Variant Weight Unit|Weight unit for display"),
        inventoryQuantity: get("Variant Inventory Qty|Inventory quantity"),
        taxCode: get("Variant Tax Code|Tax code")
      })
  )
