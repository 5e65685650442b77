package importer

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/itchyny/gojq"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/strictjson"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// Place is the position of a record in its source.
type Place struct {
	File string
	Line int   // of the record's first byte, from 1
	Read *Read // nil where it is not known
}

func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Record is one ingestion record, as the records array of an envelope holds
// it.
type Record struct {
	Kind    commerce.Kind  `json:"kind"`
	Op      commerce.Op    `json:"op"`
	Body    jsontext.Value `json:"record"`
	SiteIDs jsontext.Value `json:"siteIds,omitzero"`
	// ExternalRef is for products only, as SiteIDs are.
	ExternalRef jsontext.Value `json:"externalRef,omitzero"`
	Version     *int64         `json:"version,omitzero"`
	Silent      bool           `json:"silent,omitzero"`

	// OrganizationID is what the source itself says of the owner; nil when it
	// says nothing. An envelope says it once for its records.
	OrganizationID *value.ID `json:"organizationId,omitzero"`
	Place          Place     `json:"-"`
}

// setEnvelope sets what is the envelope's among the members.
func (r *Record) setEnvelope(members map[string]any) error {
	for name, into := range map[string]any{"op": &r.Op, "version": &r.Version, "siteIds": &r.SiteIDs, "externalRef": &r.ExternalRef} {
		if members[name] == nil {
			continue
		}
		text, err := gojq.Marshal(members[name])
		if err == nil {
			err = strictjson.Unmarshal(text, into)
		}
		if err != nil {
			bad := reject(r.Place, err)
			bad.Field = name
			return bad
		}
	}
	return nil
}

// Rejection says why one row of a source is not sent.
type Rejection struct {
	Place   Place
	Reason  string // a stable code
	Field   string // empty when the whole row is meant
	Message string
}

func (r *Rejection) Error() string {
	if r.Field == "" {
		return fmt.Sprintf("%s: %s: %s", r.Place, r.Reason, r.Message)
	}
	return fmt.Sprintf("%s: %s: %s %s", r.Place, r.Reason, r.Field, r.Message)
}

// reject turns what a decoder or a check said into the rejection of the row.
func reject(place Place, err error) *Rejection {
	var known *Rejection
	f, ok := fault.As(err)
	switch {
	case errors.As(err, &known):
		return known
	case !ok:
		return &Rejection{Place: place, Reason: fault.CodeValidation, Message: err.Error()}
	case len(f.Details) == 0:
		return &Rejection{Place: place, Reason: f.Code, Message: f.Message}
	default:
		detail := f.Details[0]
		return &Rejection{Place: place, Reason: f.Code, Field: detail.Field, Message: detail.Message}
	}
}

// rejectField names one field of the row.
func rejectField(place Place, field, format string, args ...any) *Rejection {
	return &Rejection{Place: place, Reason: fault.CodeValidation, Field: field, Message: fmt.Sprintf(format, args...)}
}

// encode writes the members of maps in the order of their names, so that the
// same source gives the same bytes.
func encode(v any) jsontext.Value {
	text, err := json.Marshal(v, json.Deterministic(true), json.FormatNilSliceAsNull(true))
	if err != nil {
		panic(fmt.Sprintf("importer: texts and scalars are always JSON: %v", err))
	}
	return text
}
