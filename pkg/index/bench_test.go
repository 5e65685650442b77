package index_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/index"
)

// The products of the benchmarks have the filters, searches and orders of the
// products list.
var products = index.MustSchema("product",
	index.Column{Name: "siteIds", Type: index.Keyword},
	index.Column{Name: "categoryId", Type: index.Keyword},
	index.Column{Name: "brandId", Type: index.Keyword},
	index.Column{Name: "type", Type: index.Keyword},
	index.Column{Name: "isActive", Type: index.Bool},
	index.Column{Name: "trackInventory", Type: index.Bool},
	index.Column{Name: "name", Type: index.Text, Search: true, Sort: true},
	index.Column{Name: "sku", Type: index.Text, Search: true, Sort: true, Match: true},
	index.Column{Name: "barcode", Type: index.Text, Search: true, Match: true},
	index.Column{Name: "tags", Type: index.Text, Search: true},
	index.Column{Name: "externalRef", Type: index.Text, Match: true},
	index.Column{Name: "createdAt", Type: index.Time, Sort: true},
	index.Column{Name: "updatedAt", Type: index.Time, Sort: true},
	index.Column{Name: "sellingPrice", Type: index.Number, Sort: true},
	index.Column{Name: "purchasePrice", Type: index.Number, Sort: true},
)

var (
	adjectives = []string{"Organic", "Classic", "Slim", "Rustic", "Ergonomic", "Handmade", "Vintage", "Modern", "Light", "Heavy", "Recycled", "Premium"}
	materials  = []string{"Cotton", "Linen", "Wool", "Steel", "Oak", "Granite", "Leather", "Silk", "Bamboo", "Glass", "Ceramic", "Café", "Plástico"}
	things     = []string{"Shirt", "Trousers", "Chair", "Table", "Lamp", "Kettle", "Bag", "Hat", "Gloves", "Mug", "Bowl", "Pillow", "Curtain", "Rug", "Clock", "Vase"}
	labels     = []string{"sale", "new", "summer", "winter", "eco", "gift", "outdoor", "kids", "bestseller", "limited"}
	kinds      = []string{"PHYSICAL", "PHYSICAL", "PHYSICAL", "DIGITAL", "SERVICE", "BUNDLE", "GIFT_CARD"}
)

const epoch = 1_760_000_000_000

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func uuid(kind byte, n int) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:], uint64(epoch+n*60_000)<<16|0x7000)
	binary.BigEndian.PutUint64(id[8:], uint64(n)*0x9e3779b97f4a7c15|1<<63)
	id[15] ^= kind
	return id
}

func reference(kind byte, n int) string { id := uuid(kind, n); return string(id[:]) }

// product builds the n-th product at a revision; its text has 74 bytes.
func product(b *index.Builder, n int, revision int64) index.Document {
	r := rand.New(rand.NewPCG(uint64(n), uint64(revision)))
	b.Reset(uuid('p', n), 0)
	if r.IntN(3) > 0 {
		b.Keyword(1, reference('s', r.IntN(5)))
	}
	b.Keyword(2, reference('c', r.IntN(200))).Keyword(3, reference('b', r.IntN(1000))).Keyword(4, pick(r, kinds))
	b.Bool(5, r.IntN(10) > 0).Bool(6, r.IntN(2) > 0)
	b.Text(7, pick(r, adjectives)+" "+pick(r, materials)+" "+pick(r, things)+" "+strconv.Itoa(r.IntN(1000)))
	b.Text(8, fmt.Sprintf("%c%c-%06d", 'A'+n%26, 'A'+n/26%26, n)).Text(9, fmt.Sprintf("%013d", 4_000_000_000_000+int64(n)*7919))
	b.Text(10, pick(r, labels), pick(r, labels))
	b.Text(11, "erp-"+strconv.Itoa(n))
	b.Time(12, epoch+int64(n)*60_000).Time(13, epoch+int64(n)*60_000+int64(r.IntN(1e9)))
	b.Number(14, int64(r.IntN(200_00))*100)
	if r.IntN(4) > 0 {
		b.Number(15, int64(r.IntN(100_00))*100)
	}
	return b.Document(epoch+int64(n)+revision, epoch+int64(n)*60_000+revision)
}

var productViews = struct {
	sync.Mutex
	bySize map[int]*index.View
}{bySize: map[int]*index.View{}}

// productView is made once for each size; benchmarks that change it make their own.
func productView(b testing.TB, size int) *index.View {
	productViews.Lock()
	defer productViews.Unlock()
	if v, ok := productViews.bySize[size]; ok {
		return v
	}
	v := newProductView(size)
	productViews.bySize[size] = v
	return v
}

func newProductView(size int) *index.View {
	v := index.NewView(products)
	builder := products.Build([16]byte{}, 0)
	docs := make([]index.Document, 0, 10_000)
	for n := range size {
		docs = append(docs, product(builder, n, 0))
		if len(docs) == cap(docs) || n == size-1 {
			v.Apply(docs)
			docs = docs[:0]
		}
	}
	for c, column := range products.Columns() {
		if column.Sort {
			v.Query(index.Query{OrderBy: index.Col(c + 1), Limit: 1})
		}
	}
	v.Query(index.Query{Search: []string{"shirt"}})
	return v
}

// viewQueries are the queries of both sizes; total 0 means not checked.
func viewQueries(size int) []struct {
	name  string
	query index.Query
} {
	keywords := index.All(index.In(4, "PHYSICAL"), index.Is(5, true), index.Any(index.In(1, reference('s', 2)), index.Null(1)))
	category := index.All(index.In(2, reference('c', 7)), index.Is(5, true))
	middle := int64(epoch + size/2*60_000)
	none := index.Filter{}
	type row = struct {
		name  string
		query index.Query
	}
	rows := []row{
		{"All/FirstPage", index.Query{OrderBy: 12, Desc: true, Limit: 20}},
		{"All/DeepPage", index.Query{OrderBy: 12, Desc: true, Limit: 20, Offset: size - 40}},
		{"Keywords/FirstPage", index.Query{Filter: keywords, OrderBy: 7, Limit: 20}},
		{"Keywords/MiddlePage", index.Query{Filter: keywords, OrderBy: 7, Limit: 20, Offset: size / 9}},
		{"Keywords/LastPage", index.Query{Filter: keywords, OrderBy: 7, Limit: 20, Offset: size * 2 / 9}},
		{"Category/FirstPage", index.Query{Filter: category, OrderBy: 7, Limit: 20}},
		{"Category/LastPage", index.Query{Filter: category, OrderBy: 12, Desc: true, Limit: 20, Offset: size / 250}},
		{"Descendants", index.Query{Filter: index.In(2, references('c', 40)...), OrderBy: 7, Limit: 20}},
		{"SKU", index.Query{Filter: index.In(8, fmt.Sprintf("%c%c-%06d", 'A'+4321%26, 'A'+4321/26%26, 4321)), OrderBy: 12, Limit: 20}},
		{"ExternalRef", index.Query{Filter: index.In(11, "ERP-4321"), OrderBy: 12, Limit: 20}},
		{"PriceRange", index.Query{Filter: index.Between(14, 50_00_00, 60_00_00), OrderBy: 14, Limit: 20}},
		{"TimeRange", index.Query{Filter: index.Within(13, middle, middle+1e9), OrderBy: 13, Limit: 20}},
		{"VisibleSince", index.Query{Filter: index.VisibleWithin(int64(epoch+(size-500)*60_000), math.MaxInt64), OrderBy: 13, Limit: 100}},
		{"IDs", index.Query{Filter: index.IDs(uuids(100)...), OrderBy: 12, Limit: 100}},
		{"AfterID", index.Query{Filter: keywords, AfterID: ptr(uuid('p', size/2)), Limit: 100}},
	}
	for _, s := range []struct {
		name   string
		tokens []string
		filter index.Filter
	}{
		{"Rare", []string{"004321"}, none},
		{"RareWord", []string{"zebra"}, none},
		{"Rare2", []string{"zq"}, none},
		{"Tenth", []string{"cotton"}, none},
		{"Most", []string{"00"}, none},
		{"MostLetter", []string{"e"}, none},
		{"Three", []string{"organic", "cotton", "shirt"}, none},
		{"ThreeCommon", []string{"er", "00", "-0"}, none},
		{"ThreeInCategory", []string{"er", "00", "-0"}, category},
	} {
		rows = append(rows, row{"Search" + s.name, index.Query{Search: s.tokens, Filter: s.filter, OrderBy: 7, Limit: 20}})
	}
	return rows
}

func ptr[T any](v T) *T { return &v }

func references(kind byte, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = reference(kind, i)
	}
	return list
}

func uuids(n int) [][16]byte {
	list := make([][16]byte, n)
	for i := range list {
		list[i] = uuid('p', i*37)
	}
	return list
}

// durations are the times of single rounds: on a machine with other work, the best
// and the median say more than the mean.
type durations []time.Duration

func (d durations) report(b *testing.B) {
	slices.Sort(d)
	b.ReportMetric(float64(d[0])/1e3, "best-µs")
	b.ReportMetric(float64(d[len(d)/2])/1e3, "median-µs")
	b.ReportMetric(float64(d[len(d)-1])/1e3, "worst-µs")
}

func BenchmarkQuery(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000} {
		for _, row := range viewQueries(size) {
			b.Run(fmt.Sprintf("%d/%s", size, row.name), func(b *testing.B) {
				v := productView(b, size)
				b.ReportAllocs()
				var r index.Result
				times := make(durations, 0, 4096)
				for b.Loop() {
					start := time.Now()
					r = v.Query(row.query)
					times = append(times, time.Since(start))
				}
				times.report(b)
				b.ReportMetric(float64(r.Total), "total")
			})
		}
	}
}

// Every round changes 100 of the documents.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%d/100", size), func(b *testing.B) {
			v := newProductView(size)
			builder := products.Build([16]byte{}, 0)
			random := rand.New(rand.NewPCG(3, 4))
			docs := make([]index.Document, 100)
			var times durations
			b.ReportAllocs()
			for revision := int64(1); b.Loop(); revision++ {
				b.StopTimer()
				for i := range docs {
					docs[i] = product(builder, random.IntN(size), revision)
				}
				b.StartTimer()
				start := time.Now()
				v.Apply(docs)
				times = append(times, time.Since(start))
			}
			times.report(b)
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	builder := products.Build([16]byte{}, 0)
	docs := make([]index.Document, 100_000)
	for n := range docs {
		docs[n] = product(builder, n, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		index.NewView(products).Apply(docs)
	}
}

func BenchmarkOrdering(b *testing.B) {
	builder := products.Build([16]byte{}, 0)
	docs := make([]index.Document, 100_000)
	for n := range docs {
		docs[n] = product(builder, n, 0)
	}
	for _, col := range []index.Col{7, 14} {
		b.Run(products.Columns()[col-1].Name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				v := index.NewView(products)
				v.Apply(docs)
				b.StartTimer()
				v.Query(index.Query{OrderBy: col, Limit: 1})
			}
		})
	}
}

func BenchmarkDocument(b *testing.B) {
	builder := products.Build([16]byte{}, 0)
	doc := product(builder, 4321, 0)
	data := index.AppendDocument(nil, &doc)
	b.Run("Append", func(b *testing.B) {
		b.ReportAllocs()
		var buffer []byte
		for b.Loop() {
			buffer = index.AppendDocument(buffer[:0], &doc)
		}
		b.ReportMetric(float64(len(buffer)), "bytes")
	})
	b.Run("Decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := index.DecodeDocument(products, data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Match", func(b *testing.B) {
		b.ReportAllocs()
		q := index.Query{Filter: index.All(index.In(4, "PHYSICAL"), index.Is(5, true)), Search: []string{"004321"}}
		for b.Loop() {
			index.Match(products, q, doc)
		}
	})
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkMemory reports what a view of products takes with all its orderings, by
// its own estimate and by the heap.
func BenchmarkMemory(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				v := newProductView(size)
				b.ReportMetric(float64(heap()-before)/1e6, "heapMB")
				b.ReportMetric(float64(v.Bytes())/1e6, "estimatedMB")
			}
		})
	}
}
