package commerce

import (
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// examples makes the catalogue's examples: a record is stored, then changed
// in the way that means the event.
type examples struct {
	organization value.ID
	first, then  value.Time
}

func newExamples() examples {
	at := value.TimeOf(time.Date(2026, 11, 21, 6, 35, 41, 242_000_000, time.UTC))
	return examples{
		organization: value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"),
		first:        at,
		then:         at.Add(2 * time.Hour),
	}
}

// wrap makes the payload of an object that is no record.
func (x examples) wrap(name string, object, previous jsontext.Value) WebhookPayload {
	return WebhookPayload{
		ID: value.DeriveID(eventNamespace, name), Type: name, Timestamp: x.then, OrganizationID: x.organization,
		Data: WebhookData{Object: object, PreviousAttributes: previous},
	}
}

// event makes the payload of a record's event. It panics when the example
// data does not mean the event, which the tests exclude.
func (x examples) event(kind Kind, name string) WebhookPayload {
	base := jsontext.Value(exampleRecords[kind])
	old := x.apply(nil, kind, OpPut, base, x.first)
	before, next := old, (*Stored)(nil)
	switch name {
	case string(kind) + ".created":
		before, next = nil, old
	case string(kind) + ".deleted":
		next = x.apply(old, kind, OpDelete, base, x.then)
	default:
		next = x.apply(old, kind, OpPut, overlay(base, exampleChanges[name]), x.then)
	}
	events, err := Events(before, next)
	if err != nil {
		panic(fmt.Sprintf("commerce: example of %s: %v", name, err))
	}
	for _, e := range events {
		if e.Type == name {
			return e
		}
	}
	panic("commerce: the example of " + name + " does not mean it")
}

func (x examples) apply(old *Stored, kind Kind, op Op, record jsontext.Value, at value.Time) *Stored {
	next, err := Apply(old, Change{Kind: kind, Op: op, OrganizationID: x.organization, Record: record}, at)
	if err != nil || next == nil {
		panic(fmt.Sprintf("commerce: example %s: nothing to store, %v", kind, err))
	}
	return next
}

// overlay replaces top-level members of a record.
func overlay(record jsontext.Value, change string) jsontext.Value {
	merged := map[string]jsontext.Value{}
	for _, text := range []jsontext.Value{record, jsontext.Value(change)} {
		if err := json.Unmarshal(text, &merged); err != nil {
			panic(fmt.Sprintf("commerce: example: %v", err))
		}
	}
	out, err := json.Marshal(merged, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("commerce: example: %v", err))
	}
	return out
}

// exampleRecords are the records before the example's change.
var exampleRecords = map[Kind]string{
	KindProduct: `{
		"id": "0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5", "name": "Espresso cup", "description": "Porcelain, 80 ml",
		"sku": "CUP-080-W", "barcode": "4006381333931", "categoryId": "0192f0c2-3c5e-7d22-9b5d-62a1b3c4d5e6",
		"images": ["https://cdn.example.com/cup-080-w.jpg"], "purchasePrice": 3.1, "sellingPrice": 8.9, "taxRate": 20,
		"trackInventory": true, "minStockLevel": 20, "reorderPoint": 40,
		"attributes": {"color": "white", "dishwasherSafe": true}, "tags": ["kitchen", "coffee"]}`,
	KindCategory: `{
		"id": "0192f0c2-3c5e-7d22-9b5d-62a1b3c4d5e6", "siteId": "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7",
		"name": "Cups & mugs", "order": 3}`,
	KindCustomer: `{
		"id": "0192f0c2-5d6f-7c44-9d7f-84c3d5e6f708", "customerNumber": "C-10042", "firstName": "Ada", "lastName": "Okafor",
		"email": "ada.okafor@example.com", "phone": "+49 30 901820", "locale": "de-DE", "currency": "EUR",
		"addresses": [{"label": "Home", "firstName": "Ada", "lastName": "Okafor", "line1": "Lindenstr. 7",
			"city": "Berlin", "postalCode": "10969", "country": "DE"}], "ordersCount": 2, "totalSpent": 61.4}`,
	KindOrder: `{
		"id": "0192f0c2-7e80-7a55-8e80-95d4e6f70819", "siteId": "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7",
		"orderNumber": "2026-004711", "source": "ONLINE", "currency": "EUR",
		"customerId": "0192f0c2-5d6f-7c44-9d7f-84c3d5e6f708", "customerName": "Ada Okafor",
		"customerEmail": "ada.okafor@example.com",
		"shippingAddress": {"firstName": "Ada", "lastName": "Okafor", "line1": "Lindenstr. 7", "city": "Berlin",
			"postalCode": "10969", "country": "DE"},
		"items": [{"productId": "0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5", "sku": "CUP-080-W", "name": "Espresso cup",
			"quantity": 4, "unitPrice": 8.9, "discountAmount": 3.6, "taxRate": 20}],
		"shippingTotal": 4.9, "placedAt": "2026-11-21T06:35:40.118Z"}`,
	KindInvoice: `{
		"id": "0192f0c2-9f91-7b66-9f91-a6e5f708192a", "siteId": "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7",
		"orderId": "0192f0c2-7e80-7a55-8e80-95d4e6f70819", "customerId": "0192f0c2-5d6f-7c44-9d7f-84c3d5e6f708",
		"customerName": "Ada Okafor", "customerEmail": "ada.okafor@example.com", "currency": "EUR",
		"lines": [{"productId": "0192f0c2-1b7d-7e11-8a4c-51f0a2b3c4d5", "description": "Espresso cup", "sku": "CUP-080-W",
			"quantity": 4, "unitPrice": 8.9, "discountAmount": 3.6, "taxRate": 20}],
		"dueAt": "2026-12-05T00:00:00.000Z"}`,
}

// exampleChanges are the fields whose change means the event.
var exampleChanges = map[string]string{
	"product.updated":  `{"sellingPrice": 7.5}`,
	"category.updated": `{"name": "Cups, mugs & glasses", "slug": "cups-mugs"}`,
	"customer.updated": `{"acceptsMarketing": true}`,
	"order.updated":    `{"notes": "Ring twice."}`,
	"order.confirmed":  `{"status": "CONFIRMED"}`,
	"order.completed":  `{"status": "COMPLETED", "completedAt": "2026-11-21T08:35:00.000Z"}`,
	"order.cancelled": `{"status": "CANCELLED", "cancelReason": "Ordered by mistake",
		"cancelledAt": "2026-11-21T08:35:00.000Z"}`,
	"order.fulfilled": `{"fulfillmentStatus": "FULFILLED", "fulfilledAt": "2026-11-21T08:35:00.000Z"}`,
	"order.shipped": `{"fulfillmentStatus": "SHIPPED", "shipments": [{"carrier": "DHL",
		"trackingNumber": "00340434161094015902", "shippedAt": "2026-11-21T08:35:00.000Z"}]}`,
	"order.paid":         examplePaid,
	"payment.completed":  examplePaid,
	"order.refunded":     exampleRefunded,
	"payment.refunded":   exampleRefunded,
	"payment.authorized": `{"paymentStatus": "AUTHORIZED"}`,
	"payment.failed":     `{"paymentStatus": "FAILED"}`,
	"invoice.updated":    `{"notes": "Thank you."}`,
	"invoice.issued": `{"status": "ISSUED", "invoiceNumber": "R-2026-0815",
		"issuedAt": "2026-11-21T08:35:00.000Z"}`,
	"invoice.paid": `{"status": "PAID", "invoiceNumber": "R-2026-0815", "issuedAt": "2026-11-21T08:35:00.000Z",
		"amountPaid": 38.4, "paidAt": "2026-11-21T08:35:00.000Z"}`,
	"invoice.voided": `{"status": "VOID", "invoiceNumber": "R-2026-0815",
		"voidedAt": "2026-11-21T08:35:00.000Z"}`,
}

const (
	examplePaid = `{"paymentStatus": "PAID", "paidAt": "2026-11-21T08:35:00.000Z", "payments": [{"method": "CARD",
		"provider": "stripe", "reference": "pi_3Qk2", "status": "SUCCEEDED", "amount": 43.3,
		"paidAt": "2026-11-21T08:35:00.000Z"}]}`
	exampleRefunded = `{"paymentStatus": "PARTIALLY_REFUNDED", "refunds": [{"amount": 8.9, "reason": "One cup broken",
		"refundedAt": "2026-11-21T08:35:00.000Z"}]}`
)
