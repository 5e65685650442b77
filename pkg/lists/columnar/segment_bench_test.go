package columnar_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
)

func productDocuments(size int) []columnar.Document {
	docs := make([]columnar.Document, size)
	for n := range docs {
		docs[n] = product(n, 0)
	}
	return docs
}

func BenchmarkSegmentEncode(b *testing.B) {
	for _, size := range []int{100_000, 100} {
		b.Run(fmt.Sprintf("%dProducts", size), func(b *testing.B) {
			docs := productDocuments(size)
			var e segment.Encoded
			start := time.Now()
			for b.Loop() {
				e = segment.Encode(products, docs)
			}
			b.ReportMetric(float64(b.N*size)/time.Since(start).Seconds(), "docs/s")
			for g, data := range e.Groups {
				b.ReportMetric(float64(len(data))/float64(size), fmt.Sprintf("B/doc-group%d", g))
			}
		})
	}
}

// BenchmarkSegmentLoad decodes a segment and loads it into an empty view. It reports
// processor time, garbage collection included.
func BenchmarkSegmentLoad(b *testing.B) {
	e := segment.Encode(products, productDocuments(100_000))
	for name, load := range map[string]func() *columnar.View{
		"core": func() *columnar.View {
			v := columnar.NewCoreView(products)
			segment.Load(v, coreSegment(b, products, e))
			return v
		},
		"text": func() *columnar.View {
			v := columnar.NewView(products)
			segment.Load(v, wholeSegment(b, products, e))
			return v
		},
	} {
		b.Run("100000Products/"+name, func(b *testing.B) {
			b.ReportAllocs()
			var v *columnar.View
			before := cputime.Used()
			for b.Loop() {
				v = load()
			}
			b.ReportMetric(float64((cputime.Used()-before).Microseconds())/float64(b.N), "cpu-µs/op")
			b.ReportMetric(float64(v.Bytes())/1e6, "viewMB")
		})
	}
}
