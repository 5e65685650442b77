package columnar

import "math/bits"

// ColumnGroup is columns that are stored and loaded together, so that a query loads
// only the groups it reads.
type ColumnGroup uint8

const (
	// Core holds ids, revisions, Visible and all columns that are not Text.
	Core ColumnGroup = iota
	// SearchText holds the Text columns with Search.
	SearchText
	// OtherText holds the other Text columns.
	OtherText
)

// NumColumnGroups is how many groups there are.
const NumColumnGroups = 3

// String returns the group's name for messages.
func (g ColumnGroup) String() string {
	switch g {
	case Core:
		return "core"
	case SearchText:
		return "search text"
	case OtherText:
		return "other text"
	}
	return "unknown"
}

// ColumnGroupSet is a set of groups: bit g for group g.
type ColumnGroupSet uint8

// Has says whether g is in the set.
func (s ColumnGroupSet) Has(g ColumnGroup) bool { return s>>g&1 != 0 }

// First returns the first group of a set that is not empty.
func (s ColumnGroupSet) First() ColumnGroup { return ColumnGroup(bits.TrailingZeros8(uint8(s))) }

// SetOf returns the set of one group.
func SetOf(g ColumnGroup) ColumnGroupSet { return 1 << g }

// ColumnGroups returns the groups that documents of the schema have, Core among them.
func (s *Schema) ColumnGroups() ColumnGroupSet {
	set := SetOf(Core)
	for _, g := range s.textGroups {
		set |= SetOf(g)
	}
	return set
}

// Needs returns the groups that answering q reads, Core among them. It panics as
// View.Query does.
func (s *Schema) Needs(q *Query) ColumnGroupSet {
	set := SetOf(Core) | s.needsOf(&q.Filter)
	for _, token := range q.Search {
		if token != "" {
			set |= SetOf(SearchText)
		}
	}
	if q.AfterID == nil && q.OrderBy != ByID {
		set |= s.needsColumn(q.OrderBy)
	}
	return set & s.ColumnGroups()
}

func (s *Schema) needsOf(f *Filter) ColumnGroupSet {
	f.check(s)
	switch f.op {
	case opAll, opAny, opNot:
		var set ColumnGroupSet
		for i := range f.of {
			set |= s.needsOf(&f.of[i])
		}
		return set
	case opIn, opNull:
		return s.needsColumn(f.col)
	}
	return 0
}

// needsColumn returns the text group of a column, or nothing.
func (s *Schema) needsColumn(col Col) ColumnGroupSet {
	if s.Column(col).Type != Text {
		return 0
	}
	return SetOf(s.place[col].group)
}

// Uses returns the last column that answering q reads, 0 when it reads none.
func (s *Schema) Uses(q *Query) int {
	last := q.Filter.uses()
	if q.AfterID == nil {
		last = max(last, int(q.OrderBy))
	}
	if len(searchTokens(q.Search)) > 0 {
		for i, c := range s.columns {
			if c.Search {
				last = max(last, i+1)
			}
		}
	}
	return last
}

func (f *Filter) uses() int {
	last := int(f.col)
	for i := range f.of {
		last = max(last, f.of[i].uses())
	}
	return last
}
