package lists

import (
	"strconv"
	"strings"
)

// Names of the parameters that every list has.
const (
	paramPage      = "page"
	paramLimit     = "limit"
	paramSearch    = "search"
	paramOrderBy   = "orderBy"
	paramDirection = "orderDirection"
	paramAfterID   = "afterId"
)

// Bounds of a list's parameters.
const (
	MaxPage      = 1<<31 - 1
	MaxLimit     = 100
	DefaultLimit = 20

	maxSearch = 200 // code points
	maxTokens = 10
)

// Parameter documents one parameter of a list's query string.
type Parameter struct {
	Name        string
	Description string
	Type        string // string, integer or boolean
	Format      string // uuid or date-time
	Enum        []string
	Multi       bool // several values, comma-separated
	Default     string
	Min, Max    *int64 // of an integer, or of a string's length
}

// Parameters documents the list's parameters: pages, order, search, then the
// filters.
func (l *List) Parameters() []Parameter {
	params := []Parameter{
		{Name: paramPage, Type: "integer", Default: "1", Min: bound(1), Max: bound(MaxPage), Description: "The page, counted from 1."},
		{
			Name: paramLimit, Type: "integer", Default: strconv.Itoa(DefaultLimit), Min: bound(1), Max: bound(MaxLimit),
			Description: "How many entries a page has.",
		},
		{
			Name: paramOrderBy, Type: "string", Enum: l.orderNames(), Default: l.Orders[0].Name,
			Description: "What the list is ordered by; entries without a value come last. Alone it takes " + l.directions() + ".",
		},
		{
			Name: paramDirection, Type: "string", Enum: []string{"asc", "desc"},
			Description: "The direction of the order, in any case; alone it applies to the default order.",
		},
	}
	if l.Walk {
		params = append(params, Parameter{
			Name: paramAfterID, Type: "string", Format: "uuid",
			Description: "Instead of page: the entries whose id is greater, ordered by id. A complete read that concurrent " +
				"changes cannot disturb starts at 00000000-0000-0000-0000-000000000000 and goes on from the last id of each answer.",
		})
	}
	if len(l.Search) > 0 {
		params = append(params, Parameter{
			Name: paramSearch, Type: "string", Max: bound(maxSearch),
			Description: "Up to " + strconv.Itoa(maxTokens) + " words, each of which must occur, as a part and regardless of case and accents, in " +
				strings.Join(l.Search, ", ") + ".",
		})
	}
	for i := range l.Filters {
		params = append(params, l.Filters[i].parameters()...)
	}
	return params
}

// directions says which orders descend unless told otherwise.
func (l *List) directions() string {
	var asc, desc []string
	for _, o := range l.Orders {
		if o.Desc {
			desc = append(desc, o.Name)
		} else {
			asc = append(asc, o.Name)
		}
	}
	switch {
	case len(asc) == 0:
		return "desc"
	case len(desc) == 0:
		return "asc"
	}
	return "asc for " + strings.Join(asc, ", ") + " and desc for " + strings.Join(desc, ", ")
}

func (f *Filter) parameters() []Parameter {
	p := Parameter{Name: f.Name, Type: "string", Description: f.Description, Default: f.Default}
	switch f.Kind {
	case ID:
		if f.Null == "" {
			p.Format = "uuid"
		}
	case IDs:
		p.Format, p.Multi = "uuid", true
	case Enum:
		p.Enum, p.Multi = f.Values, true
	case Code:
		p.Multi = true
	case Bool:
		p.Type = "boolean"
	case Range, Visible:
		from, to := p, p
		from.Name, from.Format = f.Name+"From", "date-time"
		to.Name, to.Format = f.Name+"To", "date-time"
		from.Description += " At this time or later."
		to.Description += " Before this time."
		return []Parameter{from, to}
	}
	return []Parameter{p}
}

func bound(n int64) *int64 { return &n }
