package commerce

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// APIVersion is the version of the payloads' shape, a date. It changes when
// a client that reads the last one would misread the next.
const APIVersion = "2026-11-01"

// WebhookPayload is the body that is delivered, byte-identical on every
// attempt.
type WebhookPayload struct {
	ID             value.ID    `json:"id" doc:"The event's id, the same for every attempt and endpoint: the header webhook-id."`
	Type           string      `json:"type" doc:"A type of the catalogue, such as order.created; an open enumeration."`
	APIVersion     string      `json:"apiVersion" doc:"The version of the payload's shape, a date: 2026-11-01. Fields may be added within a version."`
	Timestamp      value.Time  `json:"timestamp" doc:"When the change was stored. It increases with every change of the record."`
	OrganizationID value.ID    `json:"organizationId"`
	SiteID         *value.ID   `json:"siteId" doc:"The site of the object. null if it belongs to no site."`
	Data           WebhookData `json:"data" doc:"What happened."`

	// ObjectID is the id of the object; zero where it has none.
	ObjectID value.ID `json:"-"`
}

// WebhookData is the data of a payload. Object is the GET shape at the time of
// the event, on deletion the last known one. PreviousAttributes holds the
// changed top-level fields with their old values; it is null on created and
// deleted, and {} when only a product's sites changed.
type WebhookData struct {
	Object             jsontext.Value `json:"object" doc:"The object as GET answered it at the time of the event; for a deletion, its last state."`
	PreviousAttributes jsontext.Value `json:"previousAttributes" nullable:"true" doc:"The changed top-level fields with their old values; a changed array is whole. null for created and deleted. Empty if no shown field changed: only a product's sites, or an endpoint's health."`
}

// Encode writes the payload; equal payloads give equal bytes.
func (p *WebhookPayload) Encode() ([]byte, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode a %s payload: %w", p.Type, err)
	}
	return body, nil
}

// eventNamespace is the namespace of event identifiers, a constant of the
// service: changing it would make replays send everything again.
var eventNamespace = value.MustID("6f0d7c0e-6b0b-5d9f-9c56-0f6a3f1d8b11")

// recordEvent is an event that a change of a kind's record means.
type recordEvent struct {
	name string
	text string // its description in the catalogue
	// happened compares two revisions; nil for created, updated and deleted.
	happened func(was, is states) bool
	before   string // the fields in which the kind's example record differs before the change; "": in none
	example  string // the fields whose change means the event
	// lowAt is the threshold of the example's product; 0: it plays no part.
	lowAt value.Amount
}

// lifecycle are the events that every kind has. what names a record of the
// kind at the start of a sentence, updated says what an update is.
func lifecycle(kind Kind, what, updated, example string) []recordEvent {
	return []recordEvent{
		{name: string(kind) + ".created", text: what + " was stored for the first time."},
		{name: string(kind) + ".updated", text: updated, example: example},
		{name: string(kind) + ".deleted", text: what + " was deleted; the object is the last one known."},
	}
}

// EventID is the identifier of a record's event: the same revision of the
// same record gives the same identifier, so that a replay sends nothing new.
func EventID(kind Kind, organization, id value.ID, revision value.Time, eventType string) value.ID {
	return value.DeriveID(eventNamespace, string(kind)+"\n"+organization.String()+"\n"+id.String()+"\n"+
		strconv.FormatInt(int64(revision), 10)+"\n"+eventType)
}

// Events returns what a stored change means, in the order of the catalogue.
// old is the record before, nil or a tombstone where there was none; next is
// the record after, nil where the table dropped a tombstone. A silent change
// means nothing, and so does one that kept the revision. The error says that
// a stored document cannot be read.
func Events(old, next *Stored) ([]WebhookPayload, error) {
	if next == nil || next.Silent || old != nil && old.Revision == next.Revision {
		return nil, nil
	}
	if old != nil && old.Deleted {
		old = nil
	}
	shown, verb := next, ".updated"
	switch {
	case next.Deleted && old == nil:
		return nil, nil
	case next.Deleted:
		shown, verb = old, ".deleted"
	case old == nil:
		verb = ".created"
	}
	object := shown.shape(next.Revision)
	after, err := splitObject(object)
	if err != nil {
		return nil, unreadable(shown, err)
	}
	data, before := WebhookData{Object: object, PreviousAttributes: null}, members(nil)
	if verb == ".updated" {
		if before, err = splitObject(old.shape(next.Revision)); err != nil {
			return nil, unreadable(old, err)
		}
		changed := false
		if data.PreviousAttributes, changed = differences(before, after); !changed && sameBeside(old, next) {
			return nil, nil
		}
	}
	types := []string{string(next.Kind) + verb}
	if !next.Deleted {
		types = append(types, transitions(next, before, after)...)
	}
	return payloads(next, after, data, types)
}

var null = jsontext.Value("null")

func unreadable(s *Stored, err error) error {
	return fmt.Errorf("read a stored %s %s at %s: %w", s.Kind, s.ID, s.Revision, err)
}

// differences writes the members of before that are others in after, but
// updatedAt. A member that one of them lacks counts as null.
func differences(before, after members) (previous jsontext.Value, changed bool) {
	previous = append(previous, '{')
	for i, m := range after {
		if m.name == "updatedAt" {
			continue
		}
		old := null
		if i < len(before) && before[i].name == m.name { // as a rule: one encoder wrote both
			old = before[i].value
		} else if v, ok := before.get(m.name); ok {
			old = v
		}
		if bytes.Equal(old, m.value) {
			continue
		}
		if changed {
			previous = append(previous, ',')
		}
		changed = true
		previous = appendMember(previous, member{m.name, old})
	}
	return append(previous, '}'), changed
}

// payloads makes one payload of each type; all share the data, whose object
// has the fields.
func payloads(next *Stored, fields members, data WebhookData, types []string) ([]WebhookPayload, error) {
	site, err := siteOf(fields)
	if err != nil {
		return nil, unreadable(next, err)
	}
	events := make([]WebhookPayload, len(types))
	for i, t := range types {
		events[i] = WebhookPayload{
			ID:             EventID(next.Kind, next.OrganizationID, next.ID, next.Revision, t),
			Type:           t,
			APIVersion:     APIVersion,
			Timestamp:      next.Revision,
			OrganizationID: next.OrganizationID,
			SiteID:         site,
			Data:           data,
			ObjectID:       next.ID,
		}
	}
	return events, nil
}

// states are the fields whose changes mean events of their own. The zero
// value is the state of a record that was not there.
type states struct {
	status, payment, fulfillment string
	refunded                     value.Amount
	stocked                      bool          // it is a row of stock
	available                    value.Amount  // of that
	lowAt                        *value.Amount // its threshold, of the change that made it
}

func statesOf(m members) (s states) {
	for i := range m {
		switch m[i].name {
		case "status":
			s.status = string(text(m[i].value))
		case "paymentStatus":
			s.payment = string(text(m[i].value))
		case "fulfillmentStatus":
			s.fulfillment = string(text(m[i].value))
		case "refundedTotal":
			s.refunded, _ = value.ParseAmount(string(m[i].value))
		case "available":
			s.available, _ = value.ParseAmount(string(m[i].value))
			s.stocked = true
		}
	}
	return s
}

// transitions returns the types of the state changes between two revisions,
// in the order of the catalogue; before is empty when there was none.
func transitions(next *Stored, before, after members) (types []string) {
	was, is := statesOf(before), statesOf(after)
	is.lowAt = next.LowAt
	for _, e := range next.Kind.known().events {
		if e.happened != nil && e.happened(was, is) {
			types = append(types, e.name)
		}
	}
	return types
}

// The states that events follow from.
func status(s states) string      { return s.status }
func payment(s states) string     { return s.payment }
func fulfillment(s states) string { return s.fulfillment }

// becomes reports that a state became another.
func becomes(state func(states) string, to string) func(was, is states) bool {
	return func(was, is states) bool { return state(is) == to && state(was) != to }
}

// enters reports that a state came into a set from outside it.
func enters(state func(states) string, set ...string) func(was, is states) bool {
	return func(was, is states) bool { return oneOf(state(is), set...) && !oneOf(state(was), set...) }
}

func oneOf(s string, set ...string) bool { return slices.Contains(set, s) }

// text is the JSON text without escapes that b begins with, else nothing.
func text(b []byte) []byte {
	if len(b) == 0 || b[0] != '"' {
		return nil
	}
	end := bytes.IndexByte(b[1:], '"')
	if end < 0 {
		return nil
	}
	return b[1 : 1+end]
}

// siteOf reads an object's siteId; a product has none.
func siteOf(fields members) (*value.ID, error) {
	raw, ok := fields.get("siteId")
	if !ok || raw.Kind() == 'n' {
		return nil, nil
	}
	id, err := value.ParseID(string(text(raw)))
	return &id, err
}
