package records_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

func TestTheSiteIsAskedForByHeaderOrQuery(t *testing.T) {
	w := newHarness(t, present)
	inA := w.put(commerce.KindOrder, order(1, siteA))
	inB := w.put(commerce.KindOrder, order(2, siteB))
	nowhere := w.put(commerce.KindOrder, order(3, value.ID{}))
	w.settle()
	api := w.serve()
	site := func(id value.ID) []string { return []string{"X-Site-Id", id.String()} }
	for i, tt := range []struct {
		p      *auth.Principal
		query  string
		header []string
		want   []*commerce.Stored
	}{
		{user(), "", nil, []*commerce.Stored{nowhere, inB, inA}},
		{user(), "?siteId=" + siteA.String(), nil, []*commerce.Stored{inA}},
		{user(), "", site(siteA), []*commerce.Stored{inA}},
		{user(), "?siteId=" + siteA.String(), []string{"X-Site-Id", "AAAAAAAA-0000-4000-8000-000000000001"}, []*commerce.Stored{inA}},
		{user(), "", site(siteC), nil},
		{key(siteA, siteB), "", nil, []*commerce.Stored{inB, inA}},
		{key(siteA), "", nil, []*commerce.Stored{inA}},
		{key(siteA), "", site(siteA), []*commerce.Stored{inA}},
		{key(siteA, siteB), "?siteId=" + siteB.String(), nil, []*commerce.Stored{inB}},
		{key(siteC), "", nil, nil},
		{application(), "", nil, []*commerce.Stored{nowhere, inB, inA}},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			a := ask(t, api, tt.p, "/api/orders"+tt.query, tt.header...)
			a.expect(t, tt.want...)
			if total := a.page(t).Meta.Total; total != len(tt.want) {
				t.Errorf("%s: total %d, want %d", a.asked, total, len(tt.want))
			}
		})
	}
}

func TestASiteThatMayNotBeAskedForIsRefused(t *testing.T) {
	w := newHarness(t, present)
	record := w.put(commerce.KindOrder, order(1, siteA))
	api := w.serve()
	for _, path := range []string{"/api/orders", "/api/orders/" + record.ID.String()} {
		t.Run(path, func(t *testing.T) {
			for _, tt := range []struct {
				p      *auth.Principal
				header string // blank: sent, but empty
				query  value.ID
				status int
				code   string
			}{
				{user(), siteA.String(), siteB, http.StatusBadRequest, "validation_failed"},
				{key(siteA, siteB), siteA.String(), siteB, http.StatusBadRequest, "validation_failed"},
				{user(), "here", value.ID{}, http.StatusBadRequest, "validation_failed"},
				{key(siteA), "here", value.ID{}, http.StatusBadRequest, "validation_failed"},
				{user(), " ", value.ID{}, http.StatusBadRequest, "validation_failed"},
				{user(), " ", siteA, http.StatusBadRequest, "validation_failed"},
				{key(siteA), " ", siteB, http.StatusForbidden, "site_forbidden"},
				{key(siteA), siteB.String(), value.ID{}, http.StatusForbidden, "site_forbidden"},
				{key(siteA), "", siteB, http.StatusForbidden, "site_forbidden"},
				{key(siteA), siteA.String(), siteB, http.StatusForbidden, "site_forbidden"},
				{key(siteA), siteB.String(), siteA, http.StatusForbidden, "site_forbidden"},
				{key(siteC), siteA.String(), value.ID{}, http.StatusForbidden, "site_forbidden"},
			} {
				var header []string
				if tt.header != "" {
					header = []string{"X-Site-Id", strings.TrimSpace(tt.header)}
				}
				query := ""
				if !tt.query.IsZero() {
					query = "?siteId=" + tt.query.String()
				}
				a := ask(t, api, tt.p, path+query, header...)
				if a.status != tt.status || a.problem(t).Code != tt.code {
					t.Errorf("%s: got %d %s, want %d %s", a.asked, a.status, a.body, tt.status, tt.code)
				}
			}
		})
	}
}

func TestGlobalCategoriesAreListedAsAskedFor(t *testing.T) {
	w := newHarness(t, present)
	category := func(n int, site value.ID) *commerce.Stored {
		m := map[string]any{"id": numbered(n), "name": "c", "order": n}
		if !site.IsZero() {
			m["siteId"] = site
		}
		return w.put(commerce.KindCategory, m)
	}
	global, inA, inB := category(1, value.ID{}), category(2, siteA), category(3, siteB)
	w.settle()
	api := w.serve()
	for i, tt := range []struct {
		p             *auth.Principal
		site          string
		includeGlobal string
		want          []*commerce.Stored
	}{
		{user(), "", "", []*commerce.Stored{global, inA, inB}},
		{user(), "", "true", []*commerce.Stored{global, inA, inB}},
		{user(), "", "false", []*commerce.Stored{inA, inB}},
		{user(), siteA.String(), "", []*commerce.Stored{inA}},
		{user(), siteA.String(), "true", []*commerce.Stored{global, inA}},
		{user(), siteA.String(), "false", []*commerce.Stored{inA}},
		{user(), siteC.String(), "", nil},
		{user(), siteC.String(), "true", []*commerce.Stored{global}},
		{key(siteA), "", "", []*commerce.Stored{global, inA}},
		{key(siteA), "", "true", []*commerce.Stored{global, inA}},
		{key(siteA), "", "false", []*commerce.Stored{inA}},
		{key(siteA), siteA.String(), "", []*commerce.Stored{inA}},
		{key(siteA), siteA.String(), "true", []*commerce.Stored{global, inA}},
		{key(siteA), siteA.String(), "false", []*commerce.Stored{inA}},
		{key(siteC), "", "", []*commerce.Stored{global}},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			query := "?orderDirection=asc"
			if tt.includeGlobal != "" {
				query += "&includeGlobal=" + tt.includeGlobal
			}
			ask(t, api, tt.p, "/api/categories"+query, ofSite(tt.site)...).expect(t, tt.want...)
			if tt.site != "" {
				ask(t, api, tt.p, "/api/categories"+query+"&siteId="+tt.site).expect(t, tt.want...)
			}
		})
	}
}

func TestAProductOfNoSiteIsSoldAtEverySite(t *testing.T) {
	w := newHarness(t, present)
	product := func(n int, sites ...value.ID) *commerce.Stored {
		return w.put(commerce.KindProduct, map[string]any{"id": numbered(n), "name": "p"}, sites...)
	}
	everywhere, inA, inAB := product(1), product(2, siteA), product(3, siteA, siteB)
	w.settle()
	api := w.serve()
	ask(t, api, user(), "/api/products?siteId="+siteA.String()).expect(t, inAB, inA, everywhere)
	ask(t, api, user(), "/api/products?siteId="+siteB.String()).expect(t, inAB, everywhere)
	ask(t, api, key(siteB), "/api/products").expect(t, inAB, everywhere)
	ask(t, api, key(siteC), "/api/products").expect(t, everywhere)
	if a := ask(t, api, key(siteA), "/api/products/"+inAB.ID.String()); string(a.body) != string(inAB.Doc) {
		t.Errorf("%s: got %s, want the stored document, which has no sites", a.asked, a.body)
	}
}

func TestWhatIsNotVisibleIsAbsentByItsID(t *testing.T) {
	w := newHarness(t, present)
	category := func(n int, fields map[string]any) *commerce.Stored {
		fields["id"], fields["name"] = numbered(n), "c"
		return w.put(commerce.KindCategory, fields)
	}
	product := w.put(commerce.KindProduct, map[string]any{"id": numbered(1), "name": "p"}, siteA)
	soldEverywhere := w.put(commerce.KindProduct, map[string]any{"id": numbered(2), "name": "p"})
	inA, global := category(3, map[string]any{"siteId": siteA}), category(4, map[string]any{})
	orderInA, orderNowhere := w.put(commerce.KindOrder, order(5, siteA)), w.put(commerce.KindOrder, order(6, value.ID{}))
	customer := w.put(commerce.KindCustomer, map[string]any{"id": numbered(7), "siteId": siteB})
	gone := w.put(commerce.KindOrder, order(8, siteA))
	w.remove(commerce.KindOrder, gone.ID)
	api := w.serve()
	for _, tt := range []struct {
		of     *commerce.Stored
		p      *auth.Principal
		site   string
		status int
	}{
		{product, user(), "", 200},
		{product, user(), siteA.String(), 200},
		{product, user(), siteB.String(), 404},
		{product, key(siteA), "", 200},
		{product, key(siteB), "", 404},
		{product, key(siteA, siteB), siteB.String(), 404},
		{soldEverywhere, key(siteC), "", 200},
		{soldEverywhere, user(), siteC.String(), 200},
		{inA, key(siteA), "", 200},
		{inA, key(siteB), "", 404},
		{global, key(siteB), "", 200},
		{orderInA, key(siteA), "", 200},
		{orderInA, key(siteB), "", 404},
		{orderNowhere, user(), "", 200},
		{orderNowhere, user(), siteA.String(), 404},
		{orderNowhere, key(siteA), "", 404},
		{orderNowhere, application(), "", 200},
		{customer, key(siteB), "", 200},
		{customer, key(siteA), "", 404},
		{customer, of(theirs, user()), "", 404},
		{gone, user(), "", 404},
		{&commerce.Stored{Kind: commerce.KindInvoice, ID: customer.ID}, user(), "", 404},
	} {
		a := ask(t, api, tt.p, "/api/"+tt.of.Kind.Plural()+"/"+tt.of.ID.String(), ofSite(tt.site)...)
		if a.status != tt.status {
			t.Errorf("%s: got %d %s, want %d", a.asked, a.status, a.body, tt.status)
		}
		if a.status == http.StatusNotFound && a.problem(t).Code != "not_found" {
			t.Errorf("%s: got %s, want not_found", a.asked, a.body)
		}
		if a.status == http.StatusOK && string(a.body) != string(tt.of.Doc) {
			t.Errorf("%s: got %s, want %s", a.asked, a.body, tt.of.Doc)
		}
	}
}

// order is an order of a site, or of none when it is zero.
func order(n int, site value.ID) map[string]any {
	m := map[string]any{"id": numbered(n), "orderNumber": "n", "currency": "EUR"}
	if !site.IsZero() {
		m["siteId"] = site
	}
	return m
}

func TestASiteHeaderThatIsRepeatedNamesOneSite(t *testing.T) {
	w := newHarness(t, present)
	inA := w.put(commerce.KindOrder, order(1, siteA))
	w.settle()
	api := w.serve()
	a, b := siteA.String(), siteB.String()
	ask(t, api, user(), "/api/orders", "X-Site-Id", a, "X-Site-Id", a).expect(t, inA)
	for _, header := range [][]string{{"X-Site-Id", a, "X-Site-Id", b}, {"X-Site-Id", "", "X-Site-Id", b, "X-Site-Id", a}} {
		if got := ask(t, api, user(), "/api/orders", header...); got.status != http.StatusBadRequest || got.problem(t).Details[0].Field != "X-Site-Id" {
			t.Errorf("%s: got %d %s, want 400 of X-Site-Id", got.asked, got.status, got.body)
		}
	}
	limited := user()
	limited.SiteIDs = []value.ID{siteB}
	for _, header := range [][]string{{"X-Site-Id", b, "X-Site-Id", a}, {"X-Site-Id", "", "X-Site-Id", a}} {
		if got := ask(t, api, limited, "/api/orders", header...); got.status != http.StatusForbidden {
			t.Errorf("%s: got %d %s, want 403: the credential covers another site only", got.asked, got.status, got.body)
		}
	}
}
