# A row without a slug and a name belongs to the product above. Facets are
# written facet:value; those of categories go from the wide to the narrow.
def bars($columns): get($columns) // "" | split("|") | map(trim | if . == "" then null else . end);
def facet($name):
  list("facets"; "|")
  | map([splits(":")] | select(length > 1 and (.[0] | trim | ascii_downcase) == $name) | .[1:] | join(":") | trim);

.[0] as $first
| ($first | required("slug|name")) as $key
| ($first | facet("category") | join(" > ") | [path | select(. != "")]) as $categories
| ($first | facet("brand") | join(", ") | if . == "" then null else . end) as $brand
| ($first | bars("optionGroups")) as $names
| ([.[] | list("assets"; "|")[]] | distinct) as $images
| each(
    . as $row
    | bars("optionValues") as $values
    | select($row == $first or ($values | any(. != null)) or get("price|sku"))
    | variant("vendure/"; $key; $first | get("name"); options($names; $values); list("variantAssets"; "|"); $images)
    | .categories = $categories
    | .record |= (branded($brand) | categorized($categories))
    | .record += ($row | {
        description: ($first | get("description")),
        unit: "PIECE",
        isActive: ($first | is("enabled"; "false") | not),
        tags: ($first | list("facets"; "|")),
        sku: code("sku"),
        sellingPrice: amount("price"),
        trackInventory: flag("trackInventory")
      })
    | .record.attributes += ($row | others($first)) + ($row | {
        handle: ($first | get("slug")),
        taxCategory: get("taxCategory"),
        variantFacets: get("variantFacets")
      })
    | stocked($row | amount("stockOnHand"))
  )
