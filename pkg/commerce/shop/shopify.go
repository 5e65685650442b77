package shop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json"
)

// The fields of Shopify's webhooks, API versions 2025-10 and 2026-01.

// ShopifyWords are the service's words for those of Shopify, by the field of an order.
// Shopify's files have the same words.
var ShopifyWords = map[string]map[string]any{
	"source": {"web": "ONLINE", "pos": "POS", "shopify_draft_order": "MANUAL"},
	"paymentStatus": {
		"pending": "PENDING", "authorized": "AUTHORIZED", "partially_paid": "PARTIALLY_PAID", "paid": "PAID",
		"partially_refunded": "PARTIALLY_REFUNDED", "refunded": "REFUNDED", "voided": "VOIDED", "expired": "FAILED",
	},
	"fulfillmentStatus": {"fulfilled": "FULFILLED", "partial": "PARTIALLY_FULFILLED", "restocked": "RETURNED"},
}

// A product of Shopify has at most 2,048 variants, with 3 options. No 100 records that
// can be stored, which a body has in full, have more bytes together.
const (
	maxParts       = 2_048
	shopifyOptions = 3
	maxRecords     = 16 << 20
)

var errTooManyParts = fmt.Errorf("a product must have at most %d variants", maxParts)

// shopifyProduct makes a product of each variant. A body has at most 100 variants
// in full; variant_gids names all.
func shopifyProduct(e *Event, ns ids, p node) (err error) {
	handle := p.text("handle")
	if handle == "" {
		return errors.New("handle is required")
	}
	categories := Texts([]string{categoryPath(cmp.Or(p.object("category").text("full_name"), p.text("product_type")))})
	if len(categories) > 0 {
		e.Category = categories[0]
	}
	variants, named := p.list("variants"), p.list("variant_gids")
	if max(len(variants), len(named)) > maxParts {
		return errTooManyParts
	}
	tags, images, inOptions := Texts(strings.Split(p.text("tags"), ",")), shopifyImages(p), p.list("options")
	size := 0
	for _, v := range variants {
		part := Part{}
		if part.Key, err = v.id("id"); err != nil {
			return err
		}
		if part.Item, err = v.id("inventory_item_id"); err != nil {
			return err
		}
		key, name, options := []string{"shopify/" + handle}, []string{p.text("title")}, record{}
		for i, o := range inOptions[:min(shopifyOptions, len(inOptions))] {
			option, chosen := o.text("name"), v.text(fmt.Sprintf("option%d", i+1))
			if option == "" || chosen == "" || option == "Title" && chosen == "Default Title" {
				continue
			}
			key, name, options[option] = append(key, chosen), append(name, chosen), chosen
		}
		part.ID = ns.derive(key...)
		attributes := record{
			"handle": handle, "productType": p.get("product_type"), "compareAtPrice": v.get("compare_at_price"),
			"grams": v.get("grams"), "weightUnit": v.get("weight_unit"), "taxCode": v.get("tax_code"),
		}
		r := record{
			"id": part.ID, "name": strings.Join(name, " - "), "description": p.get("body_html"),
			"type": "PHYSICAL", "unit": "PIECE", "isActive": p.is("status", "active") && p.text("published_at") != "",
			"tags": tags, "images": images.of(v),
			"sku": v.get("sku"), "barcode": v.get("barcode"), "sellingPrice": v.amount("price"),
			"trackInventory": v.text("inventory_management") != "", "attributes": attributes,
		}
		if shipped, given := v["requires_shipping"].(bool); given && !shipped {
			r["type"] = "DIGITAL"
		}
		if len(options) > 0 {
			attributes["options"] = options
		}
		r.branded(attributes, p.text("vendor"))
		r.categorized(attributes, categories)
		part.Record = r.encode()
		if size += len(part.Record); size > maxRecords {
			return fmt.Errorf("the variants must have at most %d bytes together, each with the product's fields", maxRecords)
		}
		e.Parts = append(e.Parts, part)
	}
	for _, v := range named {
		id := v.text("admin_graphql_api_id")
		if id = id[strings.LastIndexByte(id, '/')+1:]; !slices.ContainsFunc(e.Parts, func(p Part) bool { return p.Key == id }) {
			e.Parts = append(e.Parts, Part{Key: id})
		}
	}
	return nil
}

// categoryPath writes a path such as Cups>Mugs as ids derive from it.
func categoryPath(text string) string {
	return strings.Join(Texts(strings.Split(text, ">")), pathSeparator)
}

// images are those of a product, in its order and by their ids.
type images struct {
	all  []string
	byID map[string]string
}

func shopifyImages(p node) images {
	found := images{byID: map[string]string{}}
	for _, image := range p.list("images") {
		found.all = append(found.all, image.text("src"))
		found.byID[image.text("id")] = image.text("src")
	}
	delete(found.byID, "")
	found.all = Texts(found.all)
	return found
}

// of are the images of a variant, its own first.
func (m images) of(v node) []string {
	return Texts(append([]string{m.byID[v.text("image_id")]}, m.all...))
}

// shopifyCustomerID is by what both an order and a customer's own webhook name.
func shopifyCustomerID(ns ids, c node) any {
	if key := c.text("email", "id", "phone"); key != "" {
		return ns.derive("shopify/customer/" + strings.ToLower(key))
	}
	return nil
}

func shopifyCustomer(e *Event, ns ids, c node) error {
	id, _ := shopifyCustomerID(ns, c).(value.ID)
	home := c.object("default_address")
	r := record{
		"id": id, "customerNumber": e.Object, "externalRef": e.Object, "type": "INDIVIDUAL",
		"firstName": c.get("first_name"), "lastName": c.get("last_name"), "companyName": home.get("company"),
		"email": c.get("email"), "phone": cmp.Or(c.get("phone"), home.get("phone")), "currency": c.get("currency"),
		"acceptsMarketing": c.object("email_marketing_consent").is("state", "subscribed") || c.flag("accepts_marketing"),
		"ordersCount":      c.amount("orders_count"), "totalSpent": c.amount("total_spent"),
		"tags": Texts(strings.Split(c.text("tags"), ",")), "notes": c.get("note"), "createdAt": c.time("created_at"),
	}
	if c.text("first_name", "last_name") == "" && home.text("company") != "" {
		r["type"] = "BUSINESS"
	}
	var addresses []record
	for _, a := range c.list("addresses") {
		key := "address/" + a.text("id")
		if a.text("id") == home.text("id") {
			key = "address"
			r["defaultBillingAddressId"], r["defaultShippingAddressId"] = value.DeriveID(id, key), value.DeriveID(id, key)
		}
		addresses = append(addresses, shopifyAddress(a, value.DeriveID(id, key)))
	}
	r["addresses"] = addresses
	e.Parts = []Part{{Key: e.Object, ID: id, Record: r.encode()}}
	return nil
}

func shopifyAddress(a node, id value.ID) record {
	return record{
		"id": id, "firstName": a.get("first_name"), "lastName": a.get("last_name"), "company": a.get("company"),
		"line1": a.get("address1"), "line2": a.get("address2"), "city": a.get("city"), "state": a.get("province_code", "province"),
		"postalCode": a.get("zip"), "country": a.country("country_code"), "phone": a.get("phone"),
	}
}

func shopifyOrder(e *Event, ns ids, o node) error {
	name := o.text("name")
	if name == "" {
		return errors.New("name is required")
	}
	id := ns.derive("shopify/order/" + name)
	billing, shipping, customer := o.object("billing_address"), o.object("shipping_address"), o.object("customer")
	financial := strings.ToLower(o.text("financial_status"))
	var received value.Amount
	switch financial {
	case "paid", "refunded", "partially_refunded":
		received = o.number("total_price")
	case "partially_paid":
		received = o.number("total_price") - o.number("total_outstanding")
	}
	r := record{
		"id": id, "orderNumber": name, "externalRef": e.Object, "source": o.word("source_name", ShopifyWords["source"], "API"),
		"status": "PROCESSING", "paymentStatus": o.word("financial_status", ShopifyWords["paymentStatus"], "UNPAID"),
		"fulfillmentStatus": o.word("fulfillment_status", ShopifyWords["fulfillmentStatus"], "UNFULFILLED"), "currency": o.get("currency"),
		"customerName": orNil(cmp.Or(billing.text("name"), shipping.text("name"), fullName(customer))), "customerEmail": o.get("email", "contact_email"),
		"taxLines":    shopifyTaxes(o),
		"couponCodes": Texts(of(o.list("discount_codes"), "code")), "pricesIncludeTax": o.flag("taxes_included"),
		"discountTotal": o.amount("total_discounts"), "shippingTotal": o.object("total_shipping_price_set").object("shop_money").amount("amount"),
		"taxTotal": o.amount("total_tax"), "total": o.amount("total_price"), "paidTotal": received,
		"notes": o.get("note"), "cancelReason": o.get("cancel_reason"), "tags": Texts(strings.Split(o.text("tags"), ",")),
		"placedAt": o.time("created_at"), "createdAt": o.time("created_at"), "cancelledAt": o.time("cancelled_at"),
		"metadata": record{
			"financialStatus": o.get("financial_status"), "source": o.get("source_name"), "location": o.get("location_id"),
			"shippingMethod": orNil(strings.Join(of(o.list("shipping_lines"), "title"), ", ")),
		},
	}
	switch {
	case o.text("cancelled_at") != "":
		r["status"] = "CANCELLED"
	case o.is("fulfillment_status", "fulfilled") && financial != "pending" && financial != "authorized":
		r["status"] = "COMPLETED"
	}
	if customer != nil {
		r["customerId"] = shopifyCustomerID(ns, customer)
	} else if email := o.text("email"); email != "" {
		r["customerId"] = ns.derive("shopify/customer/" + strings.ToLower(email))
	}
	for field, a := range map[string]node{"billingAddress": billing, "shippingAddress": shipping} {
		if a.text("name", "address1", "city") != "" {
			prefix := map[string]string{"billingAddress": "Billing ", "shippingAddress": "Shipping "}[field]
			r[field] = shopifyAddress(a, value.DeriveID(id, prefix+"address"))
		}
	}
	if method := strings.Join(o.texts("payment_gateway_names"), ", "); method != "" {
		r["payments"] = []record{{"id": value.DeriveID(id, "payment"), "method": method, "amount": received}}
	}
	shopifyLines(o, id, r)
	e.Parts = []Part{{Key: e.Object, ID: id, Record: r.encode()}}
	return nil
}

func fullName(n node) string {
	return strings.TrimSpace(n.text("first_name") + " " + n.text("last_name"))
}

// percent adds the rates of taxes.
func percent(taxes []node) (total value.Amount) {
	for _, t := range taxes {
		rate, _ := t.percent("rate").(value.Amount)
		total += rate
	}
	return total
}

func shopifyTaxes(n node) (all []record) {
	for _, t := range n.list("tax_lines") {
		all = append(all, record{"name": t.get("title"), "taxRate": t.percent("rate"), "taxAmount": t.amount("price")})
	}
	return all
}

// shopifyLines adds the items of an order, and the shipments and refunds that name
// them.
func shopifyLines(o node, order value.ID, r record) {
	ids, fulfilled, refunded := map[string]value.ID{}, map[string]value.Amount{}, map[string]value.Amount{}
	for i, l := range o.list("line_items") {
		ids[l.text("id")] = value.DeriveID(order, fmt.Sprintf("item/%d", i))
	}
	parts := func(lines []node, field string, into map[string]value.Amount) (all []record) {
		for _, l := range lines {
			key := l.text(field)
			into[key] += l.number("quantity")
			all = append(all, record{"itemId": orNil(ids[key]), "quantity": l.amount("quantity")})
		}
		return all
	}
	var shipments, refunds, items []record
	for _, f := range o.list("fulfillments") {
		if f.is("status", "cancelled") || f.is("status", "error") || f.is("status", "failure") {
			continue
		}
		s := record{
			"id": value.DeriveID(order, "shipment/"+f.text("id")), "carrier": f.get("tracking_company"), "trackingNumber": f.get("tracking_number"),
			"trackingUrl": f.get("tracking_url"), "shippedAt": f.time("created_at"), "items": parts(f.list("line_items"), "id", fulfilled),
		}
		if f.is("shipment_status", "delivered") {
			s["deliveredAt"] = f.time("updated_at")
		}
		if o.is("fulfillment_status", "fulfilled") {
			r["fulfilledAt"] = f.time("created_at")
		}
		shipments = append(shipments, s)
	}
	for _, f := range o.list("refunds") {
		paid := slices.DeleteFunc(f.list("transactions"), func(t node) bool { return !t.is("kind", "refund") || !t.is("status", "success") })
		refunds = append(refunds, record{
			"id": value.DeriveID(order, "refund/"+f.text("id")), "amount": sum(paid, "amount"), "reason": f.get("note"),
			"refundedAt": f.time("created_at"), "items": parts(f.list("refund_line_items"), "line_item_id", refunded),
		})
	}
	for _, l := range o.list("line_items") {
		key := l.text("id")
		taxes := l.list("tax_lines")
		items = append(items, record{
			"id": ids[key], "name": l.get("name", "title"), "sku": l.get("sku"), "unit": "PIECE",
			"quantity": l.amount("quantity"), "unitPrice": l.amount("price"), "discountAmount": orNil(sum(l.list("discount_allocations"), "amount")),
			"taxRate": orNil(percent(taxes)), "taxAmount": sum(taxes, "price"),
			"fulfilledQuantity": orNil(fulfilled[key]), "refundedQuantity": orNil(refunded[key]),
			"attributes": record{"vendor": l.get("vendor"), "fulfillmentStatus": l.get("fulfillment_status")},
		})
	}
	r["items"], r["shipments"], r["refunds"] = items, shipments, refunds
}

func shopifyLevel(e *Event, _ ids, l node) (err error) {
	e.Level = &Level{Item: e.Object}
	if available := l.amount("available"); available != nil {
		e.Level.Available, _ = json.Marshal(available) // an amount or a text: always JSON
	}
	e.Level.Location, err = l.id("location_id")
	return err
}

func shopifyNoLevel(e *Event, ns ids, l node) error {
	delete(l, "available")
	return shopifyLevel(e, ns, l)
}
