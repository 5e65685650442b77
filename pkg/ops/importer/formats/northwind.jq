# The five tables of the Northwind sample database, joined. What is referred to
# comes first. An order invents nothing that the database does not record, with
# one exception: there are no payments, and a shipped order counts as completed
# and paid in full, an unshipped one as being processed and unpaid.
def northwind($kind; $key): if $key == null then null else id("northwind/\($kind)/\($key)") end;

def nation($column):
  get($column) | if . == null then . else ({
    "Argentina": "AR", "Austria": "AT", "Belgium": "BE", "Brazil": "BR", "Canada": "CA", "Denmark": "DK",
    "Finland": "FI", "France": "FR", "Germany": "DE", "Ireland": "IE", "Italy": "IT", "Mexico": "MX",
    "Norway": "NO", "Poland": "PL", "Portugal": "PT", "Spain": "ES", "Sweden": "SE", "Switzerland": "CH",
    "UK": "GB", "USA": "US", "Venezuela": "VE"
  }[.]) end;

def country_of($column):
  nation($column) as $code
  | if $code == null and get($column) then fail($column; "\(get($column) | tojson) is not a country of Northwind") else $code end;

def number($column): amount($column) // fail($column; "must be a number");

def sum: reduce .[] as $one (0; calculate(.; "+"; $one));

def category:
  {row: ., kind: "category", record: {
    id: northwind("category"; get("categoryID")), name: get("categoryName"), description: get("description"),
    isActive: true, order: number("categoryID")
  }};

def product:
  {row: ., kind: "product", key: required("productID"), record: {
    id: northwind("product"; get("productID")), name: get("productName"), type: "PHYSICAL",
    categoryId: northwind("category"; get("categoryID")), unit: "PIECE", sellingPrice: amount("unitPrice"),
    isActive: (get("discontinued") == "0"), trackInventory: true, reorderPoint: amount("reorderLevel"),
    attributes: {
      northwindProduct: get("productID"), quantityPerUnit: get("quantityPerUnit"), supplier: get("supplierID"),
      unitsInStock: get("unitsInStock"), unitsOnOrder: get("unitsOnOrder")
    }
  }};

def customer:
  required("customerID") as $code
  | northwind("customer"; $code) as $id
  | part($id; "address") as $home
  | names("contactName") as $names
  | {row: ., kind: "customer", key: $code, record: {
      id: $id, customerNumber: $code, externalRef: $code, type: "BUSINESS",
      firstName: $names[0], lastName: $names[1], companyName: get("companyName"), phone: get("phone"),
      isActive: true, currency: "USD",
      addresses: [{
        id: $home, firstName: $names[0], lastName: $names[1], company: get("companyName"), line1: get("address"),
        city: get("city"), state: get("region"), postalCode: get("postalCode"), country: country_of("country"), phone: get("phone")
      }],
      defaultBillingAddressId: $home, defaultShippingAddressId: $home,
      metadata: {contactTitle: get("contactTitle"), fax: get("fax")}
    }};

def line($products):
  . as $row
  | get("productID") as $product
  | ($products[$product] // fail("productID"; "\($product | tojson) is not in products.csv")) as $of
  | {
      id: part(northwind("order"; get("orderID")); "item/" + $product), productId: $of.id, name: $of.name, unit: "PIECE",
      unitPrice: number("unitPrice"), quantity: number("quantity")
    }
  | calculate(.unitPrice; "*"; .quantity) as $gross
  | .discountAmount = calculate($gross; "*"; $row | fraction("discount"));

def net: calculate(calculate(.unitPrice; "*"; .quantity); "-"; .discountAmount);

def order($customers; $lines; $bad):
  get("orderID") as $number
  | if $bad[$number] then fail("items"; "has a line that cannot be read") else . end
  | ($customers[get("customerID") // ""] // fail("customerID"; "\(get("customerID") | tojson) is not in customers.csv")) as $customer
  | northwind("order"; $number) as $id
  | time("shippedDate") as $shipped
  | time("orderDate") as $placed
  | if $placed then . else fail("orderDate"; "is required") end
  | ($lines[$number] // []) as $items
  | number("freight") as $freight
  | calculate($items | map(net) | sum; "+"; $freight) as $total
  | {row: ., kind: "order", buyer: get("customerID"), total: $total, placed: $placed, record: {
      id: $id, orderNumber: $number, externalRef: $number, source: "IMPORT",
      status: (if $shipped then "COMPLETED" else "PROCESSING" end),
      paymentStatus: (if $shipped then "PAID" else "UNPAID" end),
      fulfillmentStatus: (if $shipped then "SHIPPED" else "UNFULFILLED" end),
      currency: "USD", customerId: $customer.id, customerName: $customer.companyName, billingAddress: $customer.addresses[0],
      shippingAddress: {
        id: part($id; "shippingAddress"), company: get("shipName"), line1: get("shipAddress"), city: get("shipCity"),
        state: get("shipRegion"), postalCode: get("shipPostalCode"), country: country_of("shipCountry")
      },
      items: ($items | map(.fulfilledQuantity = (if $shipped then .quantity else 0 end))),
      shipments: (if $shipped then [{
        id: part($id; "shipment"),
        carrier: word("shipVia"; {"1": "Speedy Express", "2": "United Package", "3": "Federal Shipping"}; null),
        items: ($items | map({itemId: .id, quantity})), shippedAt: $shipped
      }] else null end),
      shippingTotal: $freight, paidTotal: (if $shipped then $total else 0 end),
      metadata: {
        employee: get("employeeID"), shipVia: get("shipVia"),
        requiredDate: (get("requiredDate") | if . then split(" ")[0] else null end)
      },
      placedAt: $placed, fulfilledAt: $shipped, completedAt: $shipped, createdAt: $placed
    }};

def keyed: map(select(.key) | {key, value: .record}) | from_entries;

[.[0] | each(category)] as $categories
| [.[1] | each(product)] as $products
| [.[2] | each(customer)] as $customers
| ($products | keyed) as $names
| [.[4] | each({order: get("orderID"), item: line($names)})] as $read
| ($read | map(select(.item)) | group_by(.order) | map({key: .[0].order, value: map(.item)}) | from_entries) as $lines
| ($read | map(select(.rejected) | {key: (.rejected.row | get("orderID") // ""), value: true}) | from_entries) as $bad
| ($customers | keyed) as $buyers
| [.[3] | each(order($buyers; $lines; $bad))] as $orders
| ($orders | map(select(.buyer)) | group_by(.buyer) | map({key: .[0].buyer, value: .}) | from_entries) as $bought
| ($read[] | select(.rejected)),
  $categories[],
  $products[],
  ($customers[] | if .rejected then . else
    ($bought[.key] // []) as $of
    | .record += {ordersCount: ($of | length), totalSpent: ($of | map(.total) | sum), lastOrderAt: ($of | map(.placed) | max)}
  end),
  $orders[]
