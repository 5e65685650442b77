package records_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// idA and idB are ids of no record.
	idA = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f0a"
	idB = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f0b"
)

// manyIDs is so many ids, comma-separated.
func manyIDs(n int) string {
	ids := make([]value.ID, n)
	for i := range ids {
		ids[i] = numbered(i)
	}
	return strings.ReplaceAll(join(ids), " ", ",")
}

func TestAQueryIsRefusedByWhatIsWrongWithIt(t *testing.T) {
	api := newHarness(t, present).serve()
	for _, tt := range []struct{ target, field, in, code, says string }{
		{"products?colour=red", "colour", "query", "unknown", "not a parameter"},
		{"products?Limit=5", "Limit", "query", "unknown", "not a parameter"},
		{"products?placedFrom=2026-11-21", "placedFrom", "query", "unknown", "not a parameter"},
		{"orders?isActive=true", "isActive", "query", "unknown", "not a parameter"},
		{"customers?currency=EUR", "currency", "query", "unknown", "not a parameter"},
		{"products/" + idA + "?limit=5", "limit", "query", "unknown", "not a parameter"},
		{"me?siteId=" + idA, "siteId", "query", "unknown", "not a parameter"},
		{"products?externalRef=x", "externalRef", "query", "unknown", "not a parameter"},
		{"categories?externalRef=x", "externalRef", "query", "unknown", "not a parameter"},
		{"deletions?siteId=" + idA, "siteId", "query", "unknown", "not a parameter"},
		{"deletions?createdFrom=2026-11-21", "createdFrom", "query", "unknown", "not a parameter"},
		{"deletions?createdTo=2026-11-21", "createdTo", "query", "unknown", "not a parameter"},
		{"deletions?updatedFrom=2026-11-21", "updatedFrom", "query", "unknown", "not a parameter"},
		{"deletions?updatedTo=2026-11-21", "updatedTo", "query", "unknown", "not a parameter"},
		{"products?limit=5&limit=5", "limit", "query", "duplicate", "once"},
		{"products?sku=a&sku=b", "sku", "query", "duplicate", "once"},
		{"products?search=a&search=b", "search", "query", "duplicate", "once"},
		{"products?siteId=" + idA + "&siteId=" + idA, "siteId", "query", "duplicate", "once"},
		{"products?limit=", "limit", "query", "invalid_format", "empty"},
		{"products?limit", "limit", "query", "invalid_format", "empty"},
		{"products?siteId=", "siteId", "query", "invalid_format", "empty"},
		{"products?sku=", "sku", "query", "invalid_format", "empty"},
		{"products?sku=+", "sku", "query", "invalid_format", "empty"},
		{"products?ids=", "ids", "query", "invalid_format", "empty"},
		{"products?page=0", "page", "query", "out_of_range", "between 1 and 2147483647"},
		{"products?page=2147483648", "page", "query", "out_of_range", "between 1 and 2147483647"},
		{"products?page=99999999999999999999999", "page", "query", "out_of_range", "between 1 and 2147483647"},
		{"products?page=-1", "page", "query", "invalid_format", "digits only"},
		{"products?page=%2B1", "page", "query", "invalid_format", "digits only"},
		{"products?page=01", "page", "query", "invalid_format", "digits only"},
		{"products?page=1.0", "page", "query", "invalid_format", "digits only"},
		{"products?page=one", "page", "query", "invalid_format", "digits only"},
		{"products?limit=0", "limit", "query", "out_of_range", "between 1 and 100"},
		{"products?limit=101", "limit", "query", "out_of_range", "between 1 and 100"},
		{"products?limit=020", "limit", "query", "invalid_format", "digits only"},
		{"products?limit=%D9%A2", "limit", "query", "invalid_format", "digits only"},
		{"products?orderBy=price", "orderBy", "query", "invalid_format", "sellingPrice"},
		{"products?orderBy=NAME", "orderBy", "query", "invalid_format", "one of"},
		{"products?orderDirection=up", "orderDirection", "query", "invalid_format", "asc or desc"},
		{"products?afterId=1", "afterId", "query", "invalid_format", "UUID"},
		{"products?afterId=" + idA + "&page=1", "page", "query", "not_allowed", "afterId"},
		{"products?afterId=" + idA + "&orderBy=name", "orderBy", "query", "not_allowed", "afterId"},
		{"products?afterId=" + idA + "&orderDirection=desc", "orderDirection", "query", "not_allowed", "ascending"},
		{"products?search=" + strings.Repeat("%C3%A9", 201), "search", "query", "out_of_range", "200 characters"},
		{"products?search=a%00", "search", "query", "invalid_format", "control characters"},
		{"orders?orderNumber=%FF", "orderNumber", "query", "invalid_format", "UTF-8"},
		{"products?search=a" + strings.Repeat("+a", 10), "search", "query", "out_of_range", "10 words"},
		{"products?ids=" + manyIDs(101), "ids", "query", "out_of_range", "100"},
		{"products?ids=" + idA + ",", "ids", "query", "invalid_format", "UUID"},
		{"products?ids=" + idA + ",+" + idB, "ids", "query", "invalid_format", "UUID"},
		{"products?brandId=7", "brandId", "query", "invalid_format", "UUID"},
		{"products?brandId={" + idA + "}", "brandId", "query", "invalid_format", "UUID"},
		{"products?brandId=" + strings.ReplaceAll(idA, "-", ""), "brandId", "query", "invalid_format", "UUID"},
		{"products?brandId=" + idA + "," + idB, "brandId", "query", "invalid_format", "UUID"},
		{"products?categoryId=root", "categoryId", "query", "invalid_format", "UUID"},
		{"categories?parentId=ROOT", "parentId", "query", "invalid_format", "root"},
		{"products?siteId=here", "siteId", "query", "invalid_format", "UUID"},
		{"products?isActive=TRUE", "isActive", "query", "invalid_format", "true or false"},
		{"products?isActive=1", "isActive", "query", "invalid_format", "true or false"},
		{"products?includeDescendants=yes", "includeDescendants", "query", "invalid_format", "true or false"},
		{"invoices?isOverdue=null", "isOverdue", "query", "invalid_format", "true or false"},
		{"products?type=digital", "type", "query", "invalid_format", "DIGITAL"},
		{"products?type=DIGITAL,", "type", "query", "invalid_format", "DIGITAL"},
		{"products?type=DIGITAL,+BUNDLE", "type", "query", "invalid_format", "DIGITAL"},
		{"orders?status=CONFIRMED,SHIPPED", "status", "query", "invalid_format", "COMPLETED"},
		{"orders?currency=eur", "currency", "query", "invalid_format", "ISO 4217"},
		{"orders?currency=EUR,XYZ", "currency", "query", "invalid_format", "ISO 4217"},
		{"deletions?kind=Product", "kind", "query", "invalid_format", "product"},
		{"products?createdFrom=yesterday", "createdFrom", "query", "invalid_format", "RFC 3339"},
		{"products?createdFrom=2026-02-29", "createdFrom", "query", "invalid_format", "RFC 3339"},
		{"products?createdFrom=2026-11-21T06:35:41", "createdFrom", "query", "invalid_format", "RFC 3339"},
		{"products?createdFrom=1795242941", "createdFrom", "query", "invalid_format", "RFC 3339"},
		{"products?createdFrom=2026-11-21T06:35:41+01:00", "createdFrom", "query", "invalid_format", "encode + as %2B"},
		{"products?createdFrom=2026-11-21T06:35:41.0123456789Z", "createdFrom", "query", "invalid_format", "nine decimals"},
		{"products?createdFrom=2026-11-22&createdTo=2026-11-21", "createdFrom", "query", "out_of_range", "createdTo"},
		{"products?updatedFrom=2026-11-21T00:00:00.001Z&updatedTo=2026-11-21", "updatedFrom", "query", "out_of_range", "updatedTo"},
		{"orders?placedFrom=2026-11-22&placedTo=2026-11-21", "placedFrom", "query", "out_of_range", "placedTo"},
		{"invoices?dueFrom=2026-11-22&dueTo=2026-11-21", "dueFrom", "query", "out_of_range", "dueTo"},
		{"invoices?issuedTo=", "issuedTo", "query", "invalid_format", "empty"},
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

func TestEverythingWrongIsNamedAtOnce(t *testing.T) {
	a := ask(t, newHarness(t, present).serve(), user(), "/api/products?limit=0&isActive=maybe&brandId=x")
	var fields []string
	for _, d := range a.problem(t).Details {
		fields = append(fields, d.Field)
	}
	if got := strings.Join(fields, " "); got != "brandId isActive limit" {
		t.Errorf("%s: named %s, want brandId isActive limit", a.asked, got)
	}
}

func TestParametersAreTakenUpToTheirBounds(t *testing.T) {
	api := newHarness(t, present).serve()
	for _, target := range []string{
		"products?page=1", "products?page=2147483647&limit=100", "products?limit=1", "products?limit=100",
		"products?orderDirection=DESC", "products?orderDirection=Asc",
		"products?search=", "products?search", "products?search=+++", "products?search=" + strings.Repeat("%C3%A9", 200),
		"products?search=++" + strings.Repeat("x", 200) + "++", "products?search=a" + strings.Repeat("+a", 9),
		"products?search=%09a%0A", "products?ids=" + manyIDs(100), "products?ids=" + strings.ToUpper(idA),
		"products?brandId=" + strings.ToUpper(idA), "products?afterId=" + strings.ToUpper(idA) + "&limit=100",
		"products?type=DIGITAL", "products?type=DIGITAL,BUNDLE,DIGITAL", "orders?currency=EUR,USD", "categories?parentId=root",
		"products?createdFrom=2026-11-21", "products?createdFrom=2024-02-29", "products?createdFrom=2026-11-21T06:35:41Z",
		"products?createdFrom=2026-11-21T06:35:41.2Z", "products?createdFrom=2026-11-21T06:35:41.242-11:30",
		"products?createdFrom=2026-11-21T06:35:41.242%2B01:00", "products?createdFrom=2026-11-21&createdTo=2026-11-21",
		"products?createdFrom=0001-01-01&createdTo=9999-12-31T23:59:59.999Z", "products?sku=%20x%20", "orders?externalRef=x", "customers?externalRef=x", "invoices?externalRef=x",
		"deletions?kind=product,order&deletedFrom=2026-11-21", "products/?limit=1",
	} {
		t.Run(target, func(t *testing.T) {
			if a := ask(t, api, user(), "/api/"+target); a.status != http.StatusOK || string(a.body)[:10] != `{"data":[]` {
				t.Errorf("%s: got %d %s, want an empty page", a.asked, a.status, a.body)
			}
		})
	}
}

func TestAMissingScopeIsNamed(t *testing.T) {
	api := newHarness(t, present).serve()
	for path, scope := range map[string]string{
		"products": "products:read", "categories": "categories:read", "orders": "orders:read", "customers": "customers:read",
		"invoices": "invoices:read", "orders/" + idA: "orders:read", "orders?limit=0": "orders:read", "deletions?kind=order,product": "orders:read",
	} {
		t.Run(path, func(t *testing.T) {
			p := narrowed(key())
			if strings.HasPrefix(path, "deletions") {
				p = narrowed(key(), "products:read")
			}
			a := ask(t, api, p, "/api/"+path)
			problem := a.problem(t)
			if a.status != http.StatusForbidden || problem.Code != "insufficient_scope" || len(problem.Details) != 1 || problem.Details[0].Field != scope {
				t.Errorf("%s: got %s, want 403 that names %s", a.asked, a.body, scope)
			}
		})
	}
	if a := ask(t, api, narrowed(key()), "/api/deletions"); a.status != http.StatusForbidden || len(a.problem(t).Details) != len(auth.ReadScopes()) {
		t.Errorf("%s without any scope: got %s, want 403 that names each that would do", a.asked, a.body)
	}
}
