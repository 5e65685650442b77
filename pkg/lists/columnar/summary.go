package columnar

import "math"

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
	for _, c := range t.groups {
		if c != nil {
			visible.over(&c.Visible, &c.Live)
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
	for _, c := range t.groups {
		if c != nil {
			rows := c.Live
			rows.Without(c.Columns[col].Null)
			b.over(&c.Columns[col].Values, &rows)
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

func (b *bounds) over(x *Ints, rows *RowSet) {
	for row := range rows.all() {
		n := x.At(row)
		b.Min, b.Max = min(b.Min, n), max(b.Max, n)
		b.count++
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
type coverage uint8

const (
	coversNone coverage = iota
	coversSome          // or none, or all: the summary does not tell
	coversAll
)

// share says of how many of the documents behind s the filter holds.
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
		if len(f.ids) == 0 {
			return coversNone
		}
	}
	return coversSome
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

// share says of how many numbers within r, those on its bounds among them, lie in
// [lo, hi].
func (r Range) coverage(lo, hi int64) coverage {
	switch {
	case lo > hi || lo > r.Max || hi < r.Min:
		return coversNone
	case lo <= r.Min && r.Max <= hi:
		return coversAll
	}
	return coversSome
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
