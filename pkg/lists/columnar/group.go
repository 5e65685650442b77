package columnar

// Group is a part of a segment that is stored and fetched on its own, so that a
// query loads only what it reads.
type ColumnGroup uint8

const (
	// Core holds ids, revisions, Visible and all columns that are not Text.
	Core ColumnGroup = iota
	// SearchText holds the Text columns with Search.
	SearchText
	// OtherText holds the other Text columns.
	OtherText
)

// Groups is how many groups there are.
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

// GroupSet is a set of groups: bit g for Group g.
type ColumnGroupSet uint8

// Has says whether g is in the set.
func (s ColumnGroupSet) Has(g ColumnGroup) bool { return s>>g&1 != 0 }

func SetOf(g ColumnGroup) ColumnGroupSet { return 1 << g }

// textGroup returns the group of the segment that holds a group of Text columns.
func textGroup(group int) ColumnGroup { return SearchText + ColumnGroup(group) }

// Groups returns the groups that documents of the schema have, Core among them.
func (s *Schema) ColumnGroups() ColumnGroupSet {
	set := SetOf(Core)
	for g, cols := range s.groups {
		if len(cols) > 0 {
			set |= SetOf(textGroup(g))
		}
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
	return SetOf(textGroup(int(s.place[col].group)))
}
