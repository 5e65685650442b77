package records_test

import (
	"net/http"
	"strings"
	"testing"
)

// idA is the id of no record.
const idA = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f0a"

func TestBadQuery(t *testing.T) {
	api := newHarness(t, present).serve()
	for _, tt := range []struct{ target, field, in, code, says string }{
		{"products/" + idA + "?limit=5", "limit", "query", "unknown", "not a parameter"},
		{"me?siteId=" + idA, "siteId", "query", "unknown", "not a parameter"},
		{"deletions?siteId=" + idA, "siteId", "query", "unknown", "not a parameter"},
		{"categories?parentId=ROOT", "parentId", "query", "invalid_format", "root"},
		{"products?siteId=here", "siteId", "query", "invalid_format", "UUID"},
		{"orders?status=CONFIRMED,SHIPPED", "status", "query", "invalid_format", "COMPLETED"},
		{"orders?currency=EUR,XYZ", "currency", "query", "invalid_format", "ISO 4217"},
		{"deletions?kind=Product", "kind", "query", "invalid_format", "product"},
		{"orders?placedFrom=2026-11-22&placedTo=2026-11-21", "placedFrom", "query", "out_of_range", "placedTo"},
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
