package columnar_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
)

// The orders of the benchmarks have the columns of the orders list.
var orderSchema = columnar.MustSchema("order",
	columnar.Column{Name: "siteId", Type: columnar.Keyword},
	columnar.Column{Name: "status", Type: columnar.Keyword},
	columnar.Column{Name: "paymentStatus", Type: columnar.Keyword},
	columnar.Column{Name: "fulfillmentStatus", Type: columnar.Keyword},
	columnar.Column{Name: "customerId", Type: columnar.Keyword},
	columnar.Column{Name: "currency", Type: columnar.Keyword},
	columnar.Column{Name: "orderNumber", Type: columnar.Text, Search: true, Sort: true, Match: true},
	columnar.Column{Name: "customerName", Type: columnar.Text, Search: true},
	columnar.Column{Name: "customerEmail", Type: columnar.Text, Search: true},
	columnar.Column{Name: "externalRef", Type: columnar.Text, Match: true},
	columnar.Column{Name: "total", Type: columnar.Number, Sort: true},
	columnar.Column{Name: "placedAt", Type: columnar.Time, Sort: true},
	columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
	columnar.Column{Name: "updatedAt", Type: columnar.Time, Sort: true},
)

var (
	firstNames = []string{"Anna", "Bruno", "Carla", "David", "Elena", "Felix", "Greta", "Hugo", "Inês", "Jonas", "Klara", "Luís", "María", "Noah", "Olga", "Pedro"}
	lastNames  = []string{"Almeida", "Becker", "Costa", "Dubois", "Eriksson", "Fischer", "García", "Hansen", "Ivanova", "Jansen", "Kowalski", "López", "Müller", "Novák", "Oliveira", "Petrov", "Rossi", "Schmidt", "Tanaka", "Weber"}
	statuses   = []string{"PENDING", "CONFIRMED", "PROCESSING", "SHIPPED", "DELIVERED", "DELIVERED", "DELIVERED", "CANCELLED"}
	payments   = []string{"PENDING", "PAID", "PAID", "PAID", "REFUNDED"}
	shipments  = []string{"UNFULFILLED", "PARTIAL", "FULFILLED", "FULFILLED"}
	currencies = []string{"EUR", "EUR", "EUR", "USD", "GBP"}
)

// orderPeriod is how far orders lie apart, in milliseconds, so that 1,000,000 take
// 24 months; 42,000 are one.
const orderPeriod = 62_000

// order builds the n-th order; one customer has eight.
func order(b *columnar.Builder, n int) columnar.Document {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	created := int64(epoch) + int64(n)*orderPeriod + int64(r.IntN(orderPeriod))
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(created)<<16|0x7000|uint64(r.IntN(1<<12)))
	binary.BigEndian.PutUint64(id[8:], r.Uint64()>>2|1<<63)
	customer := r.IntN(125_000)
	first, last := firstNames[customer%len(firstNames)], lastNames[customer/16%len(lastNames)]
	updated := created
	if r.IntN(4) > 0 {
		updated += int64(r.ExpFloat64() * 86_400_000)
	}
	b.Reset(id, 0)
	b.Keyword(1, reference('s', r.IntN(5))).Keyword(2, pick(r, statuses)).Keyword(3, pick(r, payments)).Keyword(4, pick(r, shipments))
	b.Keyword(5, reference('k', customer)).Keyword(6, pick(r, currencies))
	b.Text(7, fmt.Sprintf("SO-%07d", n)).Text(8, first+" "+last).Text(9, first+"."+last+strconv.Itoa(customer)+"@example.com")
	if r.IntN(2) > 0 {
		b.Text(10, "shop-"+strconv.Itoa(1_000_000+n*3+r.IntN(3)))
	}
	b.Number(11, int64(r.ExpFloat64()*90_0000))
	b.Time(12, created-int64(r.IntN(2000))).Time(13, created).Time(14, updated)
	return b.Document(updated, updated+int64(r.IntN(3000)))
}

func productDocuments(size int) []columnar.Document {
	builder := products.Build([16]byte{}, 0)
	docs := make([]columnar.Document, size)
	for n := range docs {
		docs[n] = product(builder, n, 0)
	}
	return docs
}

func orderDocuments(from, to int) []columnar.Document {
	builder := orderSchema.Build([16]byte{}, 0)
	docs := make([]columnar.Document, 0, to-from)
	for n := from; n < to; n++ {
		docs = append(docs, order(builder, n))
	}
	return docs
}

// measureCPU runs rounds and reports the best and the mean processor time of one,
// garbage collection included.
func measureCPU(b *testing.B, round func()) {
	b.ReportAllocs()
	best, sum, n := time.Duration(1<<62), time.Duration(0), 0
	for b.Loop() {
		start := cputime.Used()
		round()
		took := cputime.Used() - start
		best, sum, n = min(best, took), sum+took, n+1
	}
	b.ReportMetric(float64(best)/1e6, "best-cpu-ms")
	b.ReportMetric(float64(sum)/float64(n)/1e6, "cpu-ms")
}

func reportSizes(b *testing.B, e segment.Encoded) {
	total := 0
	for g, data := range e.Groups {
		b.ReportMetric(float64(len(data))/float64(e.Rows), fmt.Sprintf("B/doc-group%d", g))
		total += len(data)
	}
	b.ReportMetric(float64(total)/float64(e.Rows), "B/doc")
}

func BenchmarkSegmentEncode(b *testing.B) {
	for _, row := range []struct {
		name   string
		schema *columnar.Schema
		docs   []columnar.Document
	}{
		{"100000Products", products, productDocuments(100_000)},
		{"42000Orders", orderSchema, orderDocuments(0, 42_000)},
		{"100Products", products, productDocuments(100)},
	} {
		b.Run(row.name, func(b *testing.B) {
			var e segment.Encoded
			start := time.Now()
			for b.Loop() {
				e = segment.Encode(row.schema, row.docs)
			}
			b.ReportMetric(float64(b.N*len(row.docs))/time.Since(start).Seconds(), "docs/s")
			reportSizes(b, e)
		})
	}
}

// BenchmarkSegmentLoad decodes segments and loads them into an empty view.
func BenchmarkSegmentLoad(b *testing.B) {
	for _, row := range []struct {
		name   string
		schema *columnar.Schema
		docs   []columnar.Document
	}{
		{"100000Products", products, productDocuments(100_000)},
		{"42000Orders", orderSchema, orderDocuments(0, 42_000)},
	} {
		e := segment.Encode(row.schema, row.docs)
		for _, groups := range [][]columnar.ColumnGroup{nil, {columnar.SearchText}, textGroups(row.schema)} {
			b.Run(fmt.Sprintf("%s/%dGroups", row.name, len(groups)+1), func(b *testing.B) {
				var v *columnar.View
				measureCPU(b, func() {
					v = columnar.NewView(row.schema)
					segment.Load(v, decoded(b, row.schema, e, groups...))
				})
				b.ReportMetric(float64(v.Bytes())/1e6, "viewMB")
			})
		}
	}
}

func BenchmarkSegmentMerge(b *testing.B) {
	docs := productDocuments(100_000)
	var segments []*segment.Segment
	for i := range 8 {
		var part []columnar.Document
		for n := i; n < len(docs); n += 8 {
			part = append(part, docs[n])
		}
		segments = append(segments, wholeSegment(b, products, segment.Encode(products, part)))
	}
	b.ReportAllocs()
	start := time.Now()
	for b.Loop() {
		if _, err := segment.Merge(products, segments, func(d *columnar.Document) bool { return d.Deleted }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(docs))/time.Since(start).Seconds(), "docs/s")
}

// BenchmarkMillionOrders loads 24 months, each a segment, one after the other and
// all at once, and then makes all orderings and bigram indexes.
func BenchmarkMillionOrders(b *testing.B) {
	var months []segment.Encoded
	for m := range 24 {
		months = append(months, segment.Encode(orderSchema, orderDocuments(m*42_000, (m+1)*42_000)))
	}
	for _, atOnce := range []bool{false, true} {
		b.Run(fmt.Sprintf("atOnce=%v", atOnce), func(b *testing.B) {
			var v *columnar.View
			measureCPU(b, func() {
				v = columnar.NewView(orderSchema)
				var segments []*segment.Segment
				for _, e := range months {
					g := wholeSegment(b, orderSchema, e)
					if atOnce {
						segments = append(segments, g)
					} else {
						segment.Load(v, g)
					}
				}
				segment.Load(v, segments...)
			})
			before := heap()
			for c, column := range orderSchema.Columns() {
				if column.Sort {
					v.Query(columnar.Query{OrderBy: columnar.Col(c + 1), Limit: 1})
				}
			}
			v.Query(columnar.Query{Search: []string{"rossi"}})
			b.ReportMetric(float64(heap()-before)/1e6, "orderingsMB")
			b.ReportMetric(float64(v.Bytes())/1e6, "viewMB")
		})
	}
}

// BenchmarkMonthLoad brings a month of orders into a view of 23 others that has
// all its orderings.
func BenchmarkMonthLoad(b *testing.B) {
	var months []segment.Encoded
	for m := range 24 {
		months = append(months, segment.Encode(orderSchema, orderDocuments(m*42_000, (m+1)*42_000)))
	}
	const last = 12
	for _, groups := range [][]columnar.ColumnGroup{nil, textGroups(orderSchema)} {
		b.Run(fmt.Sprintf("%dGroups", len(groups)+1), func(b *testing.B) {
			best := time.Duration(1 << 62)
			for b.Loop() {
				b.StopTimer()
				v := columnar.NewView(orderSchema)
				for m, e := range months {
					if m != last {
						segment.Load(v, wholeSegment(b, orderSchema, e))
					}
				}
				for c, column := range orderSchema.Columns() {
					if column.Sort {
						v.Query(columnar.Query{OrderBy: columnar.Col(c + 1), Limit: 1})
					}
				}
				g := decoded(b, orderSchema, months[last], groups...)
				b.StartTimer()
				start := cputime.Used()
				segment.Load(v, g)
				best = min(best, cputime.Used()-start)
			}
			b.ReportMetric(float64(best)/1e6, "best-cpu-ms")
		})
	}
}
