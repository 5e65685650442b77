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

// TestMemoryIsBounded compares what a view of orders takes, with or without text, with
// what was planned for it.
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
			for _, text := range []bool{false, true} {
				v, data := columnar.NewCoreView(schema), []byte(nil)
				if text {
					v, data = columnar.NewView(schema), e.Groups[segment.Text]
				}
				s, err := segment.Decode(schema, e.Groups[segment.Core], data)
				if err != nil {
					t.Fatal(err)
				}
				segment.Load(v, s)
				bound := stored.Memory(schema, text)
				if got := v.Bytes() - 1024; got > bound || count >= 1000 && 3*got < bound {
					t.Errorf("text %t: %d bytes, planned %d", text, got, bound)
				}
			}
		})
	}
}
