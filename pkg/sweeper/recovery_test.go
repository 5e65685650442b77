package sweeper_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/sweeper"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// recoverAll recovers n HELD rows in runs that have a second or more each, as
// many as it takes, and returns how many that were.
func recoverAll(t testing.TB, n int, span time.Duration) (runs int) {
	t.Helper()
	b := newBench(t)
	want := make([]value.ID, 0, n)
	for len(want) < n {
		offset := len(want)
		for _, row := range b.rows(t, min(5000, n-offset), func(i int, r *webhook.Delivery) {
			r.Status, r.HeldReason, r.NextAttemptAt = webhook.DeliveryHeld, webhook.HeldPaused, nil
			r.CreatedAt += value.Time(offset + i)
		}) {
			want = append(want, row.ID)
		}
	}
	r := b.recovery(t, b.now.Add(-time.Hour), b.now.Add(time.Hour))
	if measured, ok := t.(*testing.B); ok {
		measured.ResetTimer()
	}
	for idle := 0; r.Status == webhook.RecoveryRunning && idle < 10; {
		b.run(t, span)
		next, err := b.table.Recovery(t.Context(), b.org, b.endpoint.ID, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if next.RequeuedCount == r.RequeuedCount {
			idle++ // a run may have no time left for it
			span *= 2
		} else {
			runs, idle = runs+1, 0
			t.Logf("run %d: %d of %d rows", runs, next.RequeuedCount, n)
		}
		r = next
	}
	if r.Status != webhook.RecoveryCompleted || r.MatchedCount != int64(n) || r.RequeuedCount != int64(n) {
		t.Errorf("the recovery ended as %+v, want %d rows", r, n)
	}
	if !slices.Equal(b.sent.order, want) {
		t.Errorf("%d messages for %d rows, want one for each, the oldest first", len(b.sent.order), n)
	}
	return runs
}

// run is a run of the schedule that has so much time for its work.
func (b *bench) run(t testing.TB, span time.Duration) {
	t.Helper()
	const spared = 5 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), span+spared)
	defer cancel()
	if _, err := b.Handle(ctx, sweeper.Event{}); err != nil {
		t.Fatal(err)
	}
}

func TestRecoveryThatTakesSeveralRunsSendsEachRowOnce(t *testing.T) {
	if runs := recoverAll(t, 4000, 300*time.Millisecond); runs < 2 {
		t.Errorf("4,000 rows in %d run of 300 ms, want several", runs)
	}
}

// A hundred thousand rows, in runs with as much time as they have in the
// service: rows/s, and the runs that it takes.
func BenchmarkRecovery(b *testing.B) {
	const rows = 100_000
	runs := 0
	for range b.N {
		runs = recoverAll(b, rows, 50*time.Second)
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(runs), "runs")
}
