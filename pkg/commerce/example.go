package commerce

import (
	"fmt"
	"slices"

	"github.com/commerce-integration/service/pkg/value"
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

// examplePayload makes the payload of an object that is no record.
func examplePayload(name string, object, previous jsontext.Value) WebhookPayload {
	return WebhookPayload{
		ID: value.DeriveID(eventNamespace, name), Type: name, APIVersion: APIVersion, Timestamp: exampleChanged, OrganizationID: exampleOrganization,
		Data: WebhookData{Object: object, PreviousAttributes: previous},
	}
}

// exampleEvent makes the payload of a record's event. It panics when the
// example data does not mean the event, which the tests exclude.
func exampleEvent(d *definition, e recordEvent) WebhookPayload {
	apply := func(old *Stored, op Op, record jsontext.Value, at value.Time) *Stored {
		next, err := Apply(old, Change{Kind: d.kind, Op: op, OrganizationID: exampleOrganization, Record: record}, at)
		if err != nil || next == nil {
			panic(fmt.Sprintf("commerce: example of %s: nothing to store, %v", e.name, err))
		}
		return next
	}
	sample := overlay(jsontext.Value(d.sample), e.before)
	before := apply(nil, OpPut, sample, exampleStored)
	next := before
	switch e.name {
	case string(d.kind) + ".created":
		before = nil
	case string(d.kind) + ".deleted":
		next = apply(before, OpDelete, sample, exampleChanged)
	default:
		next = apply(before, OpPut, overlay(sample, e.example), exampleChanged)
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
