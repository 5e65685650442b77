package index_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// TestMemoryIsBounded compares what a view of orders takes with what was planned
// for it, before and after it was searched and ordered.
func TestMemoryIsBounded(t *testing.T) {
	p := &meteredHarness{org: value.NewID(), now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
	p.lists = index.NewLists(p.table, 1)
	schema := p.lists.Records[commerce.KindOrder].Schema
	for _, count := range []int{1, 10, 1_000, 4_097, 100_000} {
		t.Run(fmt.Sprint(count, " orders"), func(t *testing.T) {
			var documents []columnar.Document
			for n := range count {
				documents = append(documents, p.order(n, count, 0))
			}
			e := segment.Encode(schema, documents)
			stored := index.Segment{Rows: e.Rows, Unpacked: e.Unpacked}
			for g, data := range e.Groups {
				stored.Groups[g] = len(data)
			}
			s, err := segment.Decode(schema, e.Groups[columnar.Core])
			if err != nil {
				t.Fatal(err)
			}
			v := columnar.NewView(schema)
			segment.Load(v, s)
			check := func(what string, bound int64) {
				t.Helper()
				if got := v.Bytes() - 1024; got > bound || count >= 1000 && 5*got < bound {
					t.Errorf("%s: %d bytes, planned %d", what, got, bound)
				}
			}
			bound := stored.Memory(schema, index.Core)
			check("core", bound)
			for _, g := range schema.TextGroups() {
				if err := s.Fill(v, g, e.Groups[g]); err != nil {
					t.Fatal(err)
				}
				bound += stored.Memory(schema, columnar.SetOf(g))
			}
			check("text", bound)
			q := columnar.Query{Search: []string{"so-00004"}, OrderBy: schema.Col("total"), Limit: 20}
			bound += v.WorkMemory(&q)
			v.Query(q)
			check("searched", bound)
			v.Query(columnar.Query{OrderBy: q.OrderBy, Limit: 20})
			if work := v.WorkMemory(&q); count == 100_000 && work > bound/100 {
				t.Errorf("the same query again adds %d bytes, want hardly any", work)
			}
			unknown := index.Segment{Rows: stored.Rows, Groups: stored.Groups}
			if got := unknown.Memory(schema, schema.ColumnGroups()); got < v.Bytes()/2 {
				t.Errorf("without the bytes before compression: planned %d, took %d", got, v.Bytes())
			}
		})
	}
}

// BenchmarkPlannedMemory prints what is planned for a product of a list that is
// searched and ordered.
func BenchmarkPlannedMemory(b *testing.B) {
	const count = 200_000
	schema := index.NewLists(nil, 1).Records[commerce.KindProduct].Schema
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // data of a benchmark
	documents := make([]columnar.Document, count)
	for n := range documents {
		d := schema.Build(value.NewID(), 0)
		for i, c := range schema.Columns() {
			switch col := columnar.Col(i + 1); c.Type { //nolint:gosec // at most 64
			case columnar.Keyword:
				d.Keyword(col, fmt.Sprint("value ", random.IntN(20)))
			case columnar.Bool:
				d.Bool(col, random.IntN(2) == 0)
			case columnar.Number:
				d.Number(col, random.Int64N(1_000_000)*100)
			case columnar.Time:
				d.Time(col, 1_700_000_000_000+int64(n)*1000)
			case columnar.Text:
				d.Text(col, fmt.Sprintf("%s %d of %d", c.Name, random.IntN(1000), n))
			}
		}
		documents[n] = d.Document(int64(n), int64(n))
	}
	for b.Loop() {
		e := segment.Encode(schema, documents)
		stored := index.Segment{Rows: e.Rows, Unpacked: e.Unpacked}
		q := columnar.Query{OrderBy: schema.Col("name"), Search: []string{"x"}}
		planned := stored.Memory(schema, schema.ColumnGroups()) + schema.WorkMemory(&q, count, e.Unpacked[columnar.SearchText])
		b.ReportMetric(float64(planned)/count, "B/product")
	}
}
