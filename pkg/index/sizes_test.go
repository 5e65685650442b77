package index_test

import (
	"fmt"
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
		})
	}
}
