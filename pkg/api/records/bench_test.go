package records_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// catalogue is how many products the benchmarks list.
const catalogue = 20_000

// newCatalogue is a shelf of products of the usual size.
func newCatalogue(b *testing.B) *shelf {
	b.Helper()
	s := newShelf()
	products := make([]map[string]any, catalogue)
	for i := range products {
		products[i] = map[string]any{
			"id": value.DeriveID(ours, fmt.Sprint(i)), "name": fmt.Sprintf("Linen shirt No. %05d", i), "sku": fmt.Sprintf("LS-%05d", i),
			"description": "A shirt of washed linen with a button-down collar, made to be worn open or closed, in all sizes.",
			"type":        "PHYSICAL", "barcode": fmt.Sprintf("40%011d", i), "categoryId": numbered(i % 50), "brandId": numbered(i % 7),
			"sellingPrice": float64(i%9000) / 100, "isActive": i%5 > 0, "images": []string{"https://cdn.example.com/shirts/1.jpg"},
			"tags": []string{"summer", fmt.Sprintf("colour %d", i%40)}, "attributes": map[string]any{"size": "M", "material": "linen"},
			"createdAt": value.TimeOf(present) - value.Time(i)*60_000,
		}
	}
	s.put(b, commerce.KindProduct, products...)
	return s
}

// discard is a response that nobody reads.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func (d *discard) Header() http.Header { return d.header }

func (d *discard) WriteHeader(status int) { d.status = status }

func (d *discard) Write(p []byte) (int, error) {
	d.bytes += len(p)
	return len(p), nil
}

// BenchmarkRequest measures a whole request in the handler, without a network:
// the checks, the query, the page and its tag. Views and caches are warm.
func BenchmarkRequest(b *testing.B) {
	api := newCatalogue(b).serve()
	one := "/api/products/" + value.DeriveID(ours, "7").String()
	for _, bench := range []struct{ name, path, query, encoding string }{
		{"list of 20", "/api/products", "", "identity"},
		{"list of 20 compressed", "/api/products", "", "gzip"},
		{"list of 100", "/api/products", "limit=100", "identity"},
		{"filtered list of 20", "/api/products", "isActive=true&categoryId=" + numbered(1).String() + "&orderBy=name", "identity"},
		{"searched list of 20", "/api/products", "search=shirt+01", "identity"},
		{"filtered, searched and ordered list of 20", "/api/products", "isActive=true&search=shirt+01&orderBy=sellingPrice", "identity"},
		{"deep page of 20", "/api/products", "page=500&orderBy=name", "identity"},
		{"item", one, "", "identity"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := (&http.Request{
				Method: http.MethodGet, URL: &url.URL{Path: bench.path, RawQuery: bench.query}, Host: "host",
				Header: http.Header{"Accept": {"*/*"}, "Accept-Encoding": {bench.encoding}}, Body: http.NoBody,
			}).WithContext(context.WithValue(b.Context(), principalKey{}, user()))
			b.ReportAllocs()
			var size int
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				d := &discard{header: http.Header{}}
				api.ServeHTTP(d, r)
				if d.status != http.StatusOK {
					b.Fatalf("%s?%s: got %d", bench.path, bench.query, d.status)
				}
				size = d.bytes
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(size), "bytes/answer")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/float64(size), "allocated/answer")
		})
	}
}
