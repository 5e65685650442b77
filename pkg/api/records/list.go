package records

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Views answers queries of an organization's lists, with now from what the
// index has at the time of the query.
type Views interface {
	Query(ctx context.Context, org value.ID, list *index.List, q columnar.Query, now bool) (lists.Answer, error)
	// QueryWeighed first asks admit, which gets the read units that the index takes.
	QueryWeighed(ctx context.Context, org value.ID, list *index.List, q columnar.Query, now bool, admit func(units int) error) (lists.Answer, error)
}

// alwaysFits is a limit with which no page is too large, whatever its records are.
const alwaysFits = maxEscapedBytes / maxEscapeFactor / (commerce.MaxRecordBytes + 1)

// query is a query of the list of a kind.
type query struct {
	columnar.Query
	kind   commerce.Kind
	fields commerce.Fields // of the organization, of a query that uses some
}

// list is the operation that lists a kind.
func (a *area) list(kind commerce.Kind) api.Operation {
	columns := columnsOf(commerce.New(kind))
	return api.Operation{
		ID: "list" + camel(kind.Plural()), Method: http.MethodGet, Path: "/api/" + kind.Plural(), Tag: TagOf(kind),
		Summary: "List " + spoken(kind.Plural()), Access: api.Reader, Scope: scopeOf(kind), Result: kind.Page(),
		Description: "A change is in the list about a second after it was stored. To keep a copy, walk with afterId and go on from X-Sync-From. " +
			"A page of a walk is also answered as " + api.NDJSON + " and " + api.CSV + ": it ends with limit or before 5.5 MiB, and Link goes on from there.",
		Params: []api.Param{api.SiteHeader()}, List: commerce.ListOf(kind), Rows: true,
		Handle: func(r *api.Request) (*api.Response, error) { return a.listed(r, kind, columns) },
	}
}

// productStock is the operation that lists the stock of one product. Whether there is
// such a product is for who may read products.
func (a *area) productStock() api.Operation {
	op := a.list(commerce.KindStock)
	list := *op.List
	list.Filters = slices.DeleteFunc(slices.Clone(list.Filters), func(f lists.Filter) bool { return f.Name == "productId" })
	columns := columnsOf(commerce.New(commerce.KindStock))
	op.ID, op.Path, op.Summary, op.List = "listProductStock", "/api/products/{id}/stock", "List the stock of a product", &list
	op.Description = "The list of stock with the productId of the path. It takes products:read too, and answers 404 for a product that " +
		"GET /api/products/{id} does not answer."
	op.Handle = func(r *api.Request) (*api.Response, error) {
		if err := r.CheckHolds(scopeOf(commerce.KindProduct)); err != nil {
			return nil, err
		}
		product, err := a.single(r, commerce.KindProduct)
		if err != nil {
			return nil, err
		}
		return a.listed(r, commerce.KindStock, columns, columnar.In(list.Schema.Col("productId"), lists.Key(product.ID)))
	}
	return op
}

// listed answers a page of the list of a kind, of the records that also pass the filters.
func (a *area) listed(r *api.Request, kind commerce.Kind, columns *columns, filters ...columnar.Filter) (*api.Response, error) {
	scope := commerce.SiteScope{Site: r.Site, Sites: r.Principal.SiteIDs}
	now := value.TimeOf(a.clock())
	var fields commerce.Fields
	if r.List.Own != nil {
		var err error
		if fields, err = a.fields.Fields(r.Context(), r.Organization()); err != nil {
			return nil, err
		}
	}
	indexed, err := commerce.IndexQuery(kind, r.List, scope, a.categories(r), now, fields)
	if err != nil {
		return nil, err
	}
	for _, filter := range filters {
		indexed.Filter = columnar.All(filter, indexed.Filter)
	}
	q := query{indexed, kind, fields}
	if r.MediaType != api.JSON {
		return a.rows(r, newWriter(r, columns), q, now)
	}
	return a.answer(r, q, now)
}

// categories answers queries of the organization's categories.
func (a *area) categories(r *api.Request) commerce.Finder {
	return func(q columnar.Query) (columnar.Result, error) {
		answer, err := a.views.Query(r.Context(), r.Organization(), a.lists[commerce.KindCategory], q, r.ReadsNow())
		return answer.Result, err
	}
}

// answer finds the page in the view and reads its records, as the view knows
// them or later.
func (a *area) answer(r *api.Request, q query, now value.Time) (*api.Response, error) {
	var near map[value.ID]*commerce.Stored
	var read [][]byte
	documents, result, err := api.FullPage(r, func(limit int) (found lists.Answer, err error) {
		q.Limit, read = limit, nil
		found, near, err = a.find(r, q)
		return found, err
	}, func(hits []columnar.Hit) ([]columnar.Hit, [][]byte, error) {
		shown, found, err := a.documents(r, q, hits, near)
		if err != nil {
			return nil, nil, err
		}
		// Now, since the records of a whole page may not fit into memory.
		read = append(read, found...)
		return shown, found, checkSize(r.List, read[:min(len(read), r.List.Limit)])
	})
	if err != nil {
		return nil, err
	}
	body := page(q.kind, documents, r.PageMeta(result.Total), now)
	return &api.Response{Raw: body, Header: r.IndexedHeader(result, api.LastOf(r.List, result.Hits))}, nil
}

// rows answers a page of a walk as rows. Such a page ends before the first record
// that no longer fits, and its link goes on from there.
func (a *area) rows(r *api.Request, w *writer, q query, now value.Time) (*api.Response, error) {
	found, near, err := a.find(r, q)
	if err != nil {
		return nil, err
	}
	var last value.ID
	var row []byte
	for hits := range slices.Chunk(found.Hits, readBatch) {
		shown, documents, err := a.documents(r, q, hits, near)
		if err != nil {
			return nil, err
		}
		for i, document := range documents {
			if row = commerce.AppendShape(row[:0], q.kind, document, now); !w.add(row) {
				return w.answer(r.IndexedHeader(found, &last)), nil
			}
			last = shown[i].ID
		}
	}
	return w.answer(r.IndexedHeader(found, api.LastOf(r.List, found.Hits))), nil
}

// find asks the view, and reads together what lies together of a walk's large page.
func (a *area) find(r *api.Request, q query) (found lists.Answer, near map[value.ID]*commerce.Stored, err error) {
	found, err = a.views.QueryWeighed(r.Context(), r.Organization(), a.lists[q.kind], q.Query, r.ReadsNow(), r.AdmitUnits)
	if err != nil || r.List.Limit <= lists.MaxLimit {
		return found, nil, err
	}
	var ids []value.ID
	for _, hit := range found.Hits {
		if a.cached.get(cacheKey{r.Organization(), q.kind, hit.ID, value.Time(hit.Revision)}) == nil {
			ids = append(ids, hit.ID)
		}
	}
	near, err = a.store.NearRecords(r.Context(), r.Organization(), q.kind, ids, maxPageBytes)
	return found, near, err
}

// documents returns the hits that are shown and their stored JSON, in their
// order, and reads what is neither cached nor in near. A record that was changed after
// the view saw it is checked against the query again, and left out when it is no longer
// an answer to it or no longer visible.
func (a *area) documents(
	r *api.Request, q query, hits []columnar.Hit, near map[value.ID]*commerce.Stored,
) (shown []columnar.Hit, documents [][]byte, err error) {
	documents = make([][]byte, len(hits))
	missing := map[value.ID]value.Time{}
	complete := true
	for i, hit := range hits {
		key := cacheKey{r.Organization(), q.kind, hit.ID, value.Time(hit.Revision)}
		if documents[i] = a.cached.get(key); documents[i] != nil {
			continue
		}
		complete = false
		if near[hit.ID] == nil {
			missing[hit.ID] = key.revision
		}
	}
	if complete {
		return hits, documents, nil
	}
	stored, err := a.store.RecordsSince(r.Context(), r.Organization(), q.kind, missing)
	if err != nil {
		return nil, nil, err
	}
	found := documents[:0]
	for i, hit := range hits {
		document := documents[i]
		if document == nil {
			if document, err = a.document(cmp.Or(near[hit.ID], stored[hit.ID]), q, hit); err != nil {
				return nil, nil, err
			}
		}
		if document != nil {
			shown, found = append(shown, hit), append(found, document)
		}
	}
	return shown, found, nil
}

// document returns the JSON of a record that was read for a hit; nil when the
// record is no longer part of the answer.
func (a *area) document(s *commerce.Stored, q query, hit columnar.Hit) ([]byte, error) {
	shown, err := a.shows(s, q, hit)
	if err != nil || !shown {
		return nil, err
	}
	a.cached.put(cacheKey{s.OrganizationID, q.kind, s.ID, s.Revision}, s.Doc)
	return s.Doc, nil
}

// shows reports whether a record that was read for a hit still is part of the
// answer.
func (a *area) shows(s *commerce.Stored, q query, hit columnar.Hit) (bool, error) {
	if s == nil || s.Deleted {
		return false, nil
	}
	if s.Revision == value.Time(hit.Revision) {
		return true, nil
	}
	now, err := commerce.Document(s, value.Time(hit.Visible), q.fields)
	if err != nil {
		return false, err
	}
	return columnar.Match(a.lists[q.kind].Schema, q.Query, now), nil
}

// checkSize refuses a page that is too large to answer, and names a limit that
// fits. On the first page of a list, and anywhere in a walk by id, that is as
// many of the same records as fit. Another limit on a later page means other
// records, so only alwaysFits is certain there.
func checkSize(q *lists.Query, documents [][]byte) error {
	fits := fitting(documents)
	if fits == len(documents) {
		return nil
	}
	if q.Page > 1 {
		fits = alwaysFits
	}
	f := fault.New(fault.Invalid, "page_too_large", "the page is too large to answer; ask with limit=%d", fits)
	f.Details = []fault.Detail{{Field: "limit", In: fault.InQuery, Code: fault.DetailOutOfRange, Message: "must be at most " + strconv.Itoa(fits) + " for this page"}}
	return f
}

// fitting counts the documents, from the first, that fit on a page.
func fitting(documents [][]byte) int {
	total := pageOverhead
	for _, d := range documents {
		total += len(d) + 1
	}
	if total*maxEscapeFactor <= maxEscapedBytes {
		return len(documents)
	}
	size, escaped := pageOverhead, pageOverhead
	for i, d := range documents {
		size += len(d) + 1
		escaped += len(d) + 1 + escapes(d)
		if size > maxPageBytes || escaped > maxEscapedBytes {
			return i
		}
	}
	return len(documents)
}

// page writes a page's JSON around the stored documents.
func page(kind commerce.Kind, documents [][]byte, meta api.Meta, now value.Time) []byte {
	size := 128
	for _, d := range documents {
		size += len(d) + 1
	}
	body := append(make([]byte, 0, size), `{"data":[`...)
	for i, d := range documents {
		if i > 0 {
			body = append(body, ',')
		}
		body = commerce.AppendShape(body, kind, d, now)
	}
	return fmt.Appendf(body, `],"meta":{"page":%d,"limit":%d,"total":%d,"totalPages":%d}}`, meta.Page, meta.Limit, meta.Total, meta.TotalPages)
}
