# CSV in the service's own shapes, or by a mapping. A column is a field, or a
# path into one: billingAddress.city, items[0].sku, attributes.colour. An empty
# cell leaves the field out.
# Numbers, and true and false, are taken where the record has them, so that a sku
# of 00123 stays text.
def read($row; $field):
  def refuse($message): $row | fail($field.column; $message);
  def parsed: try fromjson catch ($row | fail($field.column; "must be valid JSON"));
  ($row | cell($field.number))
  | if . == null then .
    elif $field.form == "boolean" then
      ascii_downcase | if . == "true" then true elif . == "false" then false else refuse("must be true or false") end
    elif $field.form == "texts" then if startswith("[") then parsed else divided(";") end
    elif $field.form == "list" then
      if startswith("[") then parsed else refuse("must be a JSON array, or have a column for each entry's fields") end
    elif $field.form == "object" then
      if startswith("{") then parsed else refuse("must be a JSON object, or have a column for each of its fields") end
    else . end;

.[0]
| . as $row
| reduce plan.fields[] as $field ({row: $row, record: {}};
    read($row; $field) as $value
    | if $value == null then .
      elif $field.name == "op" or $field.name == "version" or $field.name == "siteIds" then .[$field.name] = $value
      elif $field.form == "reference" then .externalRef = $value
      elif $field.form == "brand" then .record |= branded($value)
      elif $field.form == "category" then
        ($value | path) as $path
        | if $path == "" then . else .categories = [$path] | .record |= categorized([$path]) end
      else
        try (if .record | getpath($field.path) == null then .record |= setpath($field.path; $value) else error end)
        catch ($row | fail($field.column; "overlaps with another column of this row"))
      end)
| if .record == {} then $row | fail(""; "the row is empty") else . end
| if plan.id then
    .record.id = id(plan.prefix + ($row | cell(plan.id.number) // fail(plan.id.column; "is required: the id is derived from it")))
  else . end
# A cell of the row counts, not the constant.
| reduce plan.constants[] as $constant (.;
    . as $before
    | try (if .record | getpath($constant.path) == null then .record |= setpath($constant.path; $constant.json | fromjson) else . end)
      catch $before)
