package columnar

import (
	"errors"
	"fmt"
	"slices"
)

// ColumnType says what a column holds and how it is compared.
type ColumnType uint8

const (
	// Keyword is a set of 0 to n strings, compared whole with In. Its distinct
	// values are kept once, so it suits states, kinds and references; values are
	// any bytes (a UUID takes less as its 16 bytes than as text).
	Keyword ColumnType = iota + 1
	// Bool is true, false or null.
	Bool
	// Number is an int64 or null: an integer, or a decimal scaled by the caller.
	Number
	// Time is a moment in milliseconds since 1970 UTC, or null.
	Time
	// Text is a list of 0 to n folded strings; what it serves is said by Search,
	// Match and Sort. It suits names and numbers that few documents share.
	Text
)

// Column declares one column. A flag that does not fit the type is refused.
type Column struct {
	Name string
	Type ColumnType
	// Sort lets Query.OrderBy name a Number, Time or Text. A Text is ordered by the
	// code points of its first value.
	Sort bool
	// Search lets Query.Search look into a Text. Each value is a field of its own.
	Search bool
	// Match lets In and Null look at a Text; In compares its whole first value.
	Match bool
	// Each lets In, of a Text with Match, compare every value instead.
	Each bool
	// Fold folds a Keyword and what it is compared with. A Text always is.
	Fold bool
}

// Col is the number of a column in its schema, counted from 1.
type Col uint8

// ByID, as Query.OrderBy, is the order of the documents' ids.
const ByID Col = 0

// maxColumns is what the number of a column leaves room for in a document.
const maxColumns = 64

// Schema is the list of columns of one kind of document. Documents are stored
// with the numbers of their columns, so a schema may only grow at its end: a
// column is never moved, retyped or taken away.
type Schema struct {
	name    string
	columns []Column
	text    [2][]Col    // the Text columns with Search, and the others, as rows keep them
	place   []textPlace // by Col
}

// textPlace says where a row keeps a Text column: in which of its two texts, and as the
// column of which rank there.
type textPlace struct{ texts, rank uint8 }

// MustSchema declares a kind of documents, in code. It panics for more than 64
// columns, a name that is empty or used twice, and a flag that does not fit its
// column's type.
func MustSchema(name string, columns ...Column) *Schema {
	if name == "" || len(columns) > maxColumns {
		panic(fmt.Sprintf("index: schema %q with %d columns: it needs a name and at most %d columns", name, len(columns), maxColumns))
	}
	s := &Schema{name: name, columns: slices.Clone(columns), place: make([]textPlace, len(columns)+1)}
	for i, c := range s.columns {
		if c.Name == "" || s.find(c.Name) != Col(i+1) {
			panic(fmt.Sprintf("index: schema %s: column %d: name %q is empty or used twice", name, i+1, c.Name))
		}
		if err := c.check(); err != nil {
			panic(fmt.Sprintf("index: schema %s: column %s: %v", name, c.Name, err))
		}
	}
	s.arrangeText()
	return s
}

func (c Column) check() error {
	switch {
	case c.Type < Keyword || c.Type > Text:
		return fmt.Errorf("unknown type %d", c.Type)
	case (c.Search || c.Match) && c.Type != Text:
		return errors.New("the flags Search and Match are for Text")
	case c.Each && !c.Match:
		return errors.New("the flag Each is for Match")
	case c.Fold && c.Type != Keyword:
		return errors.New("the flag Fold is for Keyword")
	case c.Sort && (c.Type == Keyword || c.Type == Bool):
		return errors.New("the flag Sort is for Number, Time and Text")
	}
	return nil
}

// arrangeText decides where rows keep each Text.
func (s *Schema) arrangeText() {
	for i, c := range s.columns {
		if c.Type != Text {
			continue
		}
		texts := uint8(1)
		if c.Search {
			texts = 0
		}
		s.place[i+1] = textPlace{texts, uint8(len(s.text[texts]))}
		s.text[texts] = append(s.text[texts], Col(i+1))
	}
}

// HasText says whether the schema has a Text.
func (s *Schema) HasText() bool { return len(s.text[0])+len(s.text[1]) > 0 }

// TextColumns counts the Text columns with Search, and the others.
func (s *Schema) TextColumns() [2]int { return [2]int{len(s.text[0]), len(s.text[1])} }

func (s *Schema) isText(col Col) bool { return col != ByID && s.Column(col).Type == Text }

// First is the schema as it was with its first n columns.
func (s *Schema) First(n int) *Schema { return MustSchema(s.name, s.columns[:n]...) }

// Name returns the name given to MustSchema.
func (s *Schema) Name() string { return s.name }

// Columns returns the declared columns; Col i+1 is the i-th.
func (s *Schema) Columns() []Column { return slices.Clone(s.columns) }

// Len is how many columns there are.
func (s *Schema) Len() int { return len(s.columns) }

// Col returns the column of that name and panics when there is none: names are
// written in code, never sent by a client.
func (s *Schema) Col(name string) Col {
	c := s.find(name)
	if c == 0 {
		panic(fmt.Sprintf("index: schema %s has no column %q", s.name, name))
	}
	return c
}

func (s *Schema) find(name string) Col {
	for i, c := range s.columns {
		if c.Name == name {
			return Col(i + 1)
		}
	}
	return 0
}

// Column returns the declaration of a column.
func (s *Schema) Column(c Col) Column { return s.columns[c-1] }

// want panics unless c is a column for which ok holds; to use it for something
// else is a mistake in the program.
func (s *Schema) want(c Col, use string, ok func(Column) bool) Column {
	if c == 0 || int(c) > len(s.columns) {
		panic(fmt.Sprintf("index: %s: schema %s has no column %d", use, s.name, c))
	}
	if !ok(s.Column(c)) {
		panic(fmt.Sprintf("index: %s: not for column %s of schema %s", use, s.Column(c).Name, s.name))
	}
	return s.Column(c)
}

func isType(t ColumnType) func(Column) bool {
	return func(c Column) bool { return c.Type == t }
}
