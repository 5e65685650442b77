package columnar

import (
	"cmp"
	"slices"
)

// MaxCountedValues is how many values of a Keyword a summary counts. A column
// with more is not counted: it would take more room than it saves.
const MaxCountedValues = 32

// ValueCounts is how many documents have each value of a Keyword column.
// Counted is false where a document has several values or there are more than
// MaxCountedValues: then Values is empty.
type ValueCounts struct {
	Counted bool
	Values  []ValueCount // by value
}

// ValueCount is how many documents have a value and, of those, how many are null
// in each Time column, in the order of the schema.
type ValueCount struct {
	Value string
	Count int
	Nulls []int
}

// counts counts the values of every Keyword column.
func (t *table) counts() []ValueCounts {
	all := []ValueCounts{}
	for i, c := range t.schema.columns {
		if c.Type == Keyword {
			all = append(all, t.countValues(Col(i+1)))
		}
	}
	return all
}

func (t *table) countValues(col Col) ValueCounts {
	var values []ValueCount
	places := map[int64]int{} // in values, by code
	for _, g := range t.groups {
		if g == nil {
			continue
		}
		for row := range g.Live.all() {
			code := g.Columns[col].Values.At(row)
			if code == 0 {
				continue
			}
			at, known := places[code]
			if !known {
				if code&1 != 0 || len(values) == MaxCountedValues {
					return ValueCounts{}
				}
				at = len(values)
				places[code] = at
				values = append(values, ValueCount{
					Value: string(t.dictionaries[col].Value(uint32(code-2) / 2)), Nulls: make([]int, t.schema.timeCount()),
				})
			}
			values[at].Count++
		}
		t.countNulls(col, g, values, places)
	}
	slices.SortFunc(values, func(a, b ValueCount) int { return cmp.Compare(a.Value, b.Value) })
	return ValueCounts{Counted: true, Values: values}
}

// countNulls adds the rows of a row group that are null in Time columns.
func (t *table) countNulls(col Col, g *RowGroup, values []ValueCount, places map[int64]int) {
	rank := 0
	for i, c := range t.schema.columns {
		if c.Type != Time {
			continue
		}
		if null := g.Columns[i+1].Null; null != nil {
			rows := g.Live
			rows.And(null)
			for row := range rows.all() {
				if code := g.Columns[col].Values.At(row); code != 0 {
					values[places[code]].Nulls[rank]++
				}
			}
		}
		rank++
	}
}

// matches is how many documents of a summary match a filter and, of those, how
// many are null in a Time column.
type matches struct{ count, nulls int }

// matches counts what matches a filter, from the counts of values; false when
// they do not tell. The nulls are those of the Time column of that rank; none
// for a negative rank.
func (s *Summary) matches(schema *Schema, f *Filter, rank int) (m matches, ok bool) {
	switch s.coverage(schema, f) {
	case coversNone:
		return matches{}, true
	case coversAll:
		return s.all(rank), true
	}
	switch f.op {
	case opAll, opAny:
		return s.matchesOne(schema, f, rank)
	case opNot:
		m, ok = s.matches(schema, &f.of[0], rank)
		all := s.all(rank)
		return matches{all.count - m.count, all.nulls - m.nulls}, ok
	case opIn, opNull:
		return s.matchesValues(schema, f, rank)
	}
	return matches{}, false
}

func (s *Summary) all(rank int) matches {
	if rank < 0 {
		return matches{s.Count, 0}
	}
	return matches{s.Count, s.Times[rank].Nulls}
}

// matchesOne counts where only one part of an All or Any decides.
func (s *Summary) matchesOne(schema *Schema, f *Filter, rank int) (matches, bool) {
	var deciding *Filter
	for i := range f.of {
		if s.coverage(schema, &f.of[i]) != coversSome {
			continue // it decides nothing, or the whole would not be coversSome
		}
		if deciding != nil {
			return matches{}, false
		}
		deciding = &f.of[i]
	}
	return s.matches(schema, deciding, rank)
}

// matchesValues counts the documents that have one of a Keyword's values, or none.
func (s *Summary) matchesValues(schema *Schema, f *Filter, rank int) (matches, bool) {
	column := schema.Column(f.col)
	if column.Type != Keyword || len(s.Keywords) != schema.keywordRank(Col(len(schema.columns)+1)) {
		return matches{}, false
	}
	counts := s.Keywords[schema.keywordRank(f.col)]
	if !counts.Counted {
		return matches{}, false
	}
	wanted := f.values
	if column.folds() {
		wanted = foldAll(wanted)
	}
	var m matches
	for _, v := range counts.Values {
		if f.op == opNull || slices.Contains(wanted, v.Value) {
			m.count += v.Count
			if rank >= 0 {
				m.nulls += v.Nulls[rank]
			}
		}
	}
	if f.op == opNull {
		all := s.all(rank)
		m = matches{all.count - m.count, all.nulls - m.nulls}
	}
	return m, true
}

// keywordRank returns how many Keyword columns are declared before a column.
func (s *Schema) keywordRank(col Col) int {
	n := 0
	for _, c := range s.columns[:col-1] {
		if c.Type == Keyword {
			n++
		}
	}
	return n
}
