# Consecutive rows with one handle are of one product. A row without an option,
# a price and a SKU adds an image only.
.[0] as $first
| ([.[] | {url: get("Image Src|Product image URL"), text: get("Image Alt Text"), position: (get("Image Position") // "0" | try tonumber catch 0)} | select(.url)]
    | sort_by(.position)) as $pictures
| ($pictures | map(.url) | distinct) as $images
| ($pictures | reverse | map({key: .url, value: (.text // "")}) | from_entries) as $texts
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
    | .record.images as $shown
    | .record.attributes += ($row | others($first)) + ($row | {
        handle: $handle,
        imageAltTexts: (if any($texts[]; . != "") then $shown | map($texts[.] // "") else null end),
        productType: ($first | get("Type|Custom Product Type")),
        status: ($first | get("Status")),
        published: ($first | get("Published|Published on online store")),
        seoTitle: ($first | get("SEO Title")),
        seoDescription: ($first | get("SEO Description")),
        compareAtPrice: get("Variant Compare At Price|Compare-at price"),
        grams: get("Variant Grams|Weight value (grams)"),
        weightUnit: get("Variant Weight Unit|Weight unit for display"),
        inventoryTracker: get("Variant Inventory Tracker|Inventory tracker"),
        inventoryPolicy: (get("Variant Inventory Policy")
          // if get("Continue selling when out of stock") == null then null
            elif flag("Continue selling when out of stock") then "continue" else "deny" end),
        fulfillmentService: get("Variant Fulfillment Service|Fulfillment service"),
        requiresShipping: get("Variant Requires Shipping|Requires shipping"),
        taxStatus: (flag("Variant Taxable|Charge tax") | if . == null then . elif . then "taxable" else "none" end),
        taxCode: get("Variant Tax Code|Tax code")
      })
    | stocked($row | amount("Variant Inventory Qty|Inventory quantity"))
  )
