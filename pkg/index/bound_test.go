package index_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/fold"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
	"github.com/commerce-integration/service/pkg/local/template/alarmtest"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// watched is a storage that calls a function before each read of chunks, with
// how many there are.
type watched struct {
	storage
	before func(ctx context.Context, chunks int)
}

func (w watched) Chunks(ctx context.Context, org value.ID, list string, numbers []uint64, consistent bool, each func(index.StoredChunk) error) error {
	if len(numbers) > 0 {
		w.before(ctx, len(numbers))
	}
	if err := ctx.Err(); err != nil {
		return fault.Busy(err)
	}
	return w.storage.Chunks(ctx, org, list, numbers, consistent, each)
}

const boundMonths = 11

// fill puts so many things into each month, and seals the months.
func (w *harness) fill(t *testing.T, each int) (ids []value.ID) {
	t.Helper()
	writer := w.indexer(&parked{})
	for n := range boundMonths * each {
		ids = append(ids, value.NewID())
		w.put(ids[n], thing{size: int64(n * 7919 % 10007), month: 1 + n%boundMonths})
	}
	for from := 0; from < len(w.stream); from += 500 {
		w.handle(t, writer, w.stream[from:min(from+500, len(w.stream))])
	}
	w.stream = nil
	w.maintain(t, w.compactor())
	w.advance(2 * time.Hour)
	w.maintain(t, w.compactor())
	return ids
}

func anyQuery(random *rand.Rand) columnar.Query {
	month := func() int64 {
		return time.Date(2026, time.Month(1+random.IntN(12)), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	}
	filters := []columnar.Filter{
		{},
		columnar.Between(size, 0, random.Int64N(10007)),
		columnar.Within(createdAt, month(), month()),
		columnar.Not(columnar.Within(createdAt, month(), month())),
	}
	q := columnar.Query{
		Filter:  columnar.All(filters[random.IntN(len(filters))], filters[random.IntN(len(filters))]),
		OrderBy: []columnar.Col{size, createdAt, name}[random.IntN(3)], Desc: random.IntN(2) == 0,
		Offset: random.IntN(3) * random.IntN(3000), Limit: random.IntN(100),
	}
	switch random.IntN(4) {
	case 0:
		q.Search = fold.Tokens(fmt.Sprint(random.IntN(100)))
	case 1:
		q.AfterID = new([16]byte)
		q.AfterID[0] = byte(random.IntN(2))
	}
	return q
}

// TestMemoryStaysWithinItsBudget asks caches of several sizes anything, while
// things are changed and deleted. An answer is that of a cache with room for
// all; where there is none, it is a refusal. Whatever is asked, what is taken
// and reserved never passes the budget.
func TestMemoryStaysWithinItsBudget(t *testing.T) {
	for _, row := range []struct {
		name              string
		by                index.Interval
		partRows          int
		budget            int64
		answered, refused bool
	}{
		{"nothing fits", index.Monthly, 0, 120 << 10, false, true},
		{"a month fits, a far page does not", index.Monthly, 0, 1 << 20, true, true},
		{"the list fits", index.Monthly, 0, 3 << 20, true, false},
		{"all queries fit", index.Monthly, 0, 4 << 20, true, false},
		{"parts of months fit", index.Monthly, 200, 600 << 10, true, true},
		{"a whole list does not fit", index.Whole, 0, 1 << 20, false, true},
		{"parts of a whole list fit", index.Whole, 400, 1 << 20, true, true},
		{"a divided list fits", index.Whole, 400, 4 << 20, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, budget := newMemoryHarness(), row.budget
			w.list.By, w.list.PartRows = row.by, row.partRows
			ids := w.fill(t, 1000)
			writer := w.indexer(&parked{})
			random := rand.New(rand.NewPCG(1, uint64(budget)))
			var small *views.Cache
			most := int64(0)
			watch := func(context.Context, int) { most = max(most, small.Bytes()) }
			small = views.NewCache(watched{w.storage, watch}, views.Config{Clock: w.clock, MaxBytes: budget})
			large := w.views()
			answered, refused := 0, 0
			for round := range 100 {
				q := anyQuery(random)
				want, err := large.Query(t.Context(), w.org, w.list, q, true)
				if err != nil {
					t.Fatal(err)
				}
				got, err := small.Query(t.Context(), w.org, w.list, q, true)
				most = max(most, small.Bytes())
				switch {
				case hasCode(err, "list_too_large"):
					refused++
				case err != nil:
					t.Fatalf("round %d, %+v: %v", round, q, err)
				default:
					answered++
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("round %d, %+v (-all in memory +bounded):\n%s", round, q, diff)
					}
				}
				w.advance(time.Second)
				if round%10 == 0 {
					id := ids[random.IntN(len(ids))]
					old := w.things[id]
					w.put(id, thing{size: random.Int64N(10007), month: old.month, deleted: random.IntN(3) == 0})
					w.handle(t, writer, w.stream)
					w.stream = nil
				}
				if round%40 == 39 {
					w.maintain(t, w.compactor())
				}
			}
			t.Logf("answered %d, refused %d, at most %d of %d bytes", answered, refused, most, budget)
			if most > budget {
				t.Errorf("%d bytes were taken, want at most %d", most, budget)
			}
			if got, want := [2]bool{answered > 0, refused > 0}, [2]bool{row.answered, row.refused}; got != want {
				t.Errorf("answered %d, refused %d", answered, refused)
			}
		})
	}
}

func hasCode(err error, code string) bool {
	f, ok := fault.As(err)
	return ok && f.Code == code
}

// TestConcurrentQueriesStayWithinTheBudget has several requests ask at a time.
// Each gets the right answer, a refusal, or Unavailable when it waited too long.
func TestConcurrentQueriesStayWithinTheBudget(t *testing.T) {
	w := newMemoryHarness()
	w.fill(t, 500)
	const budget = 1 << 20
	var small *views.Cache
	watch := func(context.Context, int) {
		if taken := small.Bytes(); taken > budget {
			t.Errorf("%d bytes are taken, want at most %d", taken, budget)
		}
	}
	small = views.NewCache(watched{w.storage, watch}, views.Config{Clock: w.clock, MaxBytes: budget})
	large := w.views()
	var group sync.WaitGroup
	for n := range 6 {
		group.Go(func() {
			random, answered := rand.New(rand.NewPCG(7, uint64(n))), 0
			for range 40 {
				q := anyQuery(random)
				want, err := large.Query(t.Context(), w.org, w.list, q, false)
				if err != nil {
					t.Error(err)
				}
				got, err := small.Query(t.Context(), w.org, w.list, q, false)
				if fault.Is(err, fault.Invalid) || fault.Is(err, fault.Unavailable) {
					continue
				}
				answered++
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%+v: %v (-all in memory +bounded):\n%s", q, err, diff)
				}
			}
			if answered == 0 {
				t.Error("nothing was answered")
			}
		})
	}
	group.Wait()
}

// TestAListLargerThanMemoryIsRefused shows what a client and an alarm
// see.
func TestAListLargerThanMemoryIsRefused(t *testing.T) {
	w := newMemoryHarness()
	w.fill(t, 1000)
	for _, row := range []struct {
		name   string
		by     index.Interval
		wayOut string
	}{
		{"by month", index.Monthly, "narrow it by createdFrom and createdTo"},
		{"whole", index.Whole, "give ids, or walk by id with afterId"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log bytes.Buffer
			list := *w.list
			list.By = row.by
			cache := views.NewCache(w.storage, views.Config{Clock: w.clock, MaxBytes: 100 << 10, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			_, err := cache.Query(t.Context(), w.org, &list, columnar.Query{OrderBy: size, Limit: 20}, false)
			if f, ok := fault.As(err); !ok || f.Kind != fault.Invalid || f.Code != "list_too_large" || !strings.Contains(f.Message, row.wayOut) {
				t.Errorf("got %v, want list_too_large, which says: %s", err, row.wayOut)
			}
			alarmtest.FiresByLog(t, dynamotest.Model(t), "QueriesTooLargeAlarm", log.String())
		})
	}
}

// TestALongListIsAnsweredFromFewOfItsParts asks a list of 11,000 things for which memory
// holds some 2,000. Pages in the order of time, a range of time, ids, a walk from its
// beginning to its end, and their totals are exact all the same.
func TestALongListIsAnsweredFromFewOfItsParts(t *testing.T) {
	for _, by := range []index.Interval{index.Monthly, index.Whole} {
		t.Run(fmt.Sprint("interval ", by), func(t *testing.T) {
			w := newMemoryHarness()
			w.list.By, w.list.PartRows, w.list.Get = by, 400, w.get
			ids := w.fill(t, 1000)
			cache := views.NewCache(w.storage, views.Config{Clock: w.clock, MaxBytes: 1800 << 10})
			ask := func(q columnar.Query, total int) []columnar.Hit {
				t.Helper()
				got, err := cache.Query(t.Context(), w.org, w.list, q, false)
				if err != nil || got.Total != total {
					t.Fatalf("%+v: got a total of %d, %v; want %d", q, got.Total, err, total)
				}
				return got.Hits
			}
			if _, err := cache.Query(t.Context(), w.org, w.list, columnar.Query{OrderBy: size, Limit: 1}, false); !hasCode(err, "list_too_large") {
				t.Errorf("by size: got %v, want list_too_large", err)
			}
			if by == index.Monthly {
				first := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
				april := columnar.Within(createdAt, first.UnixMilli(), first.AddDate(0, 1, 0).UnixMilli())
				ask(columnar.Query{OrderBy: createdAt, Desc: true, Limit: 20}, len(ids))
				ask(columnar.Query{OrderBy: createdAt, Desc: true, Limit: 20, Offset: 5490}, len(ids))
				ask(columnar.Query{Filter: april, OrderBy: size, Limit: 20}, 1000)
			}
			for n := range 2 { // the tail has changes, which jobs have not flushed
				id := ids[n*7919]
				w.put(id, thing{size: 3, month: w.things[id].month})
			}
			w.handle(t, w.indexer(&parked{}), w.stream)
			w.advance(time.Second)
			var walked []value.ID
			for after := new([16]byte); ; after = (*[16]byte)(&walked[len(walked)-1]) {
				page := ask(columnar.Query{AfterID: after, Limit: 300}, len(ids))
				if len(page) == 0 {
					break
				}
				for _, hit := range page {
					walked = append(walked, hit.ID)
				}
			}
			slices.SortFunc(ids, value.ID.Compare)
			if !slices.Equal(walked, ids) {
				t.Errorf("a walk gave %d things, want each of %d once, in order", len(walked), len(ids))
			}
			some := columnar.IDs(ids[10], ids[5000], ids[9000], value.NewID())
			got := ask(columnar.Query{Filter: columnar.All(some, columnar.Between(size, 0, 1<<40)), OrderBy: size, Limit: 2}, 3)
			if len(got) != 2 {
				t.Errorf("by id: %d hits, want 2", len(got))
			}
		})
	}
}

// TestAPartitionThatIsTooLargeForAJobIsToldAndLeft lets a manifest tell of a
// segment that takes more memory than a job has.
func TestAPartitionThatIsTooLargeForAJobIsToldAndLeft(t *testing.T) {
	for _, row := range []struct {
		name     string
		group    segment.Group
		partRows int
		left     func(*index.Partition) bool
	}{
		{"to count", segment.Core, 0, func(p *index.Partition) bool { return !p.Sealed }},
		{"to divide", segment.Text, 20, func(p *index.Partition) bool { return p.Rows() > 20 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newMemoryHarness()
			w.fill(t, 40)
			key := index.Key{Org: w.org, List: w.list}
			live := key.Layout().Live()
			read := func() (*index.StoredManifest, *index.Manifest) {
				stored, err := w.storage.Manifest(t.Context(), w.org, w.list.Name, live)
				if err != nil {
					t.Fatal(err)
				}
				m, err := key.DecodeManifest(stored.Body)
				if err != nil {
					t.Fatal(err)
				}
				return stored, m
			}
			stored, m := read()
			for _, p := range m.Partitions {
				p.Sealed = false
			}
			m.Partitions[1].Segments[0].Unpacked[row.group] = 1 << 30
			stored.Version, stored.Body = stored.Version+1, key.EncodeManifest(m)
			if done, err := w.storage.PutManifest(t.Context(), w.org, w.list.Name, live, *stored); !done || err != nil {
				t.Fatalf("PutManifest: %t, %v", done, err)
			}
			w.list.PartRows = row.partRows
			var log bytes.Buffer
			w.maintain(t, compactor.New(w.storage, []*index.List{w.list}, w.clock, slog.New(slog.NewJSONHandler(&log, nil))))
			alarmtest.FiresByLog(t, dynamotest.Model(t), "QueriesTooLargeAlarm", log.String())
			if !strings.Contains(log.String(), `"msg":"a partition was too large"`) {
				t.Errorf("the log has no partition:\n%s", &log)
			}
			large := m.Partitions[1].Number
			_, m = read()
			for _, p := range m.Partitions {
				if got := row.left(p); got != (p.Number == large) {
					t.Errorf("partition %d of %d rows is left: %t; want that of %d, and only that", p.Number, p.Rows(), got, large)
				}
			}
		})
	}
}

// inBubble runs a test of a small list in a synctest bubble. The list is written and
// read before: the codecs that all tests share have channels, which would belong to
// the bubble if they were made in it, and panic in every other test.
func inBubble(t *testing.T, test func(*testing.T, *harness)) {
	t.Helper()
	w := newMemoryHarness()
	w.fill(t, 10)
	cache := views.NewCache(w.storage, views.Config{Clock: w.clock})
	if _, err := cache.Query(t.Context(), w.org, w.list, columnar.Query{OrderBy: size, Limit: 20}, false); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { test(t, w) })
}

// TestWhoWaitsForALoadIsSentAway holds a load back: the request that began it
// goes on until it is answered, and another one is sent away after three seconds.
func TestWhoWaitsForALoadIsSentAway(t *testing.T) {
	inBubble(t, func(t *testing.T, w *harness) {
		begun := false
		cache := views.NewCache(watched{w.storage, func(context.Context, int) {
			if !begun {
				begun = true
				time.Sleep(20 * time.Second)
			}
		}}, views.Config{Clock: w.clock})
		q, first := columnar.Query{OrderBy: size, Limit: 20}, make(chan error, 1)
		go func() {
			_, err := cache.Query(t.Context(), w.org, w.list, q, false)
			first <- err
		}()
		synctest.Wait()
		start := time.Now()
		_, err := cache.Query(t.Context(), w.org, w.list, q, false)
		if f, ok := fault.As(err); !ok || f.Kind != fault.Unavailable || f.RetryAfter == 0 || time.Since(start) != 3*time.Second {
			t.Errorf("who waits: got %v after %s, want Unavailable with Retry-After after 3 s", err, time.Since(start))
		}
		if err := <-first; err != nil {
			t.Errorf("who loads: got %v, want an answer", err)
		}
	})
}

// TestALoadLeavesTimeForItsAnswer lets a load hang: it ends before its request
// does.
func TestALoadLeavesTimeForItsAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *harness) {
		cache := views.NewCache(watched{w.storage, func(ctx context.Context, _ int) { <-ctx.Done() }}, views.Config{Clock: w.clock})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		_, err := cache.Query(ctx, w.org, w.list, columnar.Query{OrderBy: size, Limit: 20}, false)
		if !fault.Is(err, fault.Unavailable) || time.Since(start) != 26*time.Second {
			t.Errorf("got %v after %s, want Unavailable after 26 s of 30", err, time.Since(start))
		}
	})
}

func TestAViewThatWasIdleIsLoadedOnceMore(t *testing.T) {
	w, reads := newMemoryHarness(), 0
	w.fill(t, 10)
	cache := views.NewCache(watched{w.storage, func(context.Context, int) { reads++ }}, views.Config{Clock: w.clock})
	for n, search := range []string{"thing", "", "", ""} {
		w.ask(t, cache, columnar.Query{Search: fold.Tokens(search)})
		if w.advance(time.Minute); n == 1 {
			w.advance(2 * time.Hour)
		}
	}
	if reads != 2 {
		t.Errorf("the list was loaded %d times, want 2", reads)
	}
}
