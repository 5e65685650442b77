package index_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
)

// sizeBudget is what views may take of a function with 1,024 MB.
const sizeBudget = 512 << 20

// sealedMonths stores an index of so many orders, as the compactor would have left
// it: months are divided, each part is one segment, counted.
func sealedMonths(b *testing.B, p *meteredHarness, m storage, count int) {
	b.Helper()
	list := p.lists.Records[commerce.KindOrder]
	manifest, chunk := &index.Manifest{}, uint64(0)
	const chunkBytes = 380 << 10
	store := func(number int32, documents []columnar.Document, first bool) {
		e := segment.Encode(list.Schema, documents)
		decoded, err := segment.Decode(list.Schema, e.Groups[segment.Core], nil)
		if err != nil {
			b.Fatal(err)
		}
		view := columnar.NewCoreView(list.Schema)
		segment.Load(view, decoded)
		s := &index.Segment{Rows: e.Rows, Unpacked: e.Unpacked}
		for g, data := range e.Groups {
			s.Groups[g] = len(data)
			for len(data) > 0 {
				size := min(len(data), chunkBytes)
				chunk++
				c := index.StoredChunk{Number: chunk, ContentID: index.NewContentID(data[:size]), Body: data[:size]}
				if _, err := m.PutChunk(b.Context(), p.org, list.Name, c, 0); err != nil {
					b.Fatal(err)
				}
				s.Chunks, data = append(s.Chunks, index.Chunk{Number: chunk, ContentID: c.ContentID, Size: size}), data[size:]
			}
		}

		part := &index.Partition{Number: number, Sealed: true, Summary: view.Summary(), Segments: []*index.Segment{s}}
		if !first {
			part.From = documents[0].ID
		}
		manifest.Partitions = append(manifest.Partitions, part)
	}
	divide := func(number int32, month []columnar.Document) {
		for first := true; len(month) > 0; first = false {
			n := list.DividedRows(len(manifest.Partitions))
			if len(month) <= n+n/2 {
				n = len(month)
			}
			store(number, month[:n], first)
			month = month[n:]
		}
	}
	var month []columnar.Document
	number := int32(0)
	for n := range count {
		d := p.order(n, count, 0)
		if of := list.PartitionOf(&d); of != number {
			divide(number, month)
			number, month = of, month[:0]
		}
		month = append(month, d)
	}
	divide(number, month)
	key := index.Key{Org: p.org, List: list}
	body := key.EncodeManifest(manifest)
	if _, err := m.PutManifest(b.Context(), p.org, list.Name, key.Layout().Live(), index.StoredManifest{Version: 1, Body: body}); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d orders: a manifest of %d bytes, %d chunks", count, len(body), chunk)
}

// BenchmarkSize measures the first query of an instance with 1,024 MB, of which
// views take half: processor time, the read units of its chunks and manifest, and the most
// that the cache took. What passes the bound is refused, and never the rows that say so.
func BenchmarkSize(b *testing.B) {
	for _, count := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("orders=%d", count), func(b *testing.B) {
			p := &meteredHarness{org: value.NewID(), now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), years: 3}
			p.lists = index.NewLists(p.table, 1)
			m := newMemory(p.clock)
			sealedMonths(b, p, m, count)
			runtime.GC()
			list := p.lists.Records[commerce.KindOrder]
			month := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
			apart := p.now.Sub(p.now.AddDate(-p.years, 0, 0)).Milliseconds() / int64(count)
			inMonth := int(month.AddDate(0, 1, 0).Sub(month).Milliseconds() / apart)
			col, pending := list.Schema.Col, columnar.In(list.Schema.Col("status"), "PENDING")
			for _, row := range []struct {
				name  string
				total int // of an answer at any size; 0 where the list may be too large
				query columnar.Query
			}{
				{"newest first", count, columnar.Query{OrderBy: col("placedAt"), Desc: true, Limit: 20}},
				{"page 1000", count, columnar.Query{OrderBy: col("placedAt"), Desc: true, Limit: 20, Offset: 20_000}},
				{"walk by id", count, columnar.Query{AfterID: new([16]byte), Limit: 100}},
				{"a month by total", inMonth, columnar.Query{Filter: columnar.Within(col("createdAt"), month.UnixMilli(), month.AddDate(0, 1, 0).UnixMilli()), OrderBy: col("total"), Desc: true, Limit: 20}},
				{"one status", 0, columnar.Query{Filter: pending, OrderBy: col("placedAt"), Desc: true, Limit: 20}},
				{"by total", 0, columnar.Query{OrderBy: col("total"), Desc: true, Limit: 20}},
				{"searched", 0, columnar.Query{Search: []string{"so-00004"}, OrderBy: col("placedAt"), Desc: true, Limit: 20}},
			} {
				b.Run(row.name, func(b *testing.B) { p.bounded(b, m, list, row.query, row.total) })
			}
		})
	}
}

func (p *meteredHarness) bounded(b *testing.B, m *memory, list *index.List, q columnar.Query, total int) {
	b.Helper()
	var busy time.Duration
	var cache *views.Cache
	most, units, refused := int64(0), 0.0, 0
	counting := countingReads{m, func(size int) {
		units += float64((size+4095)/4096) / 2
		most = max(most, cache.Bytes())
	}}
	for b.Loop() {
		cache = views.NewCache(counting, views.Config{Clock: p.clock, MaxBytes: sizeBudget})
		start := cputime.Used()
		got, err := cache.Query(b.Context(), p.org, list, q, false)
		busy += cputime.Used() - start
		var f *fault.Error
		if errors.As(err, &f) && f.Kind == fault.Invalid {
			refused++
		} else if err != nil {
			b.Fatal(err)
		}
		most = max(most, cache.Bytes())
		if total > 0 && (got.Total < total-1 || got.Total > total+1) {
			b.Errorf("a total of %d, %v; want %d", got.Total, err, total)
		}
	}
	if most > sizeBudget {
		b.Errorf("the cache took %d bytes of %d", most, sizeBudget)
	}
	b.ReportMetric(float64(busy.Microseconds())/1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(units/float64(b.N), "RCU/op")
	b.ReportMetric(float64(most>>20), "MiB")
	b.ReportMetric(float64(refused)/float64(b.N), "refused/op")
}

// countingReads tells the size of every chunk and manifest that is read.
type countingReads struct {
	*memory
	read func(size int)
}

func (c countingReads) Chunks(ctx context.Context, org value.ID, list string, numbers []uint64, consistent bool, each func(index.StoredChunk) error) error {
	return c.memory.Chunks(ctx, org, list, numbers, consistent, func(chunk index.StoredChunk) error {
		c.read(len(chunk.Body) + 100)
		return each(chunk)
	})
}

func (c countingReads) Manifest(ctx context.Context, org value.ID, list, which string) (*index.StoredManifest, error) {
	stored, err := c.memory.Manifest(ctx, org, list, which)
	if stored != nil {
		c.read(2 * (len(stored.Body) + 100)) // strongly consistent
	}
	return stored, err
}
