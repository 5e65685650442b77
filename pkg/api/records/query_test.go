package records_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// idA is the id of no record.
const idA = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f0a"

// manyIDs is so many ids, comma-separated.
func manyIDs(n int) string {
	ids := make([]value.ID, n)
	for i := range ids {
		ids[i] = numbered(i)
	}
	return strings.ReplaceAll(join(ids), " ", ",")
}

func TestBadQuery(t *testing.T) {
	api := newHarness(t, present).serve()
	for _, tt := range []struct{ target, field, in, code, says string }{
		{"products?colour=red", "colour", "query", "unknown", "not a parameter"},
		{"products?placedFrom=2026-11-21", "placedFrom", "query", "unknown", "not a parameter"},
		{"orders?isActive=true", "isActive", "query", "unknown", "not a parameter"},
		{"customers?currency=EUR", "currency", "query", "unknown", "not a parameter"},
		{"products/" + idA + "?limit=5", "limit", "query", "unknown", "not a parameter"},
		{"me?siteId=" + idA, "siteId", "query", "unknown", "not a parameter"},
		{"products?externalRef=x", "externalRef", "query", "unknown", "not a parameter"},
		{"deletions?siteId=" + idA, "siteId", "query", "unknown", "not a parameter"},
		{"deletions?createdFrom=2026-11-21", "createdFrom", "query", "unknown", "not a parameter"},
		{"products?siteId=" + idA + "&siteId=" + idA, "siteId", "query", "duplicate", "once"},
		{"products?siteId=", "siteId", "query", "invalid_format", "empty"},
		{"products?orderBy=price", "orderBy", "query", "invalid_format", "sellingPrice"},
		{"products?search=a%00", "search", "query", "invalid_format", "control characters"},
		{"orders?orderNumber=%FF", "orderNumber", "query", "invalid_format", "UTF-8"},
		{"products?ids=" + manyIDs(101), "ids", "query", "out_of_range", "100"},
		{"products?brandId={" + idA + "}", "brandId", "query", "invalid_format", "UUID"},
		{"products?brandId=" + strings.ReplaceAll(idA, "-", ""), "brandId", "query", "invalid_format", "UUID"},
		{"categories?parentId=ROOT", "parentId", "query", "invalid_format", "root"},
		{"products?siteId=here", "siteId", "query", "invalid_format", "UUID"},
		{"products?includeDescendants=yes", "includeDescendants", "query", "invalid_format", "true or false"},
		{"products?type=digital", "type", "query", "invalid_format", "DIGITAL"},
		{"orders?status=CONFIRMED,SHIPPED", "status", "query", "invalid_format", "COMPLETED"},
		{"orders?currency=eur", "currency", "query", "invalid_format", "ISO 4217"},
		{"orders?currency=EUR,XYZ", "currency", "query", "invalid_format", "ISO 4217"},
		{"deletions?kind=Product", "kind", "query", "invalid_format", "product"},
		{"products?createdFrom=2026-02-29", "createdFrom", "query", "invalid_format", "RFC 3339"},
		{"products?createdFrom=2026-11-21T06:35:41", "createdFrom", "query", "invalid_format", "RFC 3339"},
		{"products?createdFrom=1795242941", "createdFrom", "query", "invalid_format", "RFC 3339"},
		{"orders?placedFrom=2026-11-22&placedTo=2026-11-21", "placedFrom", "query", "out_of_range", "placedTo"},
		{"invoices?dueFrom=2026-11-22&dueTo=2026-11-21", "dueFrom", "query", "out_of_range", "dueTo"},
		{"deletions?deletedFrom=2026-11-22&deletedTo=2026-11-21", "deletedFrom", "query", "out_of_range", "deletedTo"},
		{"products/7", "id", "path", "invalid_format", "UUID"},
		{"products/" + idA + "?siteId=here", "siteId", "query", "invalid_format", "UUID"},
	} {
		t.Run(tt.target, func(t *testing.T) {
			a := ask(t, api, user(), "/api/"+tt.target)
			p := a.problem(t)
			if a.status != http.StatusBadRequest || p.Code != "validation_failed" || len(p.Details) != 1 {
				t.Errorf("%s: got %s, want a 400 with one detail", a.asked, a.body)
				return
			}
			d := p.Details[0]
			if d.Field != tt.field || d.In != tt.in || d.Code != tt.code || !strings.Contains(d.Message, tt.says) {
				t.Errorf("%s: got %+v, want %s in %s: %s, %q", a.asked, d, tt.field, tt.in, tt.code, tt.says)
			}
			if p.Message != d.Field+" "+d.Message {
				t.Errorf("%s: the message is %q, want it to name the field and to say the same", a.asked, p.Message)
			}
		})
	}
}

func TestMissingScope(t *testing.T) {
	api := newHarness(t, present).serve()
	for path, tt := range map[string]struct {
		p      *auth.Principal
		lacked string
	}{
		"orders?limit=0":               {narrowed(key()), "orders:read"}, // the scope comes first
		"deletions?kind=order,product": {narrowed(key(), auth.ProductsRead), "orders:read"},
		"deletions":                    {narrowed(key()), auth.NewScopes(auth.ReadScopes()...).String()},
	} {
		t.Run(path, func(t *testing.T) {
			a := ask(t, api, tt.p, "/api/"+path)
			var lacked []string
			for _, d := range a.problem(t).Details {
				lacked = append(lacked, d.Field)
			}
			slices.Sort(lacked)
			if got := strings.Join(lacked, " "); a.status != http.StatusForbidden || got != tt.lacked {
				t.Errorf("%s: got %s, want 403 that names %s", a.asked, a.body, tt.lacked)
			}
		})
	}
}
