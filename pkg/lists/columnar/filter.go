package columnar

import "slices"

// Filter says which documents a query is about. Filters are made by the functions
// below and may be used by many queries at once; the zero Filter holds for every
// document. A filter on a column never holds where the column is null, Null apart,
// and Not holds wherever its filter does not, null or not.
type Filter struct {
	op     op
	col    Col
	lo, hi int64
	values []string
	ids    [][16]byte
	of     []Filter
}

type op uint8

const (
	opAll op = iota
	opAny
	opNot
	opIn
	opNull
	opIs
	opBetween
	opVisible
	opIDs
)

// All holds where all of the filters hold; without any, everywhere.
func All(filters ...Filter) Filter { return Filter{op: opAll, of: filters} }

// Any holds where at least one of the filters holds; without any, nowhere.
func Any(filters ...Filter) Filter { return Filter{op: opAny, of: filters} }

// Nowhere says that the filter is Any without any, which holds for no document.
func (f *Filter) Nowhere() bool { return f.op == opAny && len(f.of) == 0 }

// Not holds where f does not.
func Not(f Filter) Filter { return Filter{op: opNot, of: []Filter{f}} }

// In holds where a Keyword has one of the values, or a Text with Match has one of
// them as its first value, with Each as any. Values are folded where the column is.
func In(c Col, values ...string) Filter { return Filter{op: opIn, col: c, values: values} }

// Null holds where a column has no value. A Text needs Match.
func Null(c Col) Filter { return Filter{op: opNull, col: c} }

// Is holds where a Bool is v.
func Is(c Col, v bool) Filter {
	f := Filter{op: opIs, col: c}
	if v {
		f.lo = 1
	}
	return f
}

// Between holds where a Number lies in [lo, hi], both ends included; lo = hi asks
// for one number.
func Between(c Col, lo, hi int64) Filter { return Filter{op: opBetween, col: c, lo: lo, hi: hi} }

// Within holds where a Time lies in [from, to): from included, to not. The ends of
// int64 are not a bound.
func Within(c Col, from, to int64) Filter {
	lo, hi := closed(from, to)
	return Filter{op: opBetween, col: c, lo: lo, hi: hi}
}

// VisibleWithin holds where Document.Visible lies in [from, to), as Within.
func VisibleWithin(from, to int64) Filter {
	lo, hi := closed(from, to)
	return Filter{op: opVisible, lo: lo, hi: hi}
}

// IDs holds for the documents with one of the ids, whatever their Sub.
func IDs(ids ...[16]byte) Filter { return Filter{op: opIDs, ids: ids} }

// closed turns [from, to) into a range with both ends, lo > hi where it is empty.
func closed(from, to int64) (lo, hi int64) {
	switch to {
	case 1<<63 - 1:
		return from, to
	case -1 << 63:
		return 1, 0
	}
	return from, to - 1
}

// ByID returns the ids of the documents for which the filter can hold; false when it is
// not about some ids, or asks for the time at which they became visible.
func (f *Filter) ByID() (ids [][16]byte, ok bool) {
	if f.op == opIDs {
		return f.ids, true
	}
	for i := range f.of {
		if f.op != opAll || f.of[i].asksVisible() {
			return nil, false
		}
		if some, of := f.of[i].ByID(); of {
			ids, ok = some, true
		}
	}
	return ids, ok
}

func (f *Filter) asksVisible() bool {
	return f.op == opVisible || slices.ContainsFunc(f.of, func(part Filter) bool { return part.asksVisible() })
}

// check panics when a filter asks of a column what its type does not have.
func (f *Filter) check(s *Schema) {
	switch f.op {
	case opIn:
		s.want(f.col, "In", func(c Column) bool { return c.Type == Keyword || c.Match })
	case opNull:
		s.want(f.col, "Null", func(c Column) bool { return c.Type != Text || c.Match })
	case opIs:
		s.want(f.col, "Is", isType(Bool))
	case opBetween:
		s.want(f.col, "Between or Within", func(c Column) bool { return c.Type == Number || c.Type == Time })
	}
}
