package sweeper_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/sweeper"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func (b *bench) at(d time.Duration) value.Time { return value.TimeOf(b.now.Add(d)) }

// open opens the circuit of the bench's endpoint, to be probed after d.
func (b *bench) open(t *testing.T, d time.Duration) {
	t.Helper()
	b.condition(t, webhook.Routing{Lane: webhook.LaneSlow, Circuit: &webhook.Circuit{
		State: webhook.CircuitOpen, OpenedAt: b.at(0), ProbeAt: b.at(d), IntervalMs: (4 * time.Minute).Milliseconds(),
	}})
}

// closes closes the circuit, as a worker does after a success.
func (b *bench) closes(t *testing.T) {
	t.Helper()
	e := b.stored(t)
	b.condition(t, webhook.Routing{Lane: e.Lane, Circuit: e.Circuit.Drain(b.at(0))})
}

func (b *bench) condition(t *testing.T, next webhook.Routing) {
	t.Helper()
	if ok, err := b.table.SetRouting(t.Context(), b.org, b.endpoint.ID, b.stored(t).Routing(), next); !ok || err != nil {
		t.Fatalf("SetRouting: %t, %v", ok, err)
	}
}

// stored is the endpoint as it is.
func (b *bench) stored(t *testing.T) *webhook.Endpoint {
	t.Helper()
	e, err := b.table.Endpoint(t.Context(), b.org, b.endpoint.ID)
	if e == nil || err != nil {
		t.Fatalf("the endpoint: %+v, %v", e, err)
	}
	return e
}

// kept are rows that the circuit holds, in the middle of their schedule, the
// oldest first.
func (b *bench) kept(t *testing.T, n int) []*webhook.Delivery {
	t.Helper()
	return b.rows(t, n, func(i int, r *webhook.Delivery) {
		r.Status, r.HeldReason, r.NextAttemptAt = webhook.DeliveryHeld, webhook.HeldCircuitOpen, nil
		r.AttemptCount, r.ScheduleStart = 5, 2
		r.CreatedAt += value.Time(i)
	})
}

func TestOldestRowOfAnOpenCircuitIsItsProbe(t *testing.T) {
	b := newBench(t)
	rows := b.kept(t, 3)
	b.open(t, 40*time.Second)
	got := b.sweep(t)
	if len(got) != 1 || got[rows[0].ID].Round(time.Second) != 40*time.Second || b.sent.lanes[rows[0].ID] != webhook.LaneSlow {
		t.Errorf("sent %v in lanes %v, want the oldest, %s, in 40s in the slow lane", got, b.sent.lanes, rows[0].ID)
	}
	probe := b.check(t, rows[0], webhook.DeliveryPending)
	if !probe.Probe || probe.AttemptCount != 5 || probe.ScheduleStart != 2 || probe.DueAt == nil {
		t.Errorf("the probe: %+v, want one that goes on with its schedule, under a due mark", probe)
	}
	for _, row := range rows[1:] {
		b.check(t, row, webhook.DeliveryHeld)
	}
	for range 9 {
		b.pass(time.Minute)
		if got := b.sweep(t); len(got) > 0 {
			t.Errorf("while the probe is under way: sent %v", got)
		}
	}
}

func TestCircuitThatIsNotYetToBeProbedWaits(t *testing.T) {
	b := newBench(t)
	b.kept(t, 1)
	b.open(t, 150*time.Second)
	for minute := range 5 {
		if got, want := len(b.sweep(t)), map[bool]int{true: 1}[minute == 2]; got != want {
			t.Errorf("after %d minutes: %d sent, want %d", minute, got, want)
		}
		b.pass(time.Minute)
	}
}

func TestProbeThatIsLostIsMadeAgain(t *testing.T) {
	b := newBench(t)
	rows := b.kept(t, 2)
	b.open(t, 0)
	b.sent.err = fault.Busy(errors.New("the queue is down"))
	if _, err := b.Handle(t.Context(), sweeper.Event{}); err == nil {
		t.Error("no error although nothing was sent")
	}
	b.sent.err = nil
	b.pass(webhook.Lease + time.Minute)
	got := b.sweep(t)
	if _, again := got[rows[0].ID]; !again || len(got) != 2 {
		t.Errorf("sent %v, want the lost one %s again, and another probe", got, rows[0].ID)
	}
	for _, row := range rows {
		if r := b.check(t, row, webhook.DeliveryPending); !r.Probe {
			t.Errorf("row %+v is no probe any more", r)
		}
	}
}

func TestCircuitThatHoldsNothingIsProbedWhenItDoes(t *testing.T) {
	b := newBench(t)
	b.open(t, 0)
	if got := b.sweep(t); len(got) > 0 {
		t.Errorf("sent %v", got)
	}
	row := b.kept(t, 1)[0]
	b.pass(2 * time.Minute)
	if got := b.sweep(t); len(got) > 0 {
		t.Errorf("before its interval is over: sent %v", got)
	}
	b.pass(2 * time.Minute)
	if got := b.sweep(t); len(got) != 1 {
		t.Errorf("after its interval: sent %v, want %s", got, row.ID)
	}
}

func TestRowsHeldForAnotherReasonAreNoProbes(t *testing.T) {
	b := newBench(t)
	paused := b.held(t, 2)
	row := b.kept(t, 1)[0]
	b.open(t, 0)
	if got := b.sweep(t); len(got) != 1 {
		t.Errorf("sent %v, want %s", got, row.ID)
	}
	b.check(t, paused[0], webhook.DeliveryHeld)
}

func TestPausedEndpointIsProbedOnceItIsActivated(t *testing.T) {
	b := newBench(t)
	row := b.kept(t, 1)[0]
	b.open(t, 0)
	dynamotest.SetStatus(t, b.table, b.endpoint, webhook.Paused)
	for range 3 {
		if got := b.sweep(t); len(got) > 0 {
			t.Errorf("while it is paused: sent %v", got)
		}
		b.pass(25 * time.Minute)
	}
	b.check(t, row, webhook.DeliveryHeld)
	change := webhook.EndpointChange{}
	change.Status.Given, change.Status.Value = true, webhook.Active
	if _, err := b.table.ChangeEndpoint(t.Context(), b.org, b.endpoint.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		return e.Update(change, b.at(0))
	}); err != nil {
		t.Fatal(err)
	}
	if got := b.sweep(t); len(got) != 1 {
		t.Errorf("once it is active: sent %v, want %s", got, row.ID)
	}
}

func TestEndpointOfASuspendedApplicationIsNeitherProbedNorDrained(t *testing.T) {
	b := newBench(t)
	row := b.kept(t, 1)[0]
	b.open(t, 0)
	dynamotest.Suspend(t, b.table, b.org, b.app)
	for range 2 {
		if got := b.sweep(t); len(got) > 0 {
			t.Errorf("sent %v", got)
		}
		b.pass(6 * time.Minute)
		b.closes(t)
	}
	b.check(t, row, webhook.DeliveryHeld)
}

func TestClosedCircuitSendsWhatItHeldOldestFirst(t *testing.T) {
	b := newBench(t)
	rows := b.kept(t, 700)
	paused := b.held(t, 1)[0]
	b.open(t, time.Hour)
	b.closes(t)
	var order []value.ID
	for _, want := range []int{500, 200, 0} {
		if _, err := b.Handle(t.Context(), sweeper.Event{}); err != nil {
			t.Fatal(err)
		}
		order = append(order, b.sent.order...)
		if got := b.sent.reset(); len(got) != want {
			t.Errorf("%d sent, want %d: few in the first minute, for the endpoint may fail again", len(got), want)
		}
		b.pass(time.Minute)
	}
	want := make([]value.ID, len(rows))
	for i, row := range rows {
		want[i] = row.ID
	}
	if !slices.Equal(order, want) {
		t.Error("the rows were not sent from the oldest to the newest")
	}
	for _, row := range rows {
		got := b.check(t, row, webhook.DeliveryPending)
		if got.Probe || got.HeldReason != "" || got.AttemptCount != 5 || got.ScheduleStart != 2 || got.DueAt == nil {
			t.Fatalf("row: %+v, want one that goes on with its schedule, under a due mark", got)
		}
	}
	b.check(t, paused, webhook.DeliveryHeld)
}

func TestCircuitEndsWhenNothingMoreCanCome(t *testing.T) {
	b := newBench(t)
	b.kept(t, 1)
	b.open(t, time.Hour)
	b.closes(t)
	b.sweep(t)
	late := b.rows(t, 1, func(_ int, r *webhook.Delivery) { // older than what was drained, and held only now
		r.Status, r.HeldReason, r.NextAttemptAt = webhook.DeliveryHeld, webhook.HeldCircuitOpen, nil
		r.CreatedAt -= value.Time(time.Hour.Milliseconds())
	})[0]
	sent := map[value.ID]time.Duration{}
	for minute := 1; b.stored(t).Circuit != nil; minute++ {
		if minute > 8 {
			t.Fatalf("after %d minutes: %+v", minute, b.stored(t).Circuit)
		}
		b.pass(time.Minute)
		for id, d := range b.sweep(t) {
			sent[id] = d
		}
	}
	if _, ok := sent[late.ID]; !ok || len(sent) != 1 {
		t.Errorf("sent %v, want %s, which was held late", sent, late.ID)
	}
	if e := b.stored(t); e.Lane != webhook.LaneSlow {
		t.Errorf("the endpoint has left its lane: %q", e.Lane)
	}
	b.pass(time.Hour)
	if got := b.sweep(t); len(got) != 2 { // those of above, whose messages nobody took
		t.Errorf("an hour later: sent %v", got)
	}
}

func TestCircuitThatOpensAgainKeepsTheRest(t *testing.T) {
	b := newBench(t)
	rows := b.kept(t, 700)
	b.open(t, time.Hour)
	b.closes(t)
	b.sweep(t)
	b.open(t, 150*time.Second)
	b.pass(time.Minute)
	if got := b.sweep(t); len(got) > 0 {
		t.Errorf("%d sent by a circuit that is open", len(got))
	}
	b.check(t, rows[699], webhook.DeliveryHeld)
	b.pass(time.Minute)
	if got := b.sweep(t); len(got) != 1 {
		t.Errorf("sent %v, want a probe", got)
	}
}

func TestRowsThatADyingDrainHasResumedAreSent(t *testing.T) {
	b := newBench(t)
	rows := b.kept(t, 3)
	b.open(t, time.Hour)
	b.closes(t)
	b.sent.err = fault.Busy(errors.New("the queue is down"))
	if _, err := b.Handle(t.Context(), sweeper.Event{}); err == nil {
		t.Error("no error although nothing was sent")
	}
	b.sent.err = nil
	b.pass(webhook.Lease)
	got := b.sweep(t)
	for _, row := range rows {
		if _, ok := got[row.ID]; !ok {
			t.Errorf("row %s was not sent", row.ID)
		}
	}
}

func TestOverlappingRunsProbeAndDrainOnce(t *testing.T) {
	for name, closed := range map[string]bool{"open": false, "closed": true} {
		b := newBench(t)
		b.kept(t, 200)
		b.open(t, 0)
		want := 1
		if closed {
			b.closes(t)
			want = 200
		}
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if _, err := b.Handle(t.Context(), sweeper.Event{}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if len(b.sent.order) != want {
			t.Errorf("%s: %d sent by three runs, want %d", name, len(b.sent.order), want)
		}
	}
}

func TestRecoveryClosesAnOpenCircuit(t *testing.T) {
	b := newBench(t)
	rows := b.kept(t, 3)
	b.open(t, time.Hour)
	r := b.recovery(t, b.now.Add(-time.Hour), b.now.Add(time.Hour))
	done, err := b.backlog.Recover(t.Context(), r, 100)
	if err != nil || done.Status != webhook.RecoveryCompleted || done.RequeuedCount != 3 {
		t.Errorf("the recovery: %+v, %v", done, err)
	}
	if c := b.stored(t).Circuit; c == nil || c.State != webhook.CircuitDraining {
		t.Errorf("the circuit: %+v, want it draining", c)
	}
	for _, row := range rows {
		if got := b.check(t, row, webhook.DeliveryPending); got.ScheduleStart != got.AttemptCount {
			t.Errorf("row: %+v, want a new schedule", got)
		}
	}
}

// A recovery that goes on does not argue with a circuit that has opened since:
// what the worker holds again is sent when it closes.
func TestRecoveryThatGoesOnLeavesTheCircuitAlone(t *testing.T) {
	b := newBench(t)
	b.kept(t, 300)
	r := b.recovery(t, b.now.Add(-time.Hour), b.now.Add(time.Hour))
	begun, err := b.backlog.Recover(t.Context(), r, 100)
	if err != nil {
		t.Fatal(err)
	}
	b.open(t, time.Hour)
	if done, err := b.backlog.Recover(t.Context(), begun, 1000); err != nil || done.RequeuedCount != 300 {
		t.Errorf("the recovery: %+v, %v", done, err)
	}
	if c := b.stored(t).Circuit; !c.Open() {
		t.Errorf("the circuit: %+v, want it open", c)
	}
}
