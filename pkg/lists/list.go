package lists

import (
	"maps"
	"net/url"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// List declares a list, an ordered and filterable collection that the API
// answers.
type List struct {
	Name    string           // of the resource, in the plural
	Schema  *columnar.Schema // nil for a list that no index answers
	Filters []Filter
	Orders  []Order // the first is the default
	Walk    bool    // afterId is accepted
	Most    int     // entries on a page of a walk; 0: MaxLimit, as on other pages
	Own     string  // the parameter of the organization's own fields, such as metadata; "" for none
	Sync    string  // the parameter that takes [Answer.SyncFrom]; "" when answers have none
}

// Filter declares one filter.
type Filter struct {
	Name        string
	Kind        Kind
	Column      string // of the schema; "": the list's owner makes the filter
	Values      []string
	Sets        map[string][]string // of an Enum: words that each mean several values of the column
	Check       func(string) error  // of a Code; its error lists the valid values
	Pattern     string              // of a Code, as documented
	Null        string              // of an ID: the word that asks for documents without one
	Max         int                 // of IDs
	Description string
	Default     string // as documented; the owner applies it
}

// Walks reports whether a query string asks for a walk by id.
func (l *List) Walks(query url.Values) bool {
	return l.Walk && (query.Has(ParamAfterID) || query.Get(paramOrderBy) == byID)
}

// words are what an Enum takes: its values, then its sets by name.
func (f *Filter) words() []string {
	return slices.Concat(f.Values, slices.Sorted(maps.Keys(f.Sets)))
}

// Order declares one orderBy.
type Order struct {
	Name   string
	Column string // of the schema; "": the name
	Desc   bool   // the direction unless orderDirection says another
}

// By makes the order of a date or a number: descending by default.
func By(name string) Order { return Order{Name: name, Desc: true} }

// ByText makes the order of a text: ascending by default.
func ByText(name string) Order { return Order{Name: name} }

// searched returns the names of the columns that search looks into. A list
// without any takes no search.
func (l *List) searched() []string {
	var names []string
	if l.Schema == nil {
		return nil
	}
	for _, c := range l.Schema.Columns() {
		if c.Search {
			names = append(names, c.Name)
		}
	}
	return names
}

func (l *List) orderNames() []string {
	names := make([]string, len(l.Orders))
	for i, o := range l.Orders {
		names[i] = o.Name
	}
	if l.Walk {
		names = append(names, byID)
	}
	return names
}
