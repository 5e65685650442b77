package commerce

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/go-json-experiment/json"
)

// Kind names a kind of record, as messages and events write it.
type Kind string

// The kinds. Each has a file of its name that declares everything about it.
const (
	KindProduct  Kind = "product"
	KindCategory Kind = "category"
	KindOrder    Kind = "order"
	KindCustomer Kind = "customer"
	KindInvoice  Kind = "invoice"
	KindStock    Kind = "stock"
)

// kinds is the table of kinds. A new kind goes to the end: stored deletions
// name a kind by its position.
var kinds = []*definition{
	define[Product, productInput](productKind), define[Category, categoryInput](categoryKind),
	define[Order, orderInput](orderKind), define[Customer, customerInput](customerKind),
	define[Invoice, invoiceInput](invoiceKind), define[Stock, stockInput](stockKind),
}

// definition is everything that differs between kinds.
type definition struct {
	kind   Kind
	plural string        // the name of the list: its path segment and the resource of its scope; words are joined by hyphens
	text   string        // describes the records
	events []recordEvent // created, updated and deleted first
	sample string        // the example record of the catalogue of events
	noSite noSite        // how visible a record of no site is
	sites  bool          // a message has the record's siteIds, and externalRef, beside the record
	months bool          // the list grows with time and is kept in partitions of a month
	// columns name the fields of the shape that the list can filter, search or
	// sort by. Documents are stored with the positions of their columns: a new
	// one goes to the end.
	columns []string
	own     string         // the field that holds the organization's own fields; "" when there is none
	search  []string       // columns that search looks into
	orders  []lists.Order  // the first is the default
	filters []lists.Filter // one without a Kind filters by the column of its name
	// identify derives the identifier of a record from its members; nil where the
	// sender gives it.
	identify func(d *draft, id *value.ID, m members) error
	// personal are the fields of the shape that may say who a customer is, in a kind
	// whose read scope does not say that its reader may know.
	personal []string
	// where makes the filters that have no column; nil if the kind has none.
	where func(w *where) error
	// appendShape appends the GET shape of a document; nil if it is the document.
	appendShape func(dst, doc []byte, now value.Time) []byte

	// define derives these.
	record func() any   // a new GET shape
	input  func() input // a new record as a back office sends it
	page   any          // a page of the list, for the documentation
	list   *lists.List
	fields []indexedField
	ownAt  int // the position of own in the shape
}

// define derives the list and its columns from the declaration and the types
// of the kind's records: as they are read, and as a back office sends them.
func define[S, I any, P interface {
	*I
	input
}](d *definition) *definition {
	d.record = func() any { return new(S) }
	d.input = func() input { return P(new(I)) }
	d.page = lists.Page[S]{}
	d.list = &lists.List{Name: d.plural, Walk: true, Most: lists.MaxWalk, Sync: "updatedFrom", Orders: d.orders, Own: d.own}
	shape := shapeOf(d)
	for _, f := range append(slices.Clone(d.filters), commonFilters()...) {
		d.list.Filters = append(d.list.Filters, shape.filter(f))
	}
	columns := make([]columnar.Column, len(d.columns))
	for i, name := range d.columns {
		columns[i] = shape.column(name, d.search, d.list)
	}
	d.list.Schema = columnar.MustSchema(d.plural, columns...)
	d.fields, d.ownAt = shape.fields(d.list.Schema), shape.position(d.own)
	return d
}

// definition looks the kind up in the table; nil for an unknown kind.
func (k Kind) definition() *definition {
	for _, d := range kinds {
		if d.kind == k {
			return d
		}
	}
	return nil
}

// known is definition for a kind that was checked before; it panics on an
// unknown one.
func (k Kind) known() *definition {
	if d := k.definition(); d != nil {
		return d
	}
	panic("commerce: no kind " + string(k))
}

// Kinds returns every kind.
func Kinds() []Kind {
	all := make([]Kind, len(kinds))
	for i, d := range kinds {
		all[i] = d.kind
	}
	return all
}

// ParseKind returns the kind of that name, exactly as written.
func ParseKind(s string) (Kind, error) {
	if k := Kind(s); k.definition() != nil {
		return k, nil
	}
	return "", errors.New("must be one of " + strings.Join(Kind("").Values(), ", "))
}

// Plural is the name of the kind's list: its path segment and the resource
// of its scope.
func (k Kind) Plural() string { return k.known().plural }

// Text describes the kind's records in a sentence.
func (k Kind) Text() string { return k.known().text }

// Words are the words of a kind's name or plural, such as inventory-levels.
func Words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
}

// Monthly reports whether the kind's list is kept in partitions of a month.
func (k Kind) Monthly() bool { return k.known().months }

// Columns names the fields that the kind's list filters, searches or sorts by.
func (k Kind) Columns() []string { return slices.Clone(k.known().columns) }

// Personal names the fields of the kind that may say who a customer is, customers'
// own fields apart: all of those do.
func (k Kind) Personal() []string { return slices.Clone(k.known().personal) }

// Page returns an empty page of the kind's list, for the documentation.
func (k Kind) Page() any { return k.known().page }

// Values lists what the type accepts.
func (Kind) Values() []string {
	names := make([]string, len(kinds))
	for i, d := range kinds {
		names[i] = string(d.kind)
	}
	return names
}

// UnmarshalText implements [encoding.TextUnmarshaler] with the rules of [ParseKind].
func (k *Kind) UnmarshalText(b []byte) (err error) {
	*k, err = ParseKind(string(b))
	return err
}

// Op is what a change does to its record.
type Op string

// The operations.
const (
	OpPut    Op = "put"
	OpDelete Op = "delete"
	OpAdjust Op = "adjust" // of stock
)

// Values lists what the type accepts.
func (Op) Values() []string { return []string{string(OpPut), string(OpDelete), string(OpAdjust)} }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (o *Op) UnmarshalText(b []byte) error { return parseEnum(o, b) }

// New returns an empty GET shape of the kind, such as a *Product; it panics
// on an unknown kind.
func New(kind Kind) any { return kind.known().record() }

// Encode writes a GET shape as JSON: compact, every field present, in the
// order of the struct.
func Encode(record any) ([]byte, error) {
	doc, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode a %T: %w", record, err)
	}
	return doc, nil
}
