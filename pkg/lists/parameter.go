package lists

import (
	"strconv"
	"strings"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// Names of the parameters that do not come from filters.
const (
	ParamPage      = "page"
	paramLimit     = "limit"
	paramSearch    = "search"
	paramOrderBy   = "orderBy"
	paramDirection = "orderDirection"
	paramHas       = "has"
	ParamAfterID   = "afterId"

	byID = "id" // of orderBy: the order of a walk
)

// Bounds of a list's parameters.
const (
	MaxPage      = 1<<31 - 1
	MaxLimit     = 100
	MaxWalk      = 1000 // of the lists that have larger pages in a walk
	DefaultLimit = 20

	maxSearch = 200 // code points
	maxTokens = 10
	maxOwn    = 10 // values of own fields
)

// Param documents one parameter of a request.
type Param struct {
	Name        string
	In          string // query, header or path
	Description string
	Type        string // string, integer, number, boolean
	Format      string // uuid, date-time, …
	Pattern     string // a regular expression that a string matches
	Enum        []string
	Multi       bool // several values, comma-separated or repeated
	Most        int  // of several values; 0: any number
	Keyed       bool // the name is followed by a key in brackets; each may be repeated
	Required    bool
	Default     string
	Min, Max    *int64 // of a number, or of a string's length
}

// Takes reports whether a name in a request is that of the parameter.
func (p *Param) Takes(name string) bool {
	if !p.Keyed {
		return p.Name == name
	}
	key, keyed := strings.CutPrefix(name, p.Name+"[")
	return keyed && len(key) > 1 && strings.HasSuffix(key, "]")
}

// Params documents the list's parameters: pages, order, search, then the
// filters. The list takes these and no others.
func (l *List) Params() []Param {
	params := []Param{
		{
			Name: ParamPage, Type: "integer", Default: "1", Min: bound(1), Max: bound(MaxPage),
			Description: "The page, counted from 1. If entries were just deleted, the first entries of the next page fill it, and that page shows them again.",
		},
		{
			Name: paramLimit, Type: "integer", Default: strconv.Itoa(DefaultLimit), Min: bound(1), Max: bound(int64(max(MaxLimit, l.Most))),
			Description: "The number of entries on a page.",
		},
		{
			Name: paramOrderBy, Type: "string", Enum: l.orderNames(), Default: l.Orders[0].Name,
			Description: "The order of the list; entries without a value come last. Without orderDirection it is " + l.directions() + ".",
		},
		{
			Name: paramDirection, Type: "string", Enum: []string{"asc", "desc"},
			Description: "The direction, in any case; without orderBy it applies to the default order.",
		},
	}
	if l.Most > MaxLimit {
		params[1].Description += " More than " + strconv.Itoa(MaxLimit) + " only in a walk by id."
	}
	if l.Walk {
		params[2].Description += " id walks the list, as afterId does."
		params = append(params, Param{
			Name: ParamAfterID, Type: "string", Format: "uuid",
			Description: "Instead of page: the entries with a greater id, ordered by id. A complete read that concurrent " +
				"changes cannot disturb starts at 00000000-0000-0000-0000-000000000000, or with orderBy=id, and continues from the last id of each answer.",
		})
	}
	if searched := l.searched(); searched != nil {
		params = append(params, Param{
			Name: paramSearch, Type: "string", Max: bound(maxSearch),
			Description: "Up to " + strconv.Itoa(maxTokens) + " words, each of which must occur, as a part and regardless of case and accents, in " +
				strings.Join(searched, ", ") + ".",
		})
	}
	for i := range l.Filters {
		params = append(params, l.Filters[i].params()...)
	}
	if l.Own != "" {
		params = append(params, Param{
			Name: l.Own, Type: "string", Pattern: `\S`, Keyed: true,
			Description: "The value of one of the organization's own fields: " + l.Own + "[key]=value. Text is compared whole, regardless of case and " +
				"accents, numbers as numbers. Several values by repeating the parameter, with has " + strconv.Itoa(maxOwn) + " in all. An administrator " +
				"declares the keys (PUT /developers/index/fields): 400 for another one, 503 while the list is built with a new one.",
		}, Param{
			Name: paramHas, Type: "string", Pattern: "^" + l.Own + `\..`, Multi: true, Most: maxOwn,
			Description: "Declared fields, each as " + l.Own + ".key, that a record must have, of any type but null.",
		})
	}
	for i := range params {
		params[i].In = fault.InQuery
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

func bound(n int64) *int64 { return &n }
