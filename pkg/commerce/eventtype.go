package commerce

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Events that no change of a record means.
const (
	EventEndpointDisabled = "endpoint.disabled"
	EventWebhookTest      = "webhook.test"

	resourceEndpoint = "endpoint"
	resourceWebhook  = "webhook"
	resourcePayment  = "payment"
)

// EventType is one entry of the catalogue of events.
type EventType struct {
	Name        string // order.created
	Description string
	Object      any // a value of the Go type whose JSON is data.object, the source of its JSON Schema
	Example     WebhookPayload
}

// Resource is the part of the name before the point; a subscription to
// resource.* takes every event of it. Payment events carry the order.
func (t EventType) Resource() string { return resourceOf(t.Name) }

func resourceOf(name string) string {
	resource, _, _ := strings.Cut(name, ".")
	return resource
}

// TestObject is the object of webhook.test.
type TestObject struct {
	Message string `json:"message"`
}

// Sample is the data of an event whose object is another package's.
type Sample struct {
	Object   any            // a value of the Go type
	Example  jsontext.Value // its JSON
	Previous jsontext.Value // the example's previousAttributes
}

// EventTypes returns the catalogue in its order. endpoint is the data of
// endpoint.disabled, whose object this package does not know. The examples
// are made by the same code as real events, which takes about a millisecond:
// keep the result.
func EventTypes(endpoint Sample) []EventType {
	examples := newExamples()
	types := make([]EventType, len(eventDescriptions))
	for i, d := range eventDescriptions {
		t := EventType{Name: d.name, Description: d.text}
		switch resourceOf(d.name) {
		case resourceEndpoint:
			t.Object = endpoint.Object
			t.Example = examples.wrap(d.name, endpoint.Example, endpoint.Previous)
		case resourceWebhook:
			t.Object = TestObject{}
			t.Example = examples.wrap(d.name, jsontext.Value(`{"message":"This is a test event."}`), null)
		case resourcePayment:
			t.Object = Order{}
			t.Example = examples.event(KindOrder, d.name)
		default:
			kind := Kind(resourceOf(d.name))
			t.Object = New(kind)
			t.Example = examples.event(kind, d.name)
		}
		types[i] = t
	}
	return types
}

// EventNames returns the name of every event type, in the catalogue's order.
func EventNames() []string {
	names := make([]string, len(eventDescriptions))
	for i, d := range eventDescriptions {
		names[i] = d.name
	}
	return names
}

// ValidSubscription reports whether s is a name of the catalogue,
// <resource>.* or *.
func ValidSubscription(s string) bool {
	if s == "*" {
		return true
	}
	resource, all := strings.CutSuffix(s, ".*")
	for _, d := range eventDescriptions {
		if d.name == s || all && resourceOf(d.name) == resource {
			return true
		}
	}
	return false
}

// Matches reports whether a subscription takes the event: by its name, by
// its resource, or by *, which takes all but webhook.test.
func Matches(subscribed []string, eventType string) bool {
	return slices.ContainsFunc(subscribed, func(s string) bool {
		if s == "*" {
			return eventType != EventWebhookTest
		}
		if s == eventType {
			return true
		}
		resource, all := strings.CutSuffix(s, ".*")
		return all && resource == resourceOf(eventType)
	})
}

type eventDescription struct{ name, text string }

var eventDescriptions = []eventDescription{
	{"product.created", "A product was stored for the first time."},
	{"product.updated", "A field of a product, or the sites that sell it, changed."},
	{"product.deleted", "A product was deleted; the object is the last one known."},
	{"category.created", "A category was stored for the first time."},
	{"category.updated", "A field of a category changed."},
	{"category.deleted", "A category was deleted; the object is the last one known."},
	{"order.created", "An order was stored for the first time."},
	{"order.updated", "A field of an order changed."},
	{"order.deleted", "An order was deleted; the object is the last one known."},
	{"order.confirmed", "An order was confirmed, or went on to be processed or completed without that state."},
	{"order.completed", "An order's status became COMPLETED."},
	{"order.cancelled", "An order's status became CANCELLED."},
	{"order.fulfilled", "All goods of an order were provided: its fulfillmentStatus became FULFILLED, SHIPPED or DELIVERED."},
	{"order.shipped", "The goods of an order left: its fulfillmentStatus became SHIPPED or DELIVERED."},
	{"order.paid", "An order was paid in full."},
	{"payment.completed", "An order was paid in full; the object is the order."},
	{"order.refunded", "Money was given back for an order, in part or in full."},
	{"payment.refunded", "Money was given back for an order, in part or in full; the object is the order."},
	{"payment.authorized", "An order's payment was authorized; the object is the order."},
	{"payment.failed", "An order's payment failed; the object is the order."},
	{"customer.created", "A customer was stored for the first time."},
	{"customer.updated", "A field of a customer changed."},
	{"customer.deleted", "A customer was deleted; the object is the last one known."},
	{"invoice.created", "An invoice was stored for the first time."},
	{"invoice.updated", "A field of an invoice changed; that it becomes overdue as time passes is no change."},
	{"invoice.deleted", "An invoice was deleted; the object is the last one known."},
	{"invoice.issued", "An invoice was issued: it is new or was a draft, and is ISSUED, PARTIALLY_PAID or PAID."},
	{"invoice.paid", "An invoice's status became PAID."},
	{"invoice.voided", "An invoice's status became VOID."},
	{EventEndpointDisabled, "The service disabled a webhook endpoint; sent to the other endpoints of its application. " +
		"The object is the endpoint, its secret masked."},
	{EventWebhookTest, "A test that was asked for; the object is a message."},
}
