package importer

import (
	"fmt"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/go-json-experiment/json/jsontext"
)

// shopifyCustomerID is of the e-mail address, which orders name their customer
// by, and without one of the number or the phone.
func shopifyCustomerID(keys ...string) (value.ID, bool) {
	for _, key := range keys {
		if key = strings.ToLower(strings.TrimPrefix(key, "'")); key != "" {
			return value.DeriveID(namespace, "shopify/customer/"+key), true
		}
	}
	return value.ID{}, false
}

func readShopifyCustomers(_ *Source, sh *sheet, emit emitter) error {
	return sh.each(emit, func() {
		id, ok := shopifyCustomerID(sh.get("Email"), sh.get("Customer ID"), sh.get("Phone"))
		if !ok {
			sh.reject("Email", "is required where there is no Customer ID and no Phone")
			return
		}
		kind := "INDIVIDUAL"
		if sh.get("First Name|Last Name") == "" && sh.get("Default Address Company|Company") != "" {
			kind = "BUSINESS"
		}
		addresses, home := []jsontext.Value{}, any(nil)
		if sh.get(prefixed("Default Address ", "Address1|City|Zip|Country Code|Country")) != "" {
			address := sh.address(value.DeriveID(id, "address"), "Default Address ", sh.maybe("First Name"), sh.maybe("Last Name"))
			addresses, home = append(addresses, address), value.DeriveID(id, "address")
		}
		number := code(sh, "Customer ID")
		orders := sh.amount("Total Orders|Orders Count")
		if orders != nil && *orders%value.AmountScale != 0 {
			sh.reject("Total Orders", "must be a whole number")
		}
		var count any
		if orders != nil {
			count = int64(*orders / value.AmountScale)
		}
		customer := object(
			"id", id, "customerNumber", number, "externalRef", number, "type", kind,
			"firstName", sh.maybe("First Name"), "lastName", sh.maybe("Last Name"),
			"companyName", sh.maybe("Default Address Company|Company"), "email", sh.maybe("Email"),
			"phone", code(sh, "Phone|Default Address Phone"), "acceptsMarketing", flag(sh, "Accepts Email Marketing|Accepts Marketing"),
			"addresses", addresses, "defaultBillingAddressId", home, "defaultShippingAddressId", home,
			"ordersCount", count, "totalSpent", sh.amount("Total Spent"),
			"tags", splitList(sh.get("Tags"), ","), "notes", sh.maybe("Note"),
			"metadata", sh.texts(map[string]string{"taxExempt": "Tax Exempt", "acceptsSMSMarketing": "Accepts SMS Marketing"}),
		)
		if sh.err == nil {
			sh.err = emit(put(commerce.KindCustomer, sh.place(), customer), nil)
		}
	})
}

// prefixed names columns with the prefix, and after each the one without it.
func prefixed(prefix, columns string) string {
	var all []string
	for column := range strings.SplitSeq(columns, "|") {
		all = append(all, prefix+column, column)
	}
	return strings.Join(all, "|")
}

// address reads the address whose columns begin with the prefix.
func (s *sheet) address(id value.ID, prefix string, first, last *string) jsontext.Value {
	at := func(columns string) string { return prefixed(prefix, columns) }
	if prefix != "Default Address " { // an order has two addresses, so that a prefix is always there
		at = func(columns string) string { return prefix + strings.ReplaceAll(columns, "|", "|"+prefix) }
	}
	country := s.get(at("Country Code|Country"))
	if len(country) != len("DE") {
		if country != "" {
			s.warn(s.place(), fmt.Sprintf("%s: %q is no country code such as DE, and left out", strings.TrimSpace(prefix+"Country"), country))
		}
		country = ""
	}
	return object("id", id, "firstName", first, "lastName", last, "company", s.maybe(at("Company")),
		"line1", s.maybe(at("Address1|Street")), "line2", s.maybe(at("Address2")), "city", s.maybe(at("City")),
		"state", s.maybe(at("Province Code|Province")), "postalCode", code(s, at("Zip")), "country", orNil(country),
		"phone", code(s, at("Phone")))
}

// shopifyOrder is an order while its rows are read: the first has what is the
// order's, each has one item.
type shopifyOrder struct {
	place  Place
	name   string
	id     value.ID
	fields []any
	items  []jsontext.Value
	bad    bool // one of its rows is refused, and so it is
}

func readShopifyOrders(_ *Source, sh *sheet, emit emitter) error {
	var open *shopifyOrder
	finish := func() error {
		if open == nil || open.bad {
			return nil
		}
		return emit(put(commerce.KindOrder, open.place, object(append(open.fields, "items", open.items)...)), nil)
	}
	if err := sh.each(emit, func() {
		if name := sh.get("Name"); open == nil || name != open.name {
			if sh.err = finish(); sh.err != nil {
				return
			}
			open = newShopifyOrder(sh)
		} else {
			sh.join(open.place)
		}
		open.addItem(sh)
		open.bad = open.bad || sh.err != nil
	}); err != nil {
		return err
	}
	return finish()
}

// The states of Shopify's exports in the service's words; what is not here is
// UNPAID and UNFULFILLED.
var (
	shopifyPayments = map[string]string{
		"pending": "PENDING", "authorized": "AUTHORIZED", "partially_paid": "PARTIALLY_PAID", "paid": "PAID",
		"partially_refunded": "PARTIALLY_REFUNDED", "refunded": "REFUNDED", "voided": "VOIDED", "expired": "FAILED",
	}
	shopifyFulfillments = map[string]string{
		"fulfilled": "FULFILLED", "partial": "PARTIALLY_FULFILLED", "restocked": "RETURNED",
	}
	shopifySources = map[string]string{"web": "ONLINE", "pos": "POS", "shopify_draft_order": "MANUAL"}
)

func newShopifyOrder(sh *sheet) *shopifyOrder {
	o := &shopifyOrder{place: sh.place(), name: sh.get("Name")}
	if o.name == "" {
		sh.reject("Name", "is required")
	}
	o.id = value.DeriveID(namespace, "shopify/order/"+o.name)
	financial, fulfillment := strings.ToLower(sh.get("Financial Status")), strings.ToLower(sh.get("Fulfillment Status"))
	paid, fulfilled, cancelled := sh.shopifyTime("Paid at"), sh.shopifyTime("Fulfilled at"), sh.shopifyTime("Cancelled at")
	placed := sh.shopifyTime("Created at")
	status := "PROCESSING"
	switch {
	case cancelled != nil:
		status = "CANCELLED"
	case fulfillment == "fulfilled" && financial != "pending" && financial != "authorized":
		status = "COMPLETED"
	}
	total, taxes, shipping := sh.amount("Total"), sh.amount("Taxes"), sh.amount("Shipping")
	subtotal, outstanding := sh.amount("Subtotal"), sh.amount("Outstanding Balance")
	received := value.Amount(0)
	if total != nil && (financial == "paid" || strings.HasSuffix(financial, "refunded")) {
		received = *total
	}
	if total != nil && outstanding != nil && financial == "partially_paid" {
		received = *total - *outstanding
	}
	inclusive := total != nil && subtotal != nil && shipping != nil && taxes != nil && *taxes > 0 && *subtotal+*shipping == *total
	var customer any
	if id, ok := shopifyCustomerID(sh.get("Email")); ok {
		customer = id
	}
	var payments []jsontext.Value
	if method := sh.get("Payment Method"); method != "" {
		payments = []jsontext.Value{object("id", value.DeriveID(o.id, "payment"), "method", method,
			"reference", code(sh, "Payment ID|Payment Reference|Payment References"), "amount", received, "paidAt", paid)}
	}
	o.fields = []any{
		"id", o.id, "orderNumber", o.name, "externalRef", code(sh, "Id"), "source", orDefault(shopifySources, sh.get("Source"), "IMPORT"),
		"status", status, "paymentStatus", orDefault(shopifyPayments, financial, "UNPAID"),
		"fulfillmentStatus", orDefault(shopifyFulfillments, fulfillment, "UNFULFILLED"),
		"currency", sh.maybe("Currency"), "customerId", customer, "customerName", sh.maybe("Billing Name|Shipping Name"),
		"customerEmail", sh.maybe("Email"), "billingAddress", o.address(sh, "Billing "), "shippingAddress", o.address(sh, "Shipping "),
		"payments", payments, "taxLines", shopifyTaxes(sh), "couponCodes", splitList(sh.get("Discount Code"), ","),
		"pricesIncludeTax", inclusive, "discountTotal", sh.amount("Discount Amount"), "shippingTotal", shipping,
		"taxTotal", taxes, "total", total, "paidTotal", received, "refundedTotal", sh.amount("Refunded Amount"),
		"notes", sh.maybe("Notes"), "tags", splitList(sh.get("Tags"), ","), "placedAt", placed, "createdAt", placed,
		"paidAt", paid, "fulfilledAt", fulfilled, "cancelledAt", cancelled,
		"metadata", sh.texts(map[string]string{
			"shippingMethod": "Shipping Method", "riskLevel": "Risk Level", "location": "Location",
			"noteAttributes": "Note Attributes", "financialStatus": "Financial Status", "source": "Source",
		}),
	}
	return o
}

func orDefault(words map[string]string, word, otherwise string) string {
	if known, ok := words[strings.ToLower(word)]; ok {
		return known
	}
	return otherwise
}

func (o *shopifyOrder) address(sh *sheet, prefix string) any {
	name := sh.get(prefix + "Name")
	if name == "" && sh.get(prefix+"Address1|"+prefix+"Street|"+prefix+"City") == "" {
		return nil
	}
	first, last := splitName(name)
	return sh.address(value.DeriveID(o.id, prefix+"address"), prefix, first, last)
}

func shopifyTaxes(sh *sheet) (lines []jsontext.Value) {
	for n := 1; n <= 5; n++ {
		name, amount := fmt.Sprintf("Tax %d Name", n), sh.amount(fmt.Sprintf("Tax %d Value", n))
		if amount != nil {
			lines = append(lines, object("name", sh.maybe(name), "taxAmount", amount))
		}
	}
	return lines
}

// addItem adds the row's item. A refused item is the whole order's: an order
// short of an item would be wrong without anybody noticing.
func (o *shopifyOrder) addItem(sh *sheet) {
	name := sh.get("Lineitem name")
	if name == "" {
		return // a row that only adds to what the order has, such as a second payment
	}
	quantity, price := sh.amount("Lineitem quantity"), sh.amount("Lineitem price")
	fields := []any{
		"id", value.DeriveID(o.id, fmt.Sprint("item/", len(o.items))), "name", name, "sku", code(sh, "Lineitem sku"),
		"unit", "PIECE", "quantity", quantity, "unitPrice", price,
		"attributes", sh.texts(map[string]string{
			"vendor": "Vendor", "compareAtPrice": "Lineitem compare at price", "fulfillmentStatus": "Lineitem fulfillment status",
		}),
	}
	if discount := sh.amount("Lineitem discount"); discount != nil && *discount != 0 {
		fields = append(fields, "discountAmount", discount)
	}
	if quantity != nil && strings.EqualFold(sh.get("Lineitem fulfillment status"), "fulfilled") {
		fields = append(fields, "fulfilledQuantity", quantity)
	}
	o.items = append(o.items, object(fields...))
}

// shopifyTime reads 2026-05-01 09:58:12 +0200; nil for an empty cell.
func (s *sheet) shopifyTime(column string) *value.Time {
	cell := s.get(column)
	if cell == "" {
		return nil
	}
	t, err := time.Parse("2006-01-02 15:04:05 -0700", cell)
	if err != nil {
		if at, plain := value.ParseTime(cell); plain == nil {
			return &at
		}
		s.reject(column, "must be a time such as 2026-05-01 09:58:12 +0200")
	}
	at := value.TimeOf(t)
	return &at
}
