package gateway_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/commerce-integration/service/pkg/local/gateway"
	"github.com/commerce-integration/service/pkg/local/template"
)

// BenchmarkRequest measures the gateway's own share of a request of the read
// API: an authorizer that is asked every time and a function's page of 20 KB.
func BenchmarkRequest(b *testing.B) {
	model, err := template.Load("../../../template.yaml", map[string]string{"JwtIssuer": "i", "JwtAudience": "a"})
	if err != nil {
		b.Fatal(err)
	}
	page := make([]byte, 20<<10)
	for i := range page {
		page[i] = 'x'
	}
	answers := map[string][]byte{
		"authorizer": []byte(allowAll),
		"api":        []byte(`{"statusCode":200,"multiValueHeaders":{"Content-Type":["application/json"],"Etag":["\"e\""]},"body":"` + string(page) + `"}`),
	}
	g := gateway.New(model, func(_ context.Context, function string, _ []byte) ([]byte, error) {
		return answers[function], nil
	}, nil)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("GET", "http://127.0.0.1:8080/api/products?limit=20&page=2&isActive=true", nil)
		r.Header.Set("X-API-Key", "cis_live_abcdefgh01234567890123456789012345678901")
		r.Header.Set("Accept", "application/json")
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
}
