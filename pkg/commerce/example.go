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
func (x examples) event(d *definition, e recordEvent) WebhookPayload {
	old := x.apply(nil, d.kind, OpPut, d.sample, x.first)
	before, next := old, (*Stored)(nil)
	switch e.name {
	case string(d.kind) + ".created":
		before, next = nil, old
	case string(d.kind) + ".deleted":
		next = x.apply(old, d.kind, OpDelete, d.sample, x.then)
	default:
		next = x.apply(old, d.kind, OpPut, string(overlay(jsontext.Value(d.sample), e.example)), x.then)
	}
	events, err := Events(before, next)
	if err != nil {
		panic(fmt.Sprintf("commerce: example of %s: %v", e.name, err))
	}
	for _, made := range events {
		if made.Type == e.name {
			return made
		}
	}
	panic("commerce: the example of " + e.name + " does not mean it")
}

func (x examples) apply(old *Stored, kind Kind, op Op, record string, at value.Time) *Stored {
	next, err := Apply(old, Change{Kind: kind, Op: op, OrganizationID: x.organization, Record: jsontext.Value(record)}, at)
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
