package lists

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Query holds the checked parameters of a list.
type Query struct {
	Page   int
	Limit  int
	After  *value.ID // of a walk by id: behind which it goes on; Page is 1 then
	Order  Order
	Desc   bool
	Search []string // folded tokens, all of which must occur
	Own    []OwnFilter

	list  *List
	given map[string]argument
}

// OwnFilter asks for the documents with a value of one of the organization's own fields.
type OwnFilter struct {
	Param  string // as the request names it, metadata[erpId]
	Key    string
	Values []string // of which one will do; nil: any
}

// ID returns the UUID of an ID filter; ok is false when it was not given, or
// given as the word for documents without one.
func (q *Query) ID(name string) (id value.ID, ok bool) {
	if a, given := q.given[name]; given && len(a.ids) == 1 {
		return a.ids[0], true
	}
	return value.ID{}, false
}

// Bool returns a Bool filter, or the fallback when it was not given.
func (q *Query) Bool(name string, fallback bool) bool {
	if a, given := q.given[name]; given {
		return a.flag
	}
	return fallback
}

// Texts returns the values of an Enum, a Code or a Text; nil when it was not given.
func (q *Query) Texts(name string) []string { return q.given[name].texts }

// Range returns the ends of a Range; nil where none was given.
func (q *Query) Range(name string) (from, to *value.Time) {
	a := q.given[name]
	return (*value.Time)(a.low), (*value.Time)(a.high)
}

// Has reports whether the filter was given.
func (q *Query) Has(name string) bool {
	_, given := q.given[name]
	return given
}

// Offset is how many entries lie before the page.
func (q *Query) Offset() int { return (q.Page - 1) * q.Limit }

// Index returns the query of the list's index: the given filters that have a
// column, and more, which the owner adds.
func (q *Query) Index(more ...columnar.Filter) columnar.Query {
	filters := more[:len(more):len(more)]
	for i := range q.list.Filters {
		f := &q.list.Filters[i]
		if a, given := q.given[f.Name]; given && (f.Column != "" || f.Kind == IDs || f.Kind == Visible) {
			filters = append(filters, f.index(q.list.Schema, a))
		}
	}
	out := columnar.Query{
		Filter: columnar.All(filters...), Search: q.Search, Desc: q.Desc, Offset: q.Offset(), Limit: q.Limit,
		OrderBy: q.list.Schema.Col(cmp.Or(q.Order.Column, q.Order.Name)),
	}
	if q.After != nil {
		after := [16]byte(*q.After)
		out.AfterID = &after
	}
	return out
}

// Key is the value of an identifier in a keyword column: its 16 bytes.
func Key(id value.ID) string { return string(id[:]) }

// Keys is Key of each.
func Keys(ids []value.ID) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = Key(id)
	}
	return keys
}
