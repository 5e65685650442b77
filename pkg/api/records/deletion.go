package records

import (
	"math"
	"net/http"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// deletions is the operation that lists deleted records, for clients that keep
// a copy.
func (a *area) deletions() api.Operation {
	l, columns := commerce.DeletionList(), columnsOf(commerce.Deletion{})
	return api.Operation{
		ID: "listDeletions", Method: http.MethodGet, Path: "/api/deletions", Tag: "Deletions", Access: api.Reader, AnyScope: auth.ReadScopes(),
		Result: api.Page[commerce.Deletion]{}, List: l, Rows: true,
		Summary: "List deleted records",
		Description: "Deletions of the last 90 days, of the kinds that the credential may read and of every site. " +
			"A record that was put again is not in the list.",
		Handle: func(r *api.Request) (*api.Response, error) {
			kinds, err := readable(r, r.List.Texts("kind"))
			if err != nil {
				return nil, err
			}
			kept := value.TimeOf(a.clock()).Add(-commerce.TombstoneAge)
			result, err := a.views.QueryWeighed(r.Context(), r.Organization(), a.gone,
				r.List.Index(columnar.In(l.Schema.Col("kind"), kinds...), columnar.Within(l.Schema.Col("deletedAt"), int64(kept), math.MaxInt64)),
				r.ReadsNow(), r.AdmitUnits)
			if err != nil {
				return nil, err
			}
			var shown []commerce.Deletion
			for _, hit := range result.Hits {
				if deletion, ok := commerce.DeletionOf(hit); ok {
					shown = append(shown, deletion)
				}
			}
			if r.MediaType == api.JSON {
				return api.AnswerIndexed(r, shown, result)
			}
			w := newWriter(r, columns)
			for _, deletion := range shown { // all of which fit
				row, err := commerce.Encode(deletion)
				if err != nil {
					return nil, err
				}
				w.add(row)
			}
			return w.answer(r.IndexedHeader(result, api.LastOf(r.List, result.Hits))), nil
		},
	}
}

// readable returns the kinds that the credential may read. It refuses a request
// that asks for another kind.
func readable(r *api.Request, asked []string) ([]string, error) {
	var kinds []string
	for _, kind := range commerce.Kinds() {
		if r.Principal.Scopes.Has(scopeOf(kind)) {
			kinds = append(kinds, string(kind))
		}
	}
	for _, kind := range asked {
		if scope := scopeOf(commerce.Kind(kind)); !r.Principal.Scopes.Has(scope) {
			return nil, api.MissingScope(scope)
		}
	}
	return kinds, nil
}
