package columnar

import (
	"math"
	"math/bits"
)

// Summary stands for documents that are not in a view: how many there are, and
// between which bounds their times lie. The bounds are exact: some document lies on
// each of them.
type Summary struct {
	Count   int
	Visible Range       // of Document.Visible; nothing when Count is 0
	Times   []TimeRange // every Time column of the schema, in its order
}

// Range is bounds in milliseconds since 1970 UTC, both included.
type Range struct{ Min, Max int64 }

// TimeRange is the bounds of a Time column and how many documents are null there.
// When all are, the bounds are nothing.
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
	visible := newBounds()
	for _, c := range t.chunks {
		if c != nil {
			visible.over(&c.visible, &c.live)
		}
	}
	s.Visible, _ = visible.result()
	for i, declared := range v.schema.columns {
		if declared.Type == Time {
			s.Times = append(s.Times, t.timeRange(Col(i+1)))
		}
	}
	return s
}

func (t *table) timeRange(col Col) TimeRange {
	b := newBounds()
	for _, c := range t.chunks {
		if c != nil {
			rows := c.live
			rows.without(c.columns[col].absent)
			b.over(&c.columns[col].ints, &rows)
		}
	}
	r, n := b.result()
	return TimeRange{Range: r, Nulls: t.live - n}
}

// bounds collects the least and the greatest of numbers.
type bounds struct {
	Range
	count int
}

func newBounds() bounds { return bounds{Range: Range{Min: math.MaxInt64, Max: math.MinInt64}} }

func (b *bounds) over(x *ints, rows *rowset) {
	for w, word := range rows {
		for ; word != 0; word &= word - 1 {
			n := x.at(w<<6 + bits.TrailingZeros64(word))
			b.Min, b.Max = min(b.Min, n), max(b.Max, n)
			b.count++
		}
	}
}

func (b *bounds) result() (Range, int) {
	if b.count == 0 {
		return Range{}, 0
	}
	return b.Range, b.count
}

// Time returns the value of a Time column, or false where it is null. It panics for
// a column of another type.
func (d *Document) Time(c Col) (ms int64, ok bool) {
	d.schema.want(c, "Time", isType(Time))
	value, ok := d.cell(c)
	return value.number, ok
}

// share is of how many of a summary's documents a filter holds, as far as the
// summary tells.
type share uint8

const (
	ofNone share = iota
	ofSome       // or none, or all: the summary does not tell
	ofAll
)

// share says of how many of the documents behind s the filter holds.
func (s *Summary) share(schema *Schema, f *Filter) share {
	f.check(schema)
	switch f.op {
	case opAll:
		least := ofAll
		for i := range f.of {
			least = min(least, s.share(schema, &f.of[i]))
		}
		return least
	case opAny:
		most := ofNone
		for i := range f.of {
			most = max(most, s.share(schema, &f.of[i]))
		}
		return most
	case opNot:
		return ofAll - s.share(schema, &f.of[0])
	case opVisible:
		return s.Visible.share(f.lo, f.hi)
	case opNull, opBetween:
		if schema.column(f.col).Type == Time {
			return s.timeShare(schema.timeRank(f.col), f)
		}
	case opIn:
		if len(f.values) == 0 {
			return ofNone
		}
	case opIDs:
		if len(f.ids) == 0 {
			return ofNone
		}
	}
	return ofSome
}

func (s *Summary) timeShare(rank int, f *Filter) share {
	r := s.Times[rank]
	switch {
	case f.op == opNull && r.Nulls == 0, f.op == opBetween && r.Nulls == s.Count:
		return ofNone
	case f.op == opNull && r.Nulls == s.Count:
		return ofAll
	case f.op == opNull:
		return ofSome
	case r.Nulls > 0:
		return min(ofSome, r.share(f.lo, f.hi))
	}
	return r.share(f.lo, f.hi)
}

// share says of how many numbers within r, those on its bounds among them, lie in
// [lo, hi].
func (r Range) share(lo, hi int64) share {
	switch {
	case lo > hi || lo > r.Max || hi < r.Min:
		return ofNone
	case lo <= r.Min && r.Max <= hi:
		return ofAll
	}
	return ofSome
}

// timeRank is the place of a Time column among those of the schema.
func (s *Schema) timeRank(col Col) int {
	n := 0
	for _, c := range s.columns[:col-1] {
		if c.Type == Time {
			n++
		}
	}
	return n
}

func (s *Schema) timeCount() int { return s.timeRank(Col(len(s.columns) + 1)) }
