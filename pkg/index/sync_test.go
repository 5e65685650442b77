package index_test

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/ops"
)

// since asks for what became visible since a moment, and for the moment from
// which to ask next.
func (w *harness) since(t *testing.T, v *views.Cache, from value.Time) (ids []value.ID, next value.Time) {
	t.Helper()
	q := columnar.Query{Filter: columnar.VisibleWithin(int64(from), math.MaxInt64), OrderBy: size, Limit: 1000}
	answer, err := v.Query(t.Context(), w.org, w.list, q, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, hit := range answer.Hits {
		ids = append(ids, hit.ID)
	}
	return ids, answer.SyncFrom
}

// rebuild rebuilds the list from the things.
func (w *harness) rebuild(t *testing.T) {
	t.Helper()
	if err := ops.Rebuild(t.Context(), w.storage, w.compactor(), index.Key{Org: w.org, List: w.list}, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
}

func TestAReadOfNowHasWhatWasAppendedBefore(t *testing.T) {
	w := newMemoryHarness()
	v, ids := w.views(), make([]value.ID, 40)
	for n := range ids {
		ids[n] = value.NewID()
		w.put(ids[n], thing{size: int64(n), month: 1 + n%5})
	}
	all := columnar.Query{OrderBy: size, Limit: 1000}
	var group sync.WaitGroup
	for n, id := range ids {
		group.Go(func() {
			_, err := w.indexer(&parked{}).Handle(t.Context(), events.DynamoDBEvent{Records: w.stream[n : n+1]})
			answer, asked := v.Query(t.Context(), w.org, w.list, all, true)
			if !slices.ContainsFunc(answer.Hits, func(h columnar.Hit) bool { return h.ID == id }) {
				t.Errorf("thing %d was appended and is not there: %v, %v", n, err, asked)
			}
		})
	}
	group.Wait()
}

// The time from which to ask next does not depend on what a view happens to
// follow: a view that begins with the manifest, after the tail was flushed,
// knows it too.
func TestTheTimeToGoOnFromOutlivesTheTail(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		if ids, from := w.since(t, w.views(), 0); len(ids) > 0 || from != 0 {
			t.Errorf("before the first entry: %v, %s", ids, from)
		}
		first, second := value.NewID(), value.NewID()
		w.put(first, thing{size: 1, month: 1})
		w.handle(t, w.indexer(&parked{}), w.stream)
		follower := w.views()
		_, from := w.since(t, follower, 0)
		for name, next := range []func(){func() {}, func() { w.maintain(t, w.compactor()) }, func() { w.rebuild(t) }} {
			next()
			for _, v := range []*views.Cache{follower, w.views()} {
				if ids, again := w.since(t, v, from); len(ids) > 0 || again < from {
					t.Errorf("step %d: since %s there are %v, and the next time is %s", name, from, ids, again)
				}
			}
		}
		w.put(second, thing{size: 2, month: 1})
		w.handle(t, w.indexer(&parked{}), w.stream[1:])
		for _, v := range []*views.Cache{follower, w.views()} {
			if ids, _ := w.since(t, v, from); !slices.Equal(ids, []value.ID{second}) {
				t.Errorf("since %s there are %v, want %s alone", from, ids, second)
			}
		}
	})
}

// A rebuild that a new column causes leaves to every document since when it
// has been visible.
func TestARebuildForANewColumnShowsNothingAgain(t *testing.T) {
	w := newMemoryHarness()
	w.list.Schema = schema.First(2)
	for n := range 5 {
		w.put(value.NewID(), thing{size: int64(n), month: 1})
	}
	w.list.By, w.list.On = index.Whole, 0
	w.handle(t, w.indexer(&parked{}), w.stream[:3])
	w.maintain(t, w.compactor())
	w.handle(t, w.indexer(&parked{}), w.stream[3:])
	_, from := w.since(t, w.views(), 0)
	w.list.Schema = schema
	w.advance(48 * time.Hour)
	w.rebuild(t)
	if ids, _ := w.since(t, w.views(), from); len(ids) > 0 {
		t.Errorf("after the rebuild %v are new since %s", ids, from)
	}
	if ids, _ := w.since(t, w.views(), 0); len(ids) != 5 {
		t.Errorf("after the rebuild there are %v, want 5", ids)
	}
}

func TestWhatARebuildFindsIsNew(t *testing.T) {
	for _, age := range []time.Duration{time.Minute, 30 * 24 * time.Hour} {
		t.Run(fmt.Sprint(age), func(t *testing.T) {
			w := newMemoryHarness()
			lost := value.NewID()
			w.put(lost, thing{size: 1, month: 1}) // and no indexer ever hears of it
			w.advance(age)
			w.put(value.NewID(), thing{size: 2, month: 1})
			w.handle(t, w.indexer(&parked{}), w.stream[1:])
			_, from := w.since(t, w.views(), 0)
			w.rebuild(t)
			if ids, _ := w.since(t, w.views(), from); !slices.Equal(ids, []value.ID{lost}) {
				t.Errorf("since %s there are %v, want %s", from, ids, lost)
			}
		})
	}
}
