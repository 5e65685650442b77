package developers

import (
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// schema holds the columns that both lists of this area filter and order by.
var schema = columnar.MustSchema("developers",
	columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true},
	columnar.Column{Name: "status", Type: columnar.Keyword},
	columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
	columnar.Column{Name: "updatedAt", Type: columnar.Time},
)

// declare makes the declaration that both lists share; orders come after
// createdAt, the default.
func declare(name string, statuses []string, orders ...lists.Order) *lists.List {
	return &lists.List{
		Name: name, Schema: schema, Walk: true,
		Filters: []lists.Filter{
			{Name: "status", Kind: lists.Enum, Column: "status", Values: statuses, Description: "Entries with one of these statuses."},
			{Name: "created", Kind: lists.Range, Column: "createdAt", Description: "Entries that were created in this span."},
			{Name: "updated", Kind: lists.Range, Column: "updatedAt", Description: "Entries that were last changed in this span."},
		},
		Orders: append([]lists.Order{lists.By("createdAt")}, orders...),
	}
}

// columns are an entry's values in the schema.
type columns struct {
	id               value.ID
	name, status     string
	created, updated value.Time
}

// answerPage answers the page of the entries that the request asks for. The
// lists are short (an organization has at most 100 applications), so a view is
// made on the spot and shows the latest write.
func answerPage[T any](r *api.Request, entries []T, columnsOf func(*T) columns) (*api.Response, error) {
	byID := make(map[value.ID]T, len(entries))
	documents := make([]columnar.Document, len(entries))
	for i, e := range entries {
		c := columnsOf(&e)
		byID[c.id] = e
		documents[i] = schema.Build(c.id, 0).Text(schema.Col("name"), c.name).Keyword(schema.Col("status"), c.status).
			Time(schema.Col("createdAt"), int64(c.created)).Time(schema.Col("updatedAt"), int64(c.updated)).
			Document(int64(c.updated), int64(c.updated))
	}
	view := columnar.NewView(schema)
	view.Apply(documents)
	query := r.List.Index()
	query.Limit++ // one more entry shows that a walk goes on
	found := view.Query(query)
	var last *value.ID
	if len(found.Hits) > r.List.Limit {
		found.Hits = found.Hits[:r.List.Limit]
		last = api.LastOf(r.List, found.Hits)
	}
	page := make([]T, len(found.Hits))
	for i, hit := range found.Hits {
		page[i] = byID[hit.ID]
	}
	return api.AnswerPage(r, page, found.Total, last)
}
