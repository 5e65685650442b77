package records_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

func TestForbiddenSite(t *testing.T) {
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

// order is an order of a site, or of none when it is zero.
func order(n int, site value.ID) map[string]any {
	m := map[string]any{"id": numbered(n), "orderNumber": "n", "currency": "EUR"}
	if !site.IsZero() {
		m["siteId"] = site
	}
	return m
}

func TestSiteHeaderIsRepeated(t *testing.T) {
	w := newHarness(t, present)
	inA := w.put(commerce.KindOrder, order(1, siteA))
	w.settle()
	api := w.serve()
	a, b := siteA.String(), siteB.String()
	ask(t, api, user(), "/api/orders", "X-Site-Id", a, "X-Site-Id", a).expect(t, inA)
	ask(t, api, user(), "/api/orders?siteId="+a, "X-Site-Id", strings.ToUpper(a)).expect(t, inA)
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
