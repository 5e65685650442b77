# What all formats have in common. A row is a number; get, amount, time, series
# and fail take one, and columns with bars between them: the first with a cell
# that is not empty counts; others gives the cells of the columns that the texts
# of a program do not name. These functions, and id, part, calculate, lower and so
# on, are in mapper.go. Members that are null are left out of records.

def is($columns; $word): get($columns) | . != null and ascii_downcase == $word;

# The value of a word in small letters, or another one.
def word($columns; $words; $otherwise):
  (get($columns) // "" | ascii_downcase) as $word
  | if $words | has($word) then $words[$word] else $otherwise end;

def required($columns): get($columns) // fail($columns; "is required");

# An apostrophe keeps a spreadsheet from changing digits.
def code($columns):
  get($columns) | if . == null then . else ltrimstr("'") | if . == "" then null else . end end;

def flag($columns): get($columns) | if . == null then . else ascii_downcase | IN("true", "yes", "1") end;

def divided($separator): [split($separator)[] | trim | select(. != "")] | distinct;

def list($columns; $separator): get($columns) // "" | divided($separator);

def path: split(">") | map(trim | select(. != "")) | join(" > ");

def prefixed($prefix; $columns): $columns | split("|") | map($prefix + .) | join("|");

# A brand has its name as the vendor, and an id that files of several systems
# agree on; so have categories. The first category is the main one.
def branded($name): if $name == null then . else .brandId = id("brand/" + $name) | .attributes.vendor = $name end;

def categorized($paths):
  if $paths == [] then . else .categoryId = id("category/" + $paths[0]) end
  | if $paths | length > 1 then .attributes.categories = $paths else . end;

# A product and, where the quantity is known, its row of stock.
def stocked($quantity):
  ., if $quantity == null then empty else {kind: "stock", row, record: {productId: .record.id, onHand: $quantity}} end;

# Rows that are refused cost only themselves.
def each(f): .[] | try f catch (if type == "object" then {rejected: .} else error end);

# A first and a last name. The last begins at the first particle (de, van, da),
# else it is the last word: Isabel / de Castro, José Pedro / Freyre.
def names($columns):
  (get($columns) // "" | [splits("\\s+") | select(. != "")]) as $words
  | ($words | length - 1) as $last
  | (first(range(1; $last + 1) | select($words[.] == ($words[.] | lower))) // $last) as $cut
  | if $last < 1 then [$words[0], null] else [($words[:$cut] | join(" ")), ($words[$cut:] | join(" "))] end;

# A cell of the columns whose names begin so, and the unit in brackets: Weight (kg).
def measured($prefix):
  . as $row
  | first(columns[] | select(startswith($prefix + "(")) | {unit: .[($prefix | length) + 1:-1], value: (. as $column | $row | get($column))}
      | select(.value)) // null;

def options($names; $values):
  [$names, $values] | transpose
  | map(select(.[0] != null and .[1] != null and . != ["Title", "Default Title"]));

# One product of each variant. The options are pairs of name and value: by them
# and the key it is identified, so that neither a new order of the rows, a
# renamed title nor a changed price makes it another. Its own images come first.
def variant($prefix; $key; $title; $options; $own; $images):
  {row: .,
   record: {
     id: id(([$prefix + $key] + ($options | map(.[1]))) | join("\u001f")),
     name: ([$title] + ($options | map(.[1])) | join(" - ")),
     images: (($own | distinct) + ($images - $own)),
     attributes: ($options | map(select(.[0] != "") | {key: .[0], value: .[1]}) | from_entries
       | if . == {} then {} else {options: .} end)
   }};
