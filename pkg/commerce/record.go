package commerce

import (
	"fmt"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/go-json-experiment/json"
)

// Record is a *Product, *Category, *Order, *Customer or *Invoice.
type Record interface {
	// Kind is the kind of the record.
	Kind() Kind
	// Head is what every kind has.
	Head() Head
}

// Head is what every kind has. SiteID is nil for a record of no site, and
// for every product: a product's sites are no part of its shape.
type Head struct {
	ID             value.ID
	OrganizationID value.ID
	SiteID         *value.ID
	CreatedAt      value.Time
	UpdatedAt      value.Time
}

// New returns an empty record of the kind; it panics on an unknown kind.
func New(kind Kind) Record {
	switch kind {
	case KindProduct:
		return new(Product)
	case KindCategory:
		return new(Category)
	case KindOrder:
		return new(Order)
	case KindCustomer:
		return new(Customer)
	case KindInvoice:
		return new(Invoice)
	}
	panic("commerce: no kind " + string(kind))
}

// Decode reads stored JSON. The text is trusted: it is what [Encode] wrote.
func Decode(kind Kind, doc []byte) (Record, error) {
	if !kind.valid() {
		return nil, fmt.Errorf("decode a stored record: no kind %q", kind)
	}
	r := New(kind)
	if err := json.Unmarshal(doc, r); err != nil {
		return nil, fmt.Errorf("decode a stored %s: %w", kind, err)
	}
	return r, nil
}

// Encode writes a record's JSON: compact, every field present, in the order
// of the struct.
func Encode(r Record) ([]byte, error) {
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a %s: %w", r.Kind(), err)
	}
	return doc, nil
}
