# A row is of a variant and, where there is a column Location, of a location; older
# exports have a column for each location behind COO instead.
.[0]
| . as $row
| required("Handle") as $handle
| variant("shopify/"; $handle; ""; options(series("Option%d Name"); series("Option%d Value")); []; []).record.id as $product
| [columns[]] as $all
| (if $all | index("Location") then
      {location: get("Location"), column: "On hand (new)|On hand (current)|On hand|Available"}
    else $all[($all | index("COO")) + 1:][] | {location: ., column: .} end) as $at
| select(is($at.column; "not stocked") | not)
| {row: $row, record: {
    productId: $product,
    locationRef: $at.location,
    onHand: (amount($at.column) // fail($at.column; "is required")),
    reserved: amount("Committed (not editable)|Committed")
  }}
