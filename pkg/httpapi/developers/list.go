package developers

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/fold"
	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/value"
)

// row is what the lists of this area filter and order by. Both are short
// (an organization has at most 100 applications), so they are answered from
// the entries themselves and always show the latest write.
type row struct {
	id      value.ID
	name    string
	status  string
	created value.Time
	updated value.Time
}

// declare makes the declaration that both lists share; orders come after
// createdAt, the default.
func declare(name string, statuses []string, orders ...lists.Order) *lists.List {
	return &lists.List{
		Name: name,
		Filters: []lists.Filter{
			{Name: "status", Kind: lists.Enum, Values: statuses, Description: "Entries with one of these statuses."},
			{Name: "created", Kind: lists.Range, Description: "Entries that were created in this span."},
			{Name: "updated", Kind: lists.Range, Description: "Entries that were last changed in this span."},
		},
		Search: []string{"name"},
		Orders: append([]lists.Order{lists.By("createdAt")}, orders...),
		Walk:   true,
	}
}

// params documents a list's parameters as an operation's.
func params(l *lists.List) []httpapi.Param {
	declared := l.Parameters()
	out := make([]httpapi.Param, len(declared))
	for i, p := range declared {
		out[i] = httpapi.Param{
			Name: p.Name, In: fault.InQuery, Description: p.Description, Type: p.Type, Format: p.Format,
			Enum: p.Enum, Multi: p.Multi, Default: p.Default, Min: p.Min, Max: p.Max,
		}
	}
	return out
}

// answerPage answers one page of the entries that the query asks for. path is
// the list's own, below the base URL.
func answerPage[T any](r *httpapi.Request, path string, q *lists.Query, entries []T, rowOf func(*T) row) (*httpapi.Response, error) {
	type ranked struct {
		row
		entry *T
	}
	var found []ranked
	for i := range entries {
		if e := (ranked{rowOf(&entries[i]), &entries[i]}); e.matches(q) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(x, y ranked) int { return x.compare(&y.row, q) })
	total := len(found)
	first := min(q.Offset(), total)
	if q.After != nil {
		first, _ = slices.BinarySearchFunc(found, *q.After, func(e ranked, after value.ID) int {
			if e.id.Compare(after) <= 0 {
				return -1
			}
			return 1
		})
	}
	shown := found[first:min(first+q.Limit, total)]
	page := lists.Page[T]{Data: make([]T, len(shown)), Meta: q.Meta(total)}
	for i, e := range shown {
		page.Data[i] = *e.entry
	}
	var last *value.ID
	if first+len(shown) < total && len(shown) > 0 {
		last = &shown[len(shown)-1].id
	}
	link := q.Links(r.BaseURL+path, total, last)
	return &httpapi.Response{JSON: page, Header: http.Header{"Link": {link}}}, nil
}

func (e *row) matches(q *lists.Query) bool {
	if statuses := q.Texts("status"); statuses != nil && !slices.Contains(statuses, e.status) {
		return false
	}
	within := func(name string, at value.Time) bool {
		from, to := q.Range(name)
		return (from == nil || at >= *from) && (to == nil || at < *to)
	}
	if !within("created", e.created) || !within("updated", e.updated) {
		return false
	}
	name := fold.String(e.name)
	return !slices.ContainsFunc(q.Search, func(token string) bool { return !strings.Contains(name, token) })
}

// compare orders by what the query names, then by id in the same direction;
// a walk goes by id alone, ascending.
func (e *row) compare(other *row, q *lists.Query) int {
	if q.After != nil {
		return e.id.Compare(other.id)
	}
	order := 0
	switch q.Order.Name {
	case "name":
		order = strings.Compare(fold.String(e.name), fold.String(other.name))
	case "createdAt":
		order = cmp.Compare(e.created, other.created)
	}
	order = cmp.Or(order, e.id.Compare(other.id))
	if q.Desc {
		return -order
	}
	return order
}
