package index_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

var errRefused = errors.New("refused")

// TestAQueryWeighsTheSameWhateverIsInMemory asks an instance that knows nothing, one
// that has just answered the same, and one that has all of the list.
func TestAQueryWeighsTheSameWhateverIsInMemory(t *testing.T) {
	w := newMemoryHarness()
	w.fill(t, 1000)
	m, _, err := index.Index{Key: index.Key{Org: w.org, List: w.list}, Reader: w.storage}.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole, month := 0, 0
	for _, p := range m.Partitions {
		whole += p.Bytes(false)
		month = max(month, p.Bytes(false))
	}
	read := 0
	storage := watched{w.storage, func(_ context.Context, chunks int) { read += chunks }}
	june := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	warm := views.NewCache(storage, views.Config{Clock: w.clock})
	if _, err := warm.Query(t.Context(), w.org, w.list, columnar.Query{OrderBy: size, Limit: 1}, false); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name        string
		query       columnar.Query
		least, most int // bytes
	}{
		{"every month", columnar.Query{OrderBy: size, Limit: 20}, whole, whole},
		{"a filter of a column", columnar.Query{Filter: columnar.Between(size, 0, 5), OrderBy: createdAt, Limit: 20}, whole, whole},
		{"the first page in the order of time", columnar.Query{OrderBy: createdAt, Limit: 20}, 1, 2 * month},
		{"a month", columnar.Query{Filter: columnar.Within(createdAt, june.UnixMilli(), june.AddDate(0, 1, 0).UnixMilli()), OrderBy: size, Limit: 20}, 1, month},
		{"a total of whole months", columnar.Query{OrderBy: size}, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			cold := views.NewCache(storage, views.Config{Clock: w.clock})
			weigh := func(cache *views.Cache, refusal error) (units []int) {
				t.Helper()
				before := read
				_, err := cache.QueryWeighed(t.Context(), w.org, w.list, row.query, false, func(n int) error {
					if !slices.Contains(units, n) {
						units = append(units, n)
					}
					return refusal
				})
				if !errors.Is(err, refusal) || refusal != nil && read != before {
					t.Errorf("refused with %v: got %v after %d reads of chunks", refusal, err, read-before)
				}
				return units
			}
			refused, first, again, all := weigh(cold, errRefused), weigh(cold, nil), weigh(cold, nil), weigh(warm, nil)
			if got := fmt.Sprint(first); got != fmt.Sprint(refused) || got != fmt.Sprint(again) || got != fmt.Sprint(all) {
				t.Errorf("units: got %v when refused, %v at first, %v again and %v with all in memory, want the same", refused, first, again, all)
			}
			units := func(bytes int) int { return (bytes + 8191) / 8192 }
			if len(first) != 1 || first[0] < units(row.least) || first[0] > units(row.most) {
				t.Errorf("units: got %v, want once %d to %d", first, units(row.least), units(row.most))
			}
		})
	}
}
