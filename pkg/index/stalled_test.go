package index_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/local/template/alarmtest"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// A rebuild whose source cannot be read never ends.
func TestAJobThatIsNeverDoneStallsAndIsReleased(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		var log bytes.Buffer
		c := compactor.New(w.storage, []*index.List{w.list}, w.clock, slog.New(slog.NewJSONHandler(&log, nil)))
		broken, runs := errors.New("the source is broken"), 0
		key := index.Key{Org: w.org, List: w.list}
		w.list.Read = func(context.Context, value.ID, int, string) ([]columnar.Document, string, error) {
			runs++
			return nil, "", broken
		}
		request := func() {
			t.Helper()
			if err := key.RequestRebuild(t.Context(), w.storage, value.TimeOf(w.clock())); err != nil {
				t.Fatal(err)
			}
		}
		// run runs the job until it has stalled, or so many times, with a request before each.
		run := func(name string, limit, want int) {
			t.Helper()
			runs = 0
			for range limit {
				request()
				_, _ = c.Run(t.Context(), w.org, w.list.Name)
			}
			if runs != want {
				t.Errorf("%s: %d runs, want %d", name, runs, want)
			}
		}
		request()
		w.setUnfinished(t, index.MaxUnfinished-3)
		run("at first", 5, 3)
		w.advance(index.StallTime - time.Minute)
		alarmtest.FiresByLog(t, dynamotest.Model(t), "IndexJobStalledAlarm", log.String())
		run("within a day", 5, 0)
		w.advance(time.Minute)
		run("after a day", 5, 1)
		if err := c.RequestRebuild(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		run("released", 5, 5)
		w.list.Read = w.read
		w.maintain(t, c)
		w.verify(t)
	})
}

// A job that leaves work for later, or is done, counts from the beginning.
func TestRunsThatEndAJobAreNotCounted(t *testing.T) {
	inBoth(t, func(t *testing.T, w *harness) {
		w.put(value.NewID(), thing{size: 1, month: 11}) // counted once it is quiet
		w.handle(t, w.indexer(&parked{}), w.stream)
		if err := w.storage.RequestJob(t.Context(), w.org, w.list.Name, value.TimeOf(w.clock())); err != nil {
			t.Fatal(err)
		}
		w.setUnfinished(t, index.MaxUnfinished-1)
		if more, err := w.compactor().Run(t.Context(), w.org, w.list.Name); more || err != nil {
			t.Fatalf("got %t, %v; want a job that waits", more, err)
		}
		w.advance(2 * time.Hour)
		taken, err := w.storage.TakeJob(t.Context(), w.org, w.list.Name, value.TimeOf(w.clock()).Add(time.Minute))
		if err != nil || taken == nil || taken.Unfinished != 0 {
			t.Errorf("got %+v, %v; want the job due again, with nothing counted", taken, err)
		}
	})
}

// setUnfinished sets how many runs have left work of the job that is due now.
func (w *harness) setUnfinished(t *testing.T, runs int64) {
	t.Helper()
	now := value.TimeOf(w.clock())
	j, err := w.storage.TakeJob(t.Context(), w.org, w.list.Name, now.Add(time.Minute))
	if err != nil || j == nil {
		t.Fatalf("TakeJob: %v, %v", j, err)
	}
	j.Unfinished = runs
	if _, err := w.storage.EndJob(t.Context(), j, &now); err != nil {
		t.Fatal(err)
	}
}
