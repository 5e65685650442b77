# Consecutive rows with one name are of one order: the first has what is the
# order's, each has one item. A row without an item only adds to what the order
# has, such as a second payment. A row that is refused is the whole order's: an
# order short of an item would be wrong without anybody noticing.
def address($id; $prefix):
  if get(prefixed($prefix; "Name|Address1|Street|City")) == null then null else
    names($prefix + "Name") as $names
    | {
        id: part($id; $prefix + "address"),
        firstName: $names[0],
        lastName: $names[1],
        company: get($prefix + "Company"),
        line1: get(prefixed($prefix; "Address1|Street")),
        line2: get($prefix + "Address2"),
        city: get($prefix + "City"),
        state: get(prefixed($prefix; "Province Code|Province")),
        postalCode: code($prefix + "Zip"),
        country: country(prefixed($prefix; "Country Code|Country")),
        phone: code($prefix + "Phone")
      }
  end;

def received:
  amount("Outstanding Balance") as $left
  | if get("Financial Status") // "" | ascii_downcase | IN("paid", "refunded", "partially_refunded") then amount("Total") // 0
  elif is("Financial Status"; "partially_paid") then calculate(amount("Total"); "-"; $left) // 0
  else 0 end;

def item($id; $number):
  {
    id: part($id; "item/\($number)"),
    name: get("Lineitem name"),
    sku: code("Lineitem sku"),
    unit: "PIECE",
    quantity: amount("Lineitem quantity"),
    unitPrice: amount("Lineitem price"),
    discountAmount: (amount("Lineitem discount") | if . == 0 then null else . end),
    fulfilledQuantity: (if is("Lineitem fulfillment status"; "fulfilled") then amount("Lineitem quantity") else null end),
    attributes: (others(.) | with_entries(select(.key | startswith("lineitem")))) + {
      vendor: get("Vendor"),
      compareAtPrice: get("Lineitem compare at price"),
      requiresShipping: get("Lineitem requires shipping"),
      taxable: get("Lineitem taxable"),
      fulfillmentStatus: get("Lineitem fulfillment status")
    }
  };

([.[] | select(get("Lineitem name"))] | to_entries) as $items
| .[0]
| required("Name") as $name
| id("shopify/order/" + $name) as $id
| amount("Taxes") as $taxes
| (get("Financial Status") // "" | ascii_downcase) as $financial
| received as $received
| {
    row: .,
    record: {
      id: $id,
      orderNumber: $name,
      externalRef: code("Id"),
      source: word("Source"; shopify("source"); "IMPORT"),
      status: (if get("Cancelled at") then "CANCELLED"
        elif is("Fulfillment Status"; "fulfilled") and ($financial | IN("pending", "authorized") | not) then "COMPLETED"
        else "PROCESSING" end),
      paymentStatus: word("Financial Status"; shopify("paymentStatus"); "UNPAID"),
      fulfillmentStatus: word("Fulfillment Status"; shopify("fulfillmentStatus"); "UNFULFILLED"),
      currency: get("Currency"),
      customerId: (code("Email") | if . then id("shopify/customer/" + lower) else null end),
      customerName: get("Billing Name|Shipping Name"),
      customerEmail: get("Email"),
      billingAddress: address($id; "Billing "),
      shippingAddress: address($id; "Shipping "),
      payments: (if get("Payment Method") then [{
        id: part($id; "payment"),
        method: get("Payment Method"),
        reference: code("Payment ID|Payment Reference|Payment References"),
        amount: $received,
        paidAt: time("Paid at")
      }] else null end),
      taxLines: [range(1; 6) as $n | amount("Tax \($n) Value") as $tax | select($tax != null)
        | {name: get("Tax \($n) Name"), taxAmount: $tax}],
      couponCodes: list("Discount Code"; ","),
      pricesIncludeTax: ($taxes != null and $taxes > 0 and amount("Total") != null
        and calculate(amount("Subtotal"); "+"; amount("Shipping")) == amount("Total")),
      discountTotal: amount("Discount Amount"),
      shippingTotal: amount("Shipping"),
      taxTotal: $taxes,
      total: amount("Total"),
      paidTotal: $received,
      refundedTotal: amount("Refunded Amount"),
      notes: get("Notes"),
      tags: list("Tags"; ","),
      placedAt: time("Created at"),
      createdAt: time("Created at"),
      paidAt: time("Paid at"),
      fulfilledAt: time("Fulfilled at"),
      cancelledAt: time("Cancelled at"),
      items: ($items | map(.key as $number | .value | item($id; $number))),
      metadata: (others(.) | with_entries(select(.key | startswith("lineitem") | not))) + {
        billingProvinceName: get("Billing Province Name"),
        shippingProvinceName: get("Shipping Province Name"),
        shippingMethod: get("Shipping Method"),
        riskLevel: get("Risk Level"),
        location: get("Location"),
        noteAttributes: get("Note Attributes"),
        financialStatus: get("Financial Status"),
        source: get("Source")
      }
    }
  }
