package columnar

import (
	"bytes"
	"math"
	"slices"
)

// Summary describes documents that are not in a view: how many there are, and the
// bounds of their ids and times. The bounds are exact: some document is on each of
// them.
type Summary struct {
	Count   int
	IDs     IDRange     // zero when Count is 0
	Visible Range       // of Document.Visible; zero when Count is 0
	Times   []TimeRange // every Time column of the schema, in its order
}

// IDRange is bounds of ids, both included.
type IDRange struct{ First, Last [16]byte }

// Range is bounds in milliseconds since 1970 UTC, both included.
type Range struct{ Min, Max int64 }

// TimeRange is the bounds of a Time column and how many documents are null there.
// When all are, the bounds are zero.
type TimeRange struct {
	Range
	Nulls int
}

// Summary describes all documents of the view, deleted ones apart.
func (v *View) Summary() Summary {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t := v.table
	s := Summary{Count: t.live, Times: []TimeRange{}}
	s.Visible, _ = t.bounds(func(g *RowGroup) ([]int64, *RowSet) { return g.Visible, nil })
	for i, declared := range v.schema.columns {
		if declared.Type == Time {
			r, n := t.bounds(func(g *RowGroup) ([]int64, *RowSet) { return g.Columns[i+1].Numbers, g.Columns[i+1].Null })
			s.Times = append(s.Times, TimeRange{Range: r, Nulls: t.live - n})
		}
	}
	if ids := t.ids(); len(ids) > 0 {
		s.IDs = IDRange{t.key(ids[0]).ID, t.key(ids[len(ids)-1]).ID}
	}
	return s
}

// Equal reports whether summaries say the same.
func (s Summary) Equal(other Summary) bool {
	return s.Count == other.Count && s.IDs == other.IDs && s.Visible == other.Visible && slices.Equal(s.Times, other.Times)
}

// bounds returns the least and the greatest number of a column in live rows, and how
// many rows are not null.
func (t *table) bounds(column func(*RowGroup) (values []int64, null *RowSet)) (Range, int) {
	n, r := 0, Range{Min: math.MaxInt64, Max: math.MinInt64}
	for _, g := range t.groups {
		if g == nil {
			continue
		}
		values, null := column(g)
		rows := g.Live
		rows.Without(null)
		for row := range rows.all() {
			v := values[row]
			r.Min, r.Max = min(r.Min, v), max(r.Max, v)
			n++
		}
	}
	if n == 0 {
		return Range{}, 0
	}
	return r, n
}

// Time returns the value of a Time column, or false where it is null. It panics for
// a column of another type.
func (d *Document) Time(c Col) (ms int64, ok bool) {
	d.schema.want(c, "Time", isType(Time))
	value, ok := d.cell(c)
	return value.number, ok
}

// coverage is how many of a summary's documents match a filter.
type coverage uint8

const (
	coversNone coverage = iota
	coversSome          // or none, or all: the summary does not say
	coversAll
)

func (s *Summary) coverage(schema *Schema, f *Filter) coverage {
	f.check(schema)
	switch f.op {
	case opAll:
		least := coversAll
		for i := range f.of {
			least = min(least, s.coverage(schema, &f.of[i]))
		}
		return least
	case opAny:
		most := coversNone
		for i := range f.of {
			most = max(most, s.coverage(schema, &f.of[i]))
		}
		return most
	case opNot:
		return coversAll - s.coverage(schema, &f.of[0])
	case opVisible:
		return s.Visible.coverage(f.lo, f.hi)
	case opNull, opBetween:
		if schema.Column(f.col).Type == Time {
			return s.timeCoverage(schema.timeRank(f.col), f)
		}
	case opIn:
		if len(f.values) == 0 {
			return coversNone
		}
	case opIDs:
		if !slices.ContainsFunc(f.ids, s.IDs.has) {
			return coversNone
		}
	case opIs:
	}
	return coversSome
}

func (r IDRange) has(id [16]byte) bool {
	return bytes.Compare(r.First[:], id[:]) <= 0 && bytes.Compare(id[:], r.Last[:]) <= 0
}

func (s *Summary) timeCoverage(rank int, f *Filter) coverage {
	r := s.Times[rank]
	switch {
	case f.op == opNull && r.Nulls == 0, f.op == opBetween && r.Nulls == s.Count:
		return coversNone
	case f.op == opNull && r.Nulls == s.Count:
		return coversAll
	case f.op == opNull:
		return coversSome
	case r.Nulls > 0:
		return min(coversSome, r.coverage(f.lo, f.hi))
	}
	return r.coverage(f.lo, f.hi)
}

// coverage says how many of the numbers within r, those on its bounds among them, lie
// in [lo, hi].
func (r Range) coverage(lo, hi int64) coverage {
	switch {
	case lo > hi || lo > r.Max || hi < r.Min:
		return coversNone
	case lo <= r.Min && r.Max <= hi:
		return coversAll
	}
	return coversSome
}

// timeRank returns how many Time columns are declared before a column.
func (s *Schema) timeRank(col Col) int {
	n := 0
	for _, c := range s.columns[:col-1] {
		if c.Type == Time {
			n++
		}
	}
	return n
}
