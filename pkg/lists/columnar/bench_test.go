package columnar_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// The products of the benchmarks have the filters, searches and orders of the
// products list.
var products = columnar.MustSchema("product",
	columnar.Column{Name: "siteIds", Type: columnar.Keyword},
	columnar.Column{Name: "categoryId", Type: columnar.Keyword},
	columnar.Column{Name: "brandId", Type: columnar.Keyword},
	columnar.Column{Name: "type", Type: columnar.Keyword},
	columnar.Column{Name: "isActive", Type: columnar.Bool},
	columnar.Column{Name: "trackInventory", Type: columnar.Bool},
	columnar.Column{Name: "name", Type: columnar.Text, Search: true, Sort: true},
	columnar.Column{Name: "sku", Type: columnar.Text, Search: true, Sort: true, Match: true},
	columnar.Column{Name: "barcode", Type: columnar.Text, Search: true, Match: true},
	columnar.Column{Name: "tags", Type: columnar.Text, Search: true},
	columnar.Column{Name: "externalRef", Type: columnar.Text, Match: true},
	columnar.Column{Name: "createdAt", Type: columnar.Time, Sort: true},
	columnar.Column{Name: "updatedAt", Type: columnar.Time, Sort: true},
	columnar.Column{Name: "sellingPrice", Type: columnar.Number, Sort: true},
	columnar.Column{Name: "purchasePrice", Type: columnar.Number, Sort: true},
	columnar.Column{Name: "own", Type: columnar.Text, Match: true, Each: true},
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
func product(n int, revision int64) columnar.Document { return productWith(n, revision, 0) }

// productWith has a value in each of so many own fields as well: in the first one of its
// own, in the others one of 16.
func productWith(n int, revision int64, fields int) columnar.Document {
	r := rand.New(rand.NewPCG(uint64(n), uint64(revision)))
	b := products.Build(uuid('p', n), 0)
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
	for f := 1; f <= fields; f++ {
		own := "article " + strconv.Itoa(n)
		if f > 1 {
			own = "the " + things[(n+f)%16]
		}
		b.Text(16, fmt.Sprintf("=%d", f), fmt.Sprintf("%s=%d", own, f))
	}
	return b.Document(epoch+int64(n)+revision, epoch+int64(n)*60_000+revision)
}

var productViews = struct {
	sync.Mutex
	bySize map[int]*columnar.View
}{bySize: map[int]*columnar.View{}}

// productView is made once for each size; benchmarks that change it make their own.
func productView(b testing.TB, size int) *columnar.View {
	productViews.Lock()
	defer productViews.Unlock()
	if v, ok := productViews.bySize[size]; ok {
		return v
	}
	v := newProductView(size)
	productViews.bySize[size] = v
	return v
}

func newProductView(size int) *columnar.View { return newProductViewWith(size, 0) }

func newProductViewWith(size, fields int) *columnar.View {
	v := columnar.NewView(products)
	docs := make([]columnar.Document, 0, 10_000)
	for n := range size {
		docs = append(docs, productWith(n, 0, fields))
		if len(docs) == cap(docs) || n == size-1 {
			v.Apply(docs)
			docs = docs[:0]
		}
	}
	for c, column := range products.Columns() {
		if column.Sort {
			v.Query(columnar.Query{OrderBy: columnar.Col(c + 1), Limit: 1})
		}
	}
	v.Query(columnar.Query{Search: []string{"shirt"}})
	return v
}

// viewQueries are the queries of both sizes; total 0 means not checked.
func viewQueries(size int) []struct {
	name  string
	query columnar.Query
} {
	keywords := columnar.All(columnar.In(4, "PHYSICAL"), columnar.Is(5, true), columnar.Any(columnar.In(1, reference('s', 2)), columnar.Null(1)))
	category := columnar.All(columnar.In(2, reference('c', 7)), columnar.Is(5, true))
	middle := int64(epoch + size/2*60_000)
	none := columnar.Filter{}
	type row = struct {
		name  string
		query columnar.Query
	}
	rows := []row{
		{"All/FirstPage", columnar.Query{OrderBy: 12, Desc: true, Limit: 20}},
		{"All/DeepPage", columnar.Query{OrderBy: 12, Desc: true, Limit: 20, Offset: size - 40}},
		{"Keywords/FirstPage", columnar.Query{Filter: keywords, OrderBy: 7, Limit: 20}},
		{"Keywords/MiddlePage", columnar.Query{Filter: keywords, OrderBy: 7, Limit: 20, Offset: size / 9}},
		{"Keywords/LastPage", columnar.Query{Filter: keywords, OrderBy: 7, Limit: 20, Offset: size * 2 / 9}},
		{"Category/FirstPage", columnar.Query{Filter: category, OrderBy: 7, Limit: 20}},
		{"Category/LastPage", columnar.Query{Filter: category, OrderBy: 12, Desc: true, Limit: 20, Offset: size / 250}},
		{"Descendants", columnar.Query{Filter: columnar.In(2, references('c', 40)...), OrderBy: 7, Limit: 20}},
		{"SKU", columnar.Query{Filter: columnar.In(8, fmt.Sprintf("%c%c-%06d", 'A'+4321%26, 'A'+4321/26%26, 4321)), OrderBy: 12, Limit: 20}},
		{"ExternalRef", columnar.Query{Filter: columnar.In(11, "ERP-4321"), OrderBy: 12, Limit: 20}},
		{"PriceRange", columnar.Query{Filter: columnar.Between(14, 50_00_00, 60_00_00), OrderBy: 14, Limit: 20}},
		{"TimeRange", columnar.Query{Filter: columnar.Within(13, middle, middle+1e9), OrderBy: 13, Limit: 20}},
		{"VisibleSince", columnar.Query{Filter: columnar.VisibleWithin(int64(epoch+(size-500)*60_000), math.MaxInt64), OrderBy: 13, Limit: 100}},
		{"IDs", columnar.Query{Filter: columnar.IDs(uuids(100)...), OrderBy: 12, Limit: 100}},
		{"AfterID", columnar.Query{Filter: keywords, AfterID: ptr(uuid('p', size/2)), Limit: 100}},
	}
	for _, s := range []struct {
		name   string
		tokens []string
		filter columnar.Filter
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
		rows = append(rows, row{"Search" + s.name, columnar.Query{Search: s.tokens, Filter: s.filter, OrderBy: 7, Limit: 20}})
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

func BenchmarkQuery(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000} {
		for _, row := range viewQueries(size) {
			b.Run(fmt.Sprintf("%d/%s", size, row.name), func(b *testing.B) {
				v := productView(b, size)
				b.ReportAllocs()
				var r columnar.Result
				for b.Loop() {
					r = v.Query(row.query)
				}
				b.ReportMetric(float64(r.Total), "total")
			})
		}
	}
}

// The fields of a product are none, one of which one is used, or 32.
func BenchmarkOwnFields(b *testing.B) {
	keywords := columnar.All(columnar.In(4, "PHYSICAL"), columnar.Is(5, true))
	for _, fields := range []int{0, 1, 32} {
		v := newProductViewWith(100_000, fields)
		for _, row := range []struct {
			name  string
			query columnar.Query
		}{
			{"FirstPage", columnar.Query{OrderBy: 12, Desc: true, Limit: 20}},
			{"Keywords", columnar.Query{Filter: keywords, OrderBy: 7, Limit: 20}},
			{"SKU", columnar.Query{Filter: columnar.In(8, "AB-004321"), OrderBy: 12, Limit: 20}},
			{"Search", columnar.Query{Search: []string{"cotton"}, OrderBy: 7, Limit: 20}},
			{"OwnRare", columnar.Query{Filter: columnar.In(16, "article 4321=1"), OrderBy: 12, Limit: 20}},
			{"OwnSixteenth", columnar.Query{Filter: columnar.In(16, "the lamp=2"), OrderBy: 12, Limit: 20}},
			{"KeywordsAndHas", columnar.Query{Filter: columnar.All(keywords, columnar.In(16, "=1")), OrderBy: 7, Limit: 20}},
		} {
			b.Run(fmt.Sprintf("%d/%s", fields, row.name), func(b *testing.B) {
				v.Query(row.query)
				for b.Loop() {
					v.Query(row.query)
				}
				b.ReportMetric(float64(v.Bytes())/100_000, "B/document")
			})
		}
		b.Run(fmt.Sprintf("%d/OwnFirstTime", fields), func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				v.Query(columnar.Query{Filter: columnar.In(16, fmt.Sprintf("article %d=1", n)), OrderBy: 12, Limit: 20})
			}
		})
	}
}

// Every round changes 100 of the documents.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%d/100", size), func(b *testing.B) {
			v := newProductView(size)
			random := rand.New(rand.NewPCG(3, 4))
			docs := make([]columnar.Document, 100)
			b.ReportAllocs()
			for revision := int64(1); b.Loop(); revision++ {
				b.StopTimer()
				for i := range docs {
					docs[i] = product(random.IntN(size), revision)
				}
				b.StartTimer()
				v.Apply(docs)
			}
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
