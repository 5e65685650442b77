# A customer has one row. Old exports have the columns of the address without
# "Default Address".
def default($columns): $columns | split("|") | map("Default Address " + ., .) | join("|");

.[0]
| (code("Email|Customer ID|Phone") // fail("Email"; "is required where there is no Customer ID and no Phone")) as $key
| id("shopify/customer/" + ($key | lower)) as $id
| (if get(default("Address1|City|Zip|Country Code|Country")) then part($id; "address") else null end) as $home
| {
    row: .,
    record: {
      id: $id,
      customerNumber: code("Customer ID"),
      externalRef: code("Customer ID"),
      type: (if get("First Name|Last Name") == null and get(default("Company")) then "BUSINESS" else "INDIVIDUAL" end),
      firstName: get("First Name"),
      lastName: get("Last Name"),
      companyName: get(default("Company")),
      email: get("Email"),
      phone: code("Phone|Default Address Phone"),
      acceptsMarketing: flag("Accepts Email Marketing|Accepts Marketing"),
      addresses: (if $home == null then [] else [{
        id: $home,
        firstName: get("First Name"),
        lastName: get("Last Name"),
        company: get(default("Company")),
        line1: get(default("Address1|Street")),
        line2: get(default("Address2")),
        city: get(default("City")),
        state: get(default("Province Code|Province")),
        postalCode: code(default("Zip")),
        country: country(default("Country Code|Country")),
        phone: code(default("Phone"))
      }] end),
      defaultBillingAddressId: $home,
      defaultShippingAddressId: $home,
      ordersCount: amount("Total Orders|Orders Count"),
      totalSpent: amount("Total Spent"),
      tags: list("Tags"; ","),
      notes: get("Note"),
      metadata: others(.) + {taxExempt: get("Tax Exempt"), acceptsSMSMarketing: get("Accepts SMS Marketing")}
    }
  }
