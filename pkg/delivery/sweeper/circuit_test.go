package sweeper_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/sweeper"
	"github.com/commerce-integration/service/pkg/webhook"
)

// open opens the circuit of the harness's endpoint, to be probed after d.
func (h *harness) open(t *testing.T, d time.Duration) {
	t.Helper()
	h.SetRouting(t, h.endpoint.ID, func(r *webhook.Routing) {
		*r = webhook.Routing{Lane: webhook.LaneSlow, Circuit: &webhook.Circuit{
			State: webhook.CircuitOpen, OpenedAt: h.Now(), ProbeAt: h.At(d), IntervalMs: (4 * time.Minute).Milliseconds(),
		}}
	})
}

// closes closes the circuit, as a worker does after a success.
func (h *harness) closes(t *testing.T) {
	t.Helper()
	h.SetRouting(t, h.endpoint.ID, func(r *webhook.Routing) { r.Circuit = r.Circuit.Drain(h.Now()) })
}

// stored is the endpoint as it is.
func (h *harness) stored(t *testing.T) *webhook.Endpoint {
	t.Helper()
	return h.StoredEndpoint(t, h.endpoint.ID)
}

// kept are deliveries that the circuit holds, in the middle of their schedule, the
// oldest first.
func (h *harness) kept(t *testing.T, n int) []*webhook.Delivery {
	t.Helper()
	return h.deliveries(t, n, func(i int, r *webhook.Delivery) {
		r.Status, r.HeldReason, r.NextAttemptAt = webhook.DeliveryHeld, webhook.HeldCircuitOpen, nil
		r.AttemptCount, r.ScheduleStart = 5, 2
		r.CreatedAt += value.Time(i)
	})
}

func TestOldestDeliveryOfAnOpenCircuitIsItsProbe(t *testing.T) {
	h := newHarness(t)
	paused := h.held(t, 1)[0]
	deliveries := h.kept(t, 3)
	h.open(t, 40*time.Second)
	got := h.sweep(t)
	if len(got) != 1 || got[deliveries[0].ID].Round(time.Second) != 40*time.Second || h.sent.lanes[deliveries[0].ID] != webhook.LaneSlow {
		t.Errorf("sent %v in lanes %v, want the oldest, %s, in 40s in the slow lane", got, h.sent.lanes, deliveries[0].ID)
	}
	probe := h.check(t, deliveries[0], webhook.DeliveryPending)
	if !probe.Probe || probe.AttemptCount != 5 || probe.ScheduleStart != 2 || probe.DueAt == nil {
		t.Errorf("the probe: %+v, want one that goes on with its schedule, under a due mark", probe)
	}
	for _, delivery := range append(deliveries[1:], paused) {
		h.check(t, delivery, webhook.DeliveryHeld)
	}
}

// TestAProbeThatComesSoonIsTheWorkers looks before its time, and again when it is late.
func TestAProbeThatComesSoonIsTheWorkers(t *testing.T) {
	h := newHarness(t)
	h.kept(t, 1)
	h.SetRouting(t, h.endpoint.ID, func(r *webhook.Routing) {
		r.Circuit = &webhook.Circuit{State: webhook.CircuitOpen, OpenedAt: h.Now(), ProbeAt: h.At(20 * time.Second), IntervalMs: 20_000}
	})
	if got := h.sweep(t); len(got) > 0 {
		t.Errorf("before its time: sent %v", got)
	}
	h.Pass(time.Minute)
	if got := h.sweep(t); len(got) != 1 {
		t.Errorf("when it is late: sent %v, want one", got)
	}
}

// The outcome of a probe may be lost, or the probe be in a queue that is late.
func TestProbesOfWhichNothingIsHeardBecomeRare(t *testing.T) {
	h := newHarness(t)
	h.kept(t, 9)
	h.open(t, 0)
	var sent []int
	for minute := range 60 {
		if n := len(h.sweepAnew(t)); n > 0 {
			sent = append(sent, minute)
		}
		h.Pass(time.Minute)
	}
	if want := []int{0, 2, 4, 8, 16, 32}; !slices.Equal(sent, want) {
		t.Errorf("probes in the minutes %v, want %v", sent, want)
	}
}

func TestDeliveryWithTheFewestAttemptsIsTheProbe(t *testing.T) {
	h := newHarness(t)
	attempts := []int{7, 3, 3, 4}
	deliveries := h.deliveries(t, len(attempts), func(i int, r *webhook.Delivery) {
		r.Status, r.HeldReason, r.NextAttemptAt = webhook.DeliveryHeld, webhook.HeldCircuitOpen, nil
		r.AttemptCount = attempts[i]
		r.CreatedAt += value.Time(i)
	})
	h.open(t, 0)
	got := h.sweep(t)
	if _, second := got[deliveries[1].ID]; !second || len(got) != 1 {
		t.Errorf("sent %v, want %s: an event that always fails must not be the only probe", got, deliveries[1].ID)
	}
}

func TestCircuitThatHoldsNothingIsProbedWhenItDoes(t *testing.T) {
	h := newHarness(t)
	h.open(t, 0)
	if got := h.sweep(t); len(got) > 0 {
		t.Errorf("sent %v", got)
	}
	delivery := h.kept(t, 1)[0]
	h.Pass(2 * time.Minute)
	if got := h.sweep(t); len(got) > 0 {
		t.Errorf("before its interval is over: sent %v", got)
	}
	h.Pass(2 * time.Minute)
	if got := h.sweep(t); len(got) != 1 {
		t.Errorf("after its interval: sent %v, want %s", got, delivery.ID)
	}
}

func TestPausedEndpointIsProbedOnceItIsActivated(t *testing.T) {
	h := newHarness(t)
	delivery := h.kept(t, 1)[0]
	h.open(t, 0)
	h.SetStatus(t, h.endpoint.ID, webhook.Paused)
	for range 3 {
		if got := h.sweep(t); len(got) > 0 {
			t.Errorf("while it is paused: sent %v", got)
		}
		h.Pass(25 * time.Minute)
	}
	h.check(t, delivery, webhook.DeliveryHeld)
	change := webhook.UpdateWebhookEndpointDto{}
	change.Status.Given, change.Status.Value = true, webhook.Active
	if _, err := h.Table.ChangeEndpoint(t.Context(), h.Org, h.endpoint.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		return e.Update(change, h.At(0))
	}); err != nil {
		t.Fatal(err)
	}
	if got := h.sweep(t); len(got) != 1 {
		t.Errorf("once it is active: sent %v, want %s", got, delivery.ID)
	}
}

func TestSuspendedApplicationIsNeitherProbedNorDrained(t *testing.T) {
	h := newHarness(t)
	delivery := h.kept(t, 1)[0]
	h.open(t, 0)
	h.Suspend(t, h.App)
	for range 2 {
		if got := h.sweep(t); len(got) > 0 {
			t.Errorf("sent %v", got)
		}
		h.Pass(6 * time.Minute)
		h.closes(t)
	}
	h.check(t, delivery, webhook.DeliveryHeld)
}

func TestClosedCircuitSendsWhatItHeldOldestFirst(t *testing.T) {
	h := newHarness(t)
	deliveries := h.kept(t, 700)
	paused := h.held(t, 1)[0]
	h.open(t, time.Hour)
	h.closes(t)
	var order []value.ID
	for _, want := range []int{500, 200, 0} {
		got := h.sweepAnew(t)
		if len(got) != want {
			t.Errorf("%d sent, want %d: few in the first minute, for the endpoint may fail again", len(got), want)
		}
		order = append(order, h.sent.everything[len(order):len(order)+len(got)]...)
		h.Pass(time.Minute)
	}
	want := make([]value.ID, len(deliveries))
	for i, delivery := range deliveries {
		want[i] = delivery.ID
	}
	if !slices.Equal(order, want) {
		t.Error("the deliveries were not sent from the oldest to the newest")
	}
	for _, delivery := range deliveries {
		got := h.check(t, delivery, webhook.DeliveryPending)
		if got.Probe || got.HeldReason != "" || got.AttemptCount != 5 || got.ScheduleStart != 2 || got.DueAt == nil {
			t.Fatalf("delivery: %+v, want one that goes on with its schedule, under a due mark", got)
		}
	}
	h.check(t, paused, webhook.DeliveryHeld)
}

func TestCircuitEndsWhenNothingMoreCanCome(t *testing.T) {
	h := newHarness(t)
	h.kept(t, 1)
	h.open(t, time.Hour)
	h.closes(t)
	h.sweep(t)
	late := h.deliveries(t, 1, func(_ int, r *webhook.Delivery) { // older than what was drained, and held only now
		r.Status, r.HeldReason, r.NextAttemptAt = webhook.DeliveryHeld, webhook.HeldCircuitOpen, nil
		r.CreatedAt -= value.Time(time.Hour.Milliseconds())
	})[0]
	sent := map[value.ID]time.Duration{}
	for minute := 1; h.stored(t).Circuit != nil; minute++ {
		if minute > 8 {
			t.Fatalf("after %d minutes: %+v", minute, h.stored(t).Circuit)
		}
		h.Pass(time.Minute)
		for id, d := range h.sweepAnew(t) {
			sent[id] = d
		}
	}
	if _, ok := sent[late.ID]; !ok || len(sent) != 1 {
		t.Errorf("sent %v, want %s, which was held late", sent, late.ID)
	}
	if e := h.stored(t); e.Lane != webhook.LaneSlow {
		t.Errorf("the endpoint has left its lane: %q", e.Lane)
	}
	h.Pass(time.Hour)
	if got := h.sweep(t); len(got) != 2 { // those of above, whose messages nobody took
		t.Errorf("an hour later: sent %v", got)
	}
}

func TestCircuitThatOpensAgainKeepsTheRest(t *testing.T) {
	h := newHarness(t)
	deliveries := h.kept(t, 700)
	h.open(t, time.Hour)
	h.closes(t)
	h.sweep(t)
	h.open(t, 150*time.Second)
	h.Pass(time.Minute)
	if got := h.sweep(t); len(got) > 0 {
		t.Errorf("%d sent by a circuit that is open", len(got))
	}
	h.check(t, deliveries[699], webhook.DeliveryHeld)
	h.Pass(time.Minute)
	if got := h.sweepAnew(t); len(got) != 1 {
		t.Errorf("sent %v, want a probe", got)
	}
}

func TestOverlappingRunsSendOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*testing.T, *harness)
		want    int
	}{
		"due deliveries": {func(t *testing.T, h *harness) {
			for range 150 {
				h.waiting(t, 0)
			}
		}, 150},
		"an open circuit": {func(t *testing.T, h *harness) {
			h.kept(t, 200)
			h.open(t, 0)
		}, 1},
		"a closed circuit": {func(t *testing.T, h *harness) {
			h.kept(t, 200)
			h.open(t, 0)
			h.closes(t)
		}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			tt.prepare(t, h)
			var group sync.WaitGroup
			for range 3 {
				group.Go(func() {
					if _, err := h.Handle(t.Context(), sweeper.Event{}); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if len(h.sent.order) != tt.want {
				t.Errorf("%d sent by three runs, want %d", len(h.sent.order), tt.want)
			}
		})
	}
}

func TestRecoveryClosesAnOpenCircuit(t *testing.T) {
	h := newHarness(t)
	deliveries := h.kept(t, 3)
	h.open(t, time.Hour)
	r := h.recovery(t, -time.Hour, time.Hour)
	done, err := h.backlog.Recover(t.Context(), r, 100)
	if err != nil || done.Status != webhook.RecoveryCompleted || done.RequeuedCount != 3 {
		t.Errorf("the recovery: %+v, %v", done, err)
	}
	if c := h.stored(t).Circuit; c == nil || c.State != webhook.CircuitDraining {
		t.Errorf("the circuit: %+v, want it draining", c)
	}
	for _, delivery := range deliveries {
		if got := h.check(t, delivery, webhook.DeliveryPending); got.ScheduleStart != got.AttemptCount {
			t.Errorf("delivery: %+v, want a new schedule", got)
		}
	}
}

// A recovery that goes on does not argue with a circuit that has opened since:
// what the worker holds again is sent when it closes.
func TestRecoveryThatGoesOnLeavesTheCircuitAlone(t *testing.T) {
	h := newHarness(t)
	h.kept(t, 300)
	r := h.recovery(t, -time.Hour, time.Hour)
	begun, err := h.backlog.Recover(t.Context(), r, 100)
	if err != nil {
		t.Fatal(err)
	}
	h.open(t, time.Hour)
	if done, err := h.backlog.Recover(t.Context(), begun, 1000); err != nil || done.RequeuedCount != 300 {
		t.Errorf("the recovery: %+v, %v", done, err)
	}
	if c := h.stored(t).Circuit; !c.Open() {
		t.Errorf("the circuit: %+v, want it open", c)
	}
}
