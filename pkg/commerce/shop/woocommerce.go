package shop

import (
	"cmp"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/go-json-experiment/json/jsontext"
)

// The fields of WooCommerce's webhooks, which are those of its REST API, version 3.

// The service's words for those of WooCommerce.
var (
	wooStatuses = map[string]any{
		"checkout-draft": "DRAFT", "pending": "PENDING", "on-hold": "PENDING", "failed": "PENDING", "processing": "PROCESSING",
		"completed": "COMPLETED", "refunded": "COMPLETED", "cancelled": "CANCELLED",
	}
	wooPayments = map[string]any{"on-hold": "PENDING", "failed": "FAILED", "refunded": "REFUNDED"}
	wooSources  = map[string]any{"checkout": "ONLINE", "store-api": "ONLINE", "admin": "MANUAL", "pos-rest-api": "POS"}
)

// wooID is the id of a record of the shop. That of a product has no word before
// the number, as the importer's format has none.
func wooID(ns ids, kind commerce.Kind, number string) value.ID {
	if kind == commerce.KindProduct {
		return ns.derive("woocommerce/" + number)
	}
	return ns.derive("woocommerce/" + string(kind) + "/" + number)
}

// wooDeleted reads a deletion. The record's id follows from the shop's.
func wooDeleted(e *Event, ns ids, _ node) error {
	e.Deleted, e.Parts = true, []Part{{Key: e.Object, ID: wooID(ns, e.Kind, e.Object)}}
	return nil
}

// wooProduct makes a product of each simple product and of each variation, which
// has webhooks of its own. A product with variations only says which there are.
func wooProduct(e *Event, ns ids, p node) error {
	if variations := p.texts("variations"); len(variations) > 0 {
		if len(variations) > maxParts {
			return errTooManyParts
		}
		for _, number := range variations {
			e.Parts = append(e.Parts, Part{Key: number, ID: wooID(ns, e.Kind, number)})
		}
		return nil
	}
	part := Part{Key: e.Object, ID: wooID(ns, e.Kind, e.Object)}
	options := record{}
	for _, a := range p.list("attributes") {
		if chosen := cmp.Or(a.text("option"), strings.Join(a.texts("options"), ", ")); a.text("name") != "" && chosen != "" {
			options[a.text("name")] = chosen
		}
	}
	attributes := record{
		"slug": p.get("slug"), "shortDescription": p.get("short_description"), "inStock": p.get("stock_status"),
		"taxClass": p.get("tax_class"), "externalUrl": p.get("external_url"),
	}
	r := record{
		"id": part.ID, "name": p.get("name"), "description": p.get("description", "short_description"), "type": "PHYSICAL", "unit": "PIECE",
		"isActive": p.is("status", "publish"), "tags": Texts(of(p.list("tags"), "name")),
		"images": Texts(append([]string{p.object("image").text("src")}, of(p.list("images"), "src")...)),
		"sku":    p.get("sku"), "barcode": p.get("global_unique_id"), "sellingPrice": p.amount("price", "regular_price"),
		"trackInventory": p.flag("manage_stock"), "reorderPoint": p.amount("low_stock_amount"),
		"attributes": attributes,
	}
	switch {
	case p.is("type", "grouped"):
		r["type"] = "BUNDLE"
	case p.flag("virtual") || p.flag("downloadable"):
		r["type"] = "DIGITAL"
	}
	if p.flag("on_sale") {
		attributes["compareAtPrice"] = p.get("regular_price")
	}
	if len(options) > 0 {
		attributes["options"] = options
	}
	if brands := Texts(of(p.list("brands"), "name")); len(brands) > 0 {
		r.branded(attributes, brands[0])
	}
	categories := Texts(of(p.list("categories"), "name"))
	if len(categories) > 0 {
		e.Category = categories[0]
	}
	r.categorized(attributes, categories)
	if quantity, given := p.amount("stock_quantity").(value.Amount); given && p.flag("manage_stock") {
		part.OnHand = jsontext.Value(quantity.String())
	}
	part.Record = r.encode()
	e.Parts = []Part{part}
	return nil
}

func wooCustomer(e *Event, ns ids, c node) error {
	id := wooID(ns, e.Kind, e.Object)
	billing, shipping := c.object("billing"), c.object("shipping")
	r := record{
		"id": id, "customerNumber": e.Object, "externalRef": e.Object, "firstName": cmp.Or(c.get("first_name"), billing.get("first_name")),
		"lastName": cmp.Or(c.get("last_name"), billing.get("last_name")), "companyName": billing.get("company"), "email": cmp.Or(c.get("email"), billing.get("email")),
		"phone": billing.get("phone"), "createdAt": c.time("date_created_gmt"),
	}
	var addresses []record
	for _, a := range []struct {
		node
		key, field string
	}{{billing, "Billing address", "defaultBillingAddressId"}, {shipping, "Shipping address", "defaultShippingAddressId"}} {
		if address := wooAddress(a.node, value.DeriveID(id, a.key)); address != nil {
			addresses, r[a.field] = append(addresses, address), address["id"]
		}
	}
	r["addresses"] = addresses
	e.Parts = []Part{{Key: e.Object, ID: id, Record: r.encode()}}
	return nil
}

// wooAddress is nil where the shop has an address without content.
func wooAddress(a node, id value.ID) record {
	if a.text("address_1", "city", "last_name") == "" {
		return nil
	}
	return record{
		"id": id, "firstName": a.get("first_name"), "lastName": a.get("last_name"), "company": a.get("company"),
		"line1": a.get("address_1"), "line2": a.get("address_2"), "city": a.get("city"), "state": a.get("state"),
		"postalCode": a.get("postcode"), "country": a.country("country"), "phone": a.get("phone"),
	}
}

// wooOrder takes the amounts of lines without tax, as WooCommerce gives them
// whether prices include it or not.
func wooOrder(e *Event, ns ids, o node) error {
	number := o.text("number", "id")
	id := wooID(ns, e.Kind, e.Object)
	billing := o.object("billing")
	r := record{
		"id": id, "orderNumber": number, "externalRef": e.Object, "source": o.word("created_via", wooSources, "API"),
		"status": o.word("status", wooStatuses, "PENDING"), "paymentStatus": o.word("status", wooPayments, "UNPAID"),
		"fulfillmentStatus": o.word("status", map[string]any{"completed": "FULFILLED"}, "UNFULFILLED"), "currency": o.get("currency"),
		"customerName": orNil(fullName(billing)), "customerEmail": billing.get("email"), "couponCodes": Texts(of(o.list("coupon_lines"), "code")),
		"discountTotal": o.amount("discount_total"), "shippingTotal": o.amount("shipping_total"), "taxTotal": o.amount("total_tax"),
		"total": o.amount("total"), "notes": o.get("customer_note"), "placedAt": o.time("date_created_gmt"), "createdAt": o.time("date_created_gmt"),
		"paidAt": o.time("date_paid_gmt"), "completedAt": o.time("date_completed_gmt"), "fulfilledAt": o.time("date_completed_gmt"),
		"metadata": record{"status": o.get("status"), "source": o.get("created_via"), "shippingMethod": orNil(strings.Join(of(o.list("shipping_lines"), "method_title"), ", "))},
	}
	if customer := o.text("customer_id"); customer != "" && customer != "0" {
		r["customerId"] = wooID(ns, commerce.KindCustomer, customer)
	}
	if a := wooAddress(billing, value.DeriveID(id, "Billing address")); a != nil {
		r["billingAddress"] = a
	}
	if a := wooAddress(o.object("shipping"), value.DeriveID(id, "Shipping address")); a != nil {
		r["shippingAddress"] = a
	}
	if o.text("payment_method") != "" {
		r["payments"] = []record{{
			"id": value.DeriveID(id, "payment"), "method": o.get("payment_method_title"), "provider": o.get("payment_method"),
			"reference": o.get("transaction_id"), "amount": o.amount("total"), "paidAt": o.time("date_paid_gmt"),
		}}
	}
	refunded := wooRefunds(o, id, r)
	switch paid := o.text("date_paid_gmt") != ""; {
	case refunded != 0 && refunded >= o.number("total"):
		r["paymentStatus"] = "REFUNDED"
	case refunded != 0:
		r["paymentStatus"] = "PARTIALLY_REFUNDED"
	case paid && r["paymentStatus"] == "UNPAID":
		r["paymentStatus"] = "PAID"
	}
	r["items"] = wooLines(ns, o, id)
	e.Parts = []Part{{Key: e.Object, ID: id, Record: r.encode()}}
	return nil
}

// wooRefunds adds the refunds of an order, whose totals are negative, and its
// taxes, and returns what was refunded.
func wooRefunds(o node, order value.ID, r record) (total value.Amount) {
	var refunds, taxes []record
	for _, f := range o.list("refunds") {
		amount := max(f.number("total"), -f.number("total"))
		total += amount
		refunds = append(refunds, record{"id": value.DeriveID(order, "refund/"+f.text("id")), "amount": amount, "reason": f.get("reason")})
	}
	for _, t := range o.list("tax_lines") {
		taxes = append(taxes, record{
			"name": t.get("label"), "taxRate": t.amount("rate_percent"), "taxAmount": t.number("tax_total") + t.number("shipping_tax_total"),
		})
	}
	r["refunds"], r["taxLines"] = refunds, taxes
	return total
}

// wooLines are the items of an order. Its price of one unit is a binary float: the
// subtotal says it exactly.
func wooLines(ns ids, o node, order value.ID) (items []record) {
	for _, l := range o.list("line_items") {
		quantity, subtotal := l.number("quantity"), l.number("subtotal")
		price, ok := subtotal.MulDiv(value.AmountScale, quantity)
		if !ok {
			price = subtotal // of nothing
		}
		product := cmp.Or(strings.TrimPrefix(l.text("variation_id"), "0"), strings.TrimPrefix(l.text("product_id"), "0"))
		item := record{
			"id": value.DeriveID(order, "item/"+l.text("id")), "name": l.get("name"), "sku": l.get("sku"), "unit": "PIECE",
			"quantity": quantity, "unitPrice": price, "subtotal": l.amount("subtotal"), "discountAmount": orNil(subtotal - l.number("total")),
			"taxAmount": l.amount("total_tax"), "total": l.number("total") + l.number("total_tax"),
		}
		if product != "" {
			item["productId"] = wooID(ns, commerce.KindProduct, product)
		}
		items = append(items, item)
	}
	return items
}
