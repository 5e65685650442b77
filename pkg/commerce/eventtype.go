package commerce

import (
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The events that follow from no change of a record.
const (
	EventEndpointFailing   = "endpoint.failing"
	EventEndpointDisabling = "endpoint.disabling"
	EventEndpointDisabled  = "endpoint.disabled"
	EventEndpointRecovered = "endpoint.recovered"
	EventEventFailed       = "event.failed"
	EventWebhookTest       = "webhook.test"
)

// alert is an event about the delivery of an application's other events.
type alert struct {
	name   string
	object string // the kind of its object
	text   string // its description in the catalogue
}

// alerts returns the alerts in the catalogue's order.
func alerts() []alert {
	const (
		endpoint, event = "endpoint", "event"
		sent            = " Sent to the other endpoints of its application. The object is the endpoint, its secret masked."
	)
	return []alert{
		{EventEndpointFailing, endpoint, "The circuit of a webhook endpoint has been open for an hour: its events are held." + sent},
		{EventEndpointDisabling, endpoint, "A webhook endpoint is disabled in 24 hours unless an attempt succeeds: every one has failed for four days." + sent},
		{EventEndpointDisabled, endpoint, "The service disabled a webhook endpoint." + sent},
		{EventEndpointRecovered, endpoint, "An attempt succeeded after the endpoint was announced as failing." + sent},
		{
			EventEventFailed, event, "An event FAILED after its last retry; alerts and tests are not announced. " +
				"Sent to the other endpoints of its application. The object is the event as in the list of the history.",
		},
	}
}

// IsAlert reports whether the event is about the delivery of others.
func IsAlert(eventType string) bool {
	return slices.ContainsFunc(alerts(), func(a alert) bool { return a.name == eventType })
}

// EventType is one entry of the catalogue of events.
type EventType struct {
	Name        string // order.created
	Description string
	Object      any // a value of the Go type whose JSON is data.object, or a pointer to one: the source of its JSON Schema
	Example     WebhookPayload
}

// resourceOf is the part of an event's name before the point; a subscription
// to resource.* takes every event of it. Payment events carry the order.
func resourceOf(name string) string {
	resource, _, _ := strings.Cut(name, ".")
	return resource
}

// WebhookTestMessage is the object of webhook.test.
type WebhookTestMessage struct {
	Message string `json:"message" doc:"A text for people."`
}

// Sample is the data of an event whose object is another package's.
type Sample struct {
	Object   any            // a value of the Go type
	Example  jsontext.Value // its JSON
	Previous jsontext.Value // the example's previousAttributes
}

// EventTypes returns the catalogue in its order. samples has the data of each
// alert by its name, whose object this package does not know. The examples
// are made by the same code as real events, which takes about a millisecond:
// keep the result.
func EventTypes(samples map[string]Sample) (types []EventType) {
	for d, e := range recordEvents() {
		types = append(types, EventType{Name: e.name, Description: e.text, Object: d.record(), Example: exampleEvent(d, e)})
	}
	for _, a := range alerts() {
		sample := samples[a.name]
		types = append(types, EventType{
			Name: a.name, Description: a.text, Object: sample.Object, Example: examplePayload(a.name, sample.Example, sample.Previous),
		})
	}
	return append(types, EventType{
		Name: EventWebhookTest, Object: WebhookTestMessage{}, Description: "A test that was asked for; the object is a message.",
		Example: examplePayload(EventWebhookTest, jsontext.Value(`{"message":"This is a test event."}`), null),
	})
}

// recordEvents are the events of all kinds, in the catalogue's order.
func recordEvents() iter.Seq2[*definition, recordEvent] {
	return func(yield func(*definition, recordEvent) bool) {
		for _, d := range kinds {
			for _, e := range d.events {
				if !yield(d, e) {
					return
				}
			}
		}
	}
}

// EventNames returns the name of every event type, in the catalogue's order.
func EventNames() []string {
	var names []string
	for _, e := range recordEvents() {
		names = append(names, e.name)
	}
	for _, a := range alerts() {
		names = append(names, a.name)
	}
	return append(names, EventWebhookTest)
}

// EventSets returns the types of each resource by the word for all of them:
// <resource>.*.
func EventSets() map[string][]string {
	sets := map[string][]string{}
	for _, name := range EventNames() {
		all := resourceOf(name) + ".*"
		sets[all] = append(sets[all], name)
	}
	return sets
}

// EventsByObject returns the types whose object is of a kind, by the kind: of
// a record, endpoint or event. A test has no object of a kind.
func EventsByObject() map[string][]string {
	by := map[string][]string{}
	for _, a := range alerts() {
		by[a.object] = append(by[a.object], a.name)
	}
	for d, e := range recordEvents() {
		by[string(d.kind)] = append(by[string(d.kind)], e.name)
	}
	return by
}

// ValidSubscription reports whether s is a name of the catalogue,
// <resource>.* or *.
func ValidSubscription(s string) bool {
	if s == "*" {
		return true
	}
	resource, all := strings.CutSuffix(s, ".*")
	return slices.ContainsFunc(EventNames(), func(name string) bool {
		return name == s || all && resourceOf(name) == resource
	})
}

// Matches reports whether a subscription takes the event: by its name, by
// its resource, or by *, which takes all but webhook.test and those of stock: these
// would flood who did not ask for them.
func Matches(subscribed []string, eventType string) bool {
	return slices.ContainsFunc(subscribed, func(s string) bool {
		if s == "*" {
			return eventType != EventWebhookTest && resourceOf(eventType) != string(KindStock)
		}
		if s == eventType {
			return true
		}
		resource, all := strings.CutSuffix(s, ".*")
		return all && resource == resourceOf(eventType)
	})
}
