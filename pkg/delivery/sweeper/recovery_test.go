package sweeper_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/webhook"
)

// recoverAll recovers n HELD deliveries in runs that have a second or more each, as
// many as it takes, and returns how many that were.
func recoverAll(t testing.TB, n int, span time.Duration) (runs int) {
	t.Helper()
	h := newHarness(t)
	want := make([]value.ID, 0, n)
	for len(want) < n {
		offset := len(want)
		for _, delivery := range h.deliveries(t, min(5000, n-offset), func(i int, r *webhook.Delivery) {
			r.Status, r.HeldReason, r.NextAttemptAt = webhook.DeliveryHeld, webhook.HeldPaused, nil
			r.CreatedAt += value.Time(offset + i)
		}) {
			want = append(want, delivery.ID)
		}
	}
	r := h.recovery(t, -time.Hour, time.Hour)
	if measured, ok := t.(*testing.B); ok {
		measured.ResetTimer()
	}
	waited := false
	for idle := 0; r.Status == webhook.RecoveryRunning && idle < 10; {
		h.run(t, span)
		next, err := h.Table.Recovery(t.Context(), h.Org, h.endpoint.ID, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if next.RequeuedCount == r.RequeuedCount {
			idle++ // a run may have no time left for it, or cannot tell that it still has it: then its lease has to end
			span *= 2
			h.Pass(2 * time.Minute)
			waited = true
		} else {
			runs, idle = runs+1, 0
			t.Logf("run %d: %d of %d deliveries", runs, next.RequeuedCount, n)
		}
		r = next
	}
	if r.Status != webhook.RecoveryCompleted || r.MatchedCount != int64(n) || r.RequeuedCount != int64(n) {
		t.Errorf("the recovery ended as %+v, want %d deliveries", r, n)
	}
	// No worker takes the messages: two minutes later the deliveries are due again.
	sent, again := firsts(h.sent.order)
	if !slices.Equal(sent, want) || again && !waited {
		t.Errorf("%d messages for %d deliveries, want one for each, the oldest first", len(h.sent.order), n)
	}
	return runs
}

// firsts returns the ids without their repetitions, and whether there were any.
func firsts(ids []value.ID) (first []value.ID, repeated bool) {
	seen := map[value.ID]bool{}
	for _, id := range ids {
		if !seen[id] {
			first = append(first, id)
		}
		seen[id] = true
	}
	return first, len(first) < len(ids)
}

// run is a run of the schedule that begins work for so long. A step that has begun
// has a minute to end, since the context has no deadline: a slow machine cuts none.
func (h *harness) run(t testing.TB, span time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	if _, err := h.Handle(endless{ctx}, sweeper.Event{}); err != nil {
		t.Fatal(err)
	}
}

// endless ends as its context does and tells nobody when.
type endless struct{ context.Context }

func (endless) Deadline() (end time.Time, limited bool) { return time.Time{}, false }

func TestRecoveryOfSeveralRunsSendsEachDeliveryOnce(t *testing.T) {
	if runs := recoverAll(t, 4000, 300*time.Millisecond); runs < 2 {
		t.Errorf("4,000 deliveries in %d run of 300 ms, want several", runs)
	}
}

// A hundred thousand deliveries, in runs with as much time as they have in the
// service: deliveries/s, and the runs that it takes.
func BenchmarkRecovery(b *testing.B) {
	const deliveries = 100_000
	runs := 0
	for range b.N {
		runs = recoverAll(b, deliveries, 50*time.Second)
	}
	b.ReportMetric(float64(deliveries*b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(runs), "runs")
}
