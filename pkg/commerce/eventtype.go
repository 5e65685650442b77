package commerce

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The events that follow from no change of a record.
const (
	EventEndpointDisabled = "endpoint.disabled"
	EventWebhookTest      = "webhook.test"
)

// objectEndpoint is the kind of an object that is a webhook endpoint.
const objectEndpoint = "endpoint"

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

// TestObject is the object of webhook.test.
type TestObject struct {
	Message string `json:"message" doc:"A text for people."`
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
func EventTypes(endpoint Sample) (types []EventType) {
	for _, d := range kinds {
		for _, e := range d.events {
			types = append(types, EventType{Name: e.name, Description: e.text, Object: d.record(), Example: exampleEvent(d, e)})
		}
	}
	return append(types, EventType{
		Name: EventEndpointDisabled, Object: endpoint.Object,
		Description: "The service disabled a webhook endpoint; sent to the other endpoints of its application. " +
			"The object is the endpoint, its secret masked.",
		Example: examplePayload(EventEndpointDisabled, endpoint.Example, endpoint.Previous),
	}, EventType{
		Name: EventWebhookTest, Object: TestObject{}, Description: "A test that was asked for; the object is a message.",
		Example: examplePayload(EventWebhookTest, jsontext.Value(`{"message":"This is a test event."}`), null),
	})
}

// EventNames returns the name of every event type, in the catalogue's order.
func EventNames() []string {
	var names []string
	for _, d := range kinds {
		for _, e := range d.events {
			names = append(names, e.name)
		}
	}
	return append(names, EventEndpointDisabled, EventWebhookTest)
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
// a record, or objectEndpoint. A test has no object of a kind.
func EventsByObject() map[string][]string {
	by := map[string][]string{objectEndpoint: {EventEndpointDisabled}}
	for _, d := range kinds {
		for _, e := range d.events {
			by[string(d.kind)] = append(by[string(d.kind)], e.name)
		}
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
