package bench

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/httpapi/records"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/ratelimit"
	"github.com/commerce-integration/service/pkg/value"
)

// shelf is records and their view in memory, where the network is otherwise.
type shelf struct {
	records map[value.ID]*commerce.Stored
	view    *columnar.View
}

// Record implements [read.Store].
func (s *shelf) Record(_ context.Context, _ value.ID, _ commerce.Kind, id value.ID) (*commerce.Stored, error) {
	return s.records[id], nil
}

// Records implements [read.Store].
func (s *shelf) Records(_ context.Context, _ value.ID, _ commerce.Kind, ids []value.ID) (map[value.ID]*commerce.Stored, error) {
	found := make(map[value.ID]*commerce.Stored, len(ids))
	for _, id := range ids {
		found[id] = s.records[id]
	}
	return found, nil
}

// Query implements [read.Views].
func (s *shelf) Query(_ context.Context, _ value.ID, _ *index.List, q columnar.Query) (columnar.Result, error) {
	return s.view.Query(q), nil
}

// unlimited admits everything.
type unlimited struct{}

// Admit implements [rest.Limiter].
func (unlimited) Admit(_ context.Context, _ string, limit int) (ratelimit.Decision, error) {
	return ratelimit.Decision{Allowed: true, Limit: limit, Remaining: limit}, nil
}

// shelved is products in memory.
func shelved(shop *catalogue, products int) (*shelf, error) {
	s := &shelf{records: make(map[value.ID]*commerce.Stored, products), view: columnar.NewView(commerce.ListOf(commerce.KindProduct).Schema)}
	documents := make([]columnar.Document, 0, products)
	for n := range products {
		stored, err := shop.stored(n, firstCreated+value.Time(n)*60_000)
		if err != nil {
			return nil, err
		}
		document, err := commerce.Document(stored, stored.Revision)
		if err != nil {
			return nil, err
		}
		s.records[stored.ID] = stored
		documents = append(documents, document)
	}
	s.view.Apply(documents)
	return s, nil
}

// answered is an answer that nobody reads.
type answered struct {
	header http.Header
	status int
	bytes  int
}

func (a *answered) Header() http.Header { return a.header }

func (a *answered) WriteHeader(status int) { a.status = status }

func (a *answered) Write(p []byte) (int, error) {
	a.bytes += len(p)
	return len(p), nil
}

// shelfProducts is how many products the handler lists: as many as its cache
// of records holds.
const shelfProducts = 20_000

// measureHandler is the section of requests within a function, without the
// network.
func measureHandler(ctx context.Context, b *bench) error {
	shop := &catalogue{organization: value.NewID()}
	products := min(shelfProducts, b.cfg.Products)
	s, err := shelved(shop, products)
	if err != nil {
		return err
	}
	principal := auth.Principal{Kind: auth.KindKey, OrganizationID: shop.organization, Scopes: auth.ReadScopes(), RateLimit: 1_000_000}
	server := httpapi.NewServer(records.Operations(s, s, records.Config{Clock: time.Now, Lists: index.NewLists(nil, 1)}), httpapi.Config{
		Caller: func(*http.Request) httpapi.Caller {
			return httpapi.Caller{Principal: principal, RequestID: "r", BaseURL: "https://h"}
		},
		Limiter: unlimited{}, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	t := b.table(fmt.Sprintf("Requests in the function, without the network, %s products", thousands(products)),
		"time", "allocated", "body", "allocated for its size")
	t.note = "The whole handler: checks, query, page, entity tag. What it allocates is compared with the body before compression."
	for _, row := range []struct{ about, path, parameters, encoding, target string }{
		{"list of 20, newest first", "/api/products", "", "identity", "≤ 0.5 ms, ≤ 3× the body"},
		{"list of 20, filter, order", "/api/products", "isActive=true&type=PHYSICAL&orderBy=name&page=50", "identity", "≤ 0.5 ms, ≤ 3× the body"},
		{"list of 20, filter, search, order, total", "/api/products", "isActive=true&search=linen&orderBy=sellingPrice", "identity", "≤ 0.5 ms, ≤ 3× the body"},
		{"list of 20, compressed", "/api/products", "", "gzip", "≤ 0.5 ms"},
		{"list of 100", "/api/products", "limit=100", "identity", "≤ 3× the body"},
		{"one record", "/api/products/" + shop.productID(1).String(), "", "identity", ""},
	} {
		if err := b.measureRequest(ctx, t, server, row.about, row.target, row.path, row.parameters, row.encoding); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureRequest(ctx context.Context, t *table, server http.Handler, about, target, path, parameters, encoding string) error {
	request := func(encoding string) *answered {
		r := &http.Request{
			Method: http.MethodGet, URL: &url.URL{Path: path, RawQuery: parameters}, Host: "h",
			Header: http.Header{"Accept-Encoding": {encoding}}, Body: http.NoBody,
		}
		a := &answered{header: http.Header{}}
		server.ServeHTTP(a, r.WithContext(ctx))
		return a
	}
	plain := request("identity")
	if plain.status != http.StatusOK {
		return fmt.Errorf("GET %s?%s: status %d", path, parameters, plain.status)
	}
	took := b.timed(func() { request(encoding) })
	t.add(about, target, milliseconds(took.wall), kilobytes(took.bytes), kilobytes(float64(plain.bytes)),
		fmt.Sprintf("%.1f×", took.bytes/float64(plain.bytes)))
	return nil
}
