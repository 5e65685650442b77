package commerce

import (
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TombstoneAge is how long a deleted record's tombstone is kept.
const TombstoneAge = 90 * 24 * time.Hour

// Stored is a record as the table holds it. A deleted record is a tombstone:
// it keeps its identity, revision and version, but no document, sites or externalRef.
type Stored struct {
	Kind           Kind
	ID             value.ID
	OrganizationID value.ID
	Doc            jsontext.Value // the stored JSON; nil of a tombstone
	SiteIDs        []value.ID     // of a product, sorted; nil means every site
	ExternalRef    string         // of a product, beside its document; "" means none
	Revision       value.Time     // rises with every change, tombstones included
	Version        *int64         // the sender's; nil when it never gave one
	Deleted        bool
	Silent         bool // the change that made this revision emits no events
	// Of a row of stock:
	LowAt       *value.Amount // the threshold of its product at this revision; nil where it has none or is not below the last
	Adjusted    bool          // there were adjustments since the put
	Unpublished bool          // Doc has adjustments that the table's record of this revision has not
	// Arrived is when the change that made this revision was sent; 0 when that
	// is not known.
	Arrived value.Time
}

// StoredChange is one write of a record: what it was, nil when there was none,
// and what it is.
type StoredChange struct{ Old, New *Stored }

// Record decodes the document, which [Encode] wrote, into its GET shape, such as a
// *Product; a tombstone has none.
func (s *Stored) Record() (any, error) {
	d := s.Kind.definition()
	if d == nil {
		return nil, fmt.Errorf("decode a stored record: no kind %q", s.Kind)
	}
	r := d.record()
	if err := json.Unmarshal(s.Doc, r); err != nil {
		return nil, fmt.Errorf("decode a stored %s: %w", s.Kind, err)
	}
	return r, nil
}

// AppendShape appends the GET shape of a stored document as it is at a time.
// It differs from the document only in an invoice's isOverdue.
func AppendShape(dst []byte, kind Kind, doc []byte, now value.Time) []byte {
	if d := kind.known(); d.appendShape != nil {
		return d.appendShape(dst, doc, now)
	}
	return append(dst, doc...)
}

// shape is the GET shape of a stored record as a value of its own.
func (s *Stored) shape(now value.Time) jsontext.Value {
	return AppendShape(make([]byte, 0, len(s.Doc)), s.Kind, s.Doc, now)
}

// ExpiresAt is when a tombstone may be removed; ok is false for a live record.
func (s *Stored) ExpiresAt() (at value.Time, ok bool) {
	return s.Revision.Add(TombstoneAge), s.Deleted
}
