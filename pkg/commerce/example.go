package commerce

import (
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The examples of the catalogue are made by the code of real events: a record
// is stored, then changed in the way that means the event.
var exampleOrganization = value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00")

const (
	exampleStored  value.Time = 1_795_242_941_242 // 2026-11-21T06:35:41.242Z
	exampleChanged            = exampleStored + 2*60*60*1_000
)

// examplePayload makes the payload of an object other than a record.
func examplePayload(name string, object, previous jsontext.Value) WebhookPayload {
	return WebhookPayload{
		ID: value.DeriveID(eventNamespace, name), Type: name, APIVersion: APIVersion, Timestamp: exampleChanged, OrganizationID: exampleOrganization,
		Data: WebhookData{Object: object, PreviousAttributes: previous},
	}
}

// exampleChanges are the changes of the example record that mean the event; the
// last one brings it about.
func exampleChanges(d *definition, e recordEvent) []Change {
	first := Change{Kind: d.kind, Op: OpPut, OrganizationID: exampleOrganization, Record: overlay(jsontext.Value(d.sample), e.before)}
	last := first
	switch e.name {
	case string(d.kind) + ".created":
		return []Change{first}
	case string(d.kind) + ".deleted":
		last.Op = OpDelete
	default:
		last.Record = overlay(first.Record, e.example)
	}
	return []Change{first, last}
}

// ExampleChanges returns the changes that mean an event of a record with the id,
// which must not be stored yet; a row of stock is of a product with the id. They have to
// be made in their order; nil says that no record's change means the event.
func ExampleChanges(eventType string, id value.ID) []Change {
	for d, e := range recordEvents() {
		if e.name != eventType {
			continue
		}
		changes, named := exampleChanges(d, e), "id"
		if d.identify != nil {
			named = "productId"
		}
		for i := range changes {
			changes[i].Record = overlay(changes[i].Record, `{"`+named+`": "`+id.String()+`"}`)
		}
		if e.lowAt != 0 {
			product := overlay(jsontext.Value(productKind.sample), `{"id": "`+id.String()+`", "reorderPoint": `+e.lowAt.String()+`}`)
			changes = append([]Change{{Kind: KindProduct, Op: OpPut, OrganizationID: exampleOrganization, Record: product}}, changes...)
		}
		return changes
	}
	return nil
}

// exampleEvent makes the payload of a record's event. It panics when the
// example data does not mean the event, which the tests exclude.
func exampleEvent(d *definition, e recordEvent) WebhookPayload {
	var before, next *Stored
	for at, change := range exampleChanges(d, e) {
		stored, err := Apply(next, change, exampleStored+value.Time(at)*(exampleChanged-exampleStored))
		if err != nil || stored == nil {
			panic(fmt.Sprintf("commerce: example of %s: nothing to store, %v", e.name, err))
		}
		if e.lowAt != 0 {
			stored.LowAt = &e.lowAt
		}
		before, next = next, stored
	}
	events, err := Events(before, next)
	i := slices.IndexFunc(events, func(made WebhookPayload) bool { return made.Type == e.name })
	if i < 0 {
		var types []string
		for _, made := range events {
			types = append(types, made.Type)
		}
		panic(fmt.Sprintf("commerce: the example of %s means %q instead: %v", e.name, types, err))
	}
	return events[i]
}

// overlay replaces top-level members of a record by those of the change.
func overlay(record jsontext.Value, change string) jsontext.Value {
	if change == "" {
		return record
	}
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
