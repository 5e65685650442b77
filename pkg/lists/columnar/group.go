package columnar

// Group is a part of a segment that is stored and fetched on its own, so that a
// query loads only what it reads.
type Group uint8

const (
	// Core holds ids, revisions, Visible and all columns that are not Text.
	Core Group = iota
	// SearchText holds the Text columns with Search.
	SearchText
	// OtherText holds the other Text columns.
	OtherText
)

// Groups is how many groups there are.
const Groups = 3

// String returns the group's name for messages.
func (g Group) String() string {
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
type GroupSet uint8

// Has says whether g is in the set.
func (s GroupSet) Has(g Group) bool { return s>>g&1 != 0 }

func setOf(g Group) GroupSet { return 1 << g }

// textGroup returns the group of the segment that holds a group of Text columns.
func textGroup(group int) Group { return SearchText + Group(group) }

// Groups returns the groups that documents of the schema have, Core among them.
func (s *Schema) Groups() GroupSet {
	set := setOf(Core)
	for g, cols := range s.groups {
		if len(cols) > 0 {
			set |= setOf(textGroup(g))
		}
	}
	return set
}

// Needs returns the groups that answering q reads, Core among them. It panics as
// View.Query does.
func (s *Schema) Needs(q *Query) GroupSet {
	set := setOf(Core) | s.needsOf(&q.Filter)
	for _, token := range q.Search {
		if token != "" {
			set |= setOf(SearchText)
		}
	}
	if q.AfterID == nil && q.OrderBy != ByID {
		set |= s.needsColumn(q.OrderBy)
	}
	return set & s.Groups()
}

func (s *Schema) needsOf(f *Filter) GroupSet {
	f.check(s)
	switch f.op {
	case opAll, opAny, opNot:
		var set GroupSet
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
func (s *Schema) needsColumn(col Col) GroupSet {
	if s.column(col).Type != Text {
		return 0
	}
	return setOf(textGroup(int(s.place[col].group)))
}
