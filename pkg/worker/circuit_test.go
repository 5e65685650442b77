package worker_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// deliver makes and handles one event of the endpoint in the lane that it is
// in. Its message, if it stays, is taken away, so that the next receive does
// not find it.
func (b *bench) deliver(t *testing.T, e *webhook.Endpoint) (*webhook.Delivery, []events.SQSMessage) {
	t.Helper()
	row := b.event(t, e)
	left := b.handle(t, b.Worker, b.receive(t)...)
	if b.condition(t, e).Lane == webhook.LaneSlow && len(left) == 0 {
		if moved := b.queues.Receive(t, slowQueue); len(moved) > 0 {
			left = b.handle(t, b.Worker, moved...)
		}
	}
	for _, m := range left {
		b.queues.Delete(t, queueOf(&m), m)
	}
	return row, left
}

func TestCircuitOpensAfterTenFailuresInARowOverAMinute(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 5)
	var retry []events.SQSMessage
	var first *webhook.Delivery
	for i := range 12 {
		row, left := b.deliver(t, e)
		if i == 0 {
			first, retry = row, left
		}
		// The eleventh is the first that comes a minute after the first.
		if c := b.condition(t, e).Circuit; c.Open() != (i >= 10) {
			t.Fatalf("after %d failures in %s: circuit %+v", i+1, 6*time.Duration(i)*time.Second, c)
		}
		b.pass(6 * time.Second)
	}
	rcv.requests(t, 11)
	c := b.condition(t, e)
	if wait := c.Circuit.ProbeAt.Std().Sub(c.Circuit.OpenedAt.Std()); wait != time.Minute || c.Circuit.Interval != time.Minute || c.Lane != webhook.LaneSlow {
		t.Errorf("condition %+v, circuit %+v; want a probe after a minute", c, c.Circuit)
	}
	held, left := b.deliver(t, e)
	if got := b.row(t, held, webhook.DeliveryHeld, 0); got.HeldReason != webhook.HeldCircuitOpen || len(left) > 0 {
		t.Errorf("row %+v, messages left %d; want it held for the circuit", got, len(left))
	}
	// The retry of the first comes due. It leaves the lane that is not for
	// failing endpoints even to be held.
	b.crash(t, b.Worker, retry...)
	b.row(t, first, webhook.DeliveryPending, 1)
	b.handle(t, b.Worker, b.queues.Receive(t, slowQueue)...)
	if got := b.row(t, first, webhook.DeliveryHeld, 1); got.HeldReason != webhook.HeldCircuitOpen {
		t.Errorf("row %+v, want it held for the circuit", got)
	}
	rcv.requests(t, 11)
	b.counters(t, e, 0, 11)
}

func TestCircuitOpensWhenFourOfFiveFailedOfFifty(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		failed int // of 50, the successes among the first
		want   bool
	}{{39, false}, {40, true}} {
		rcv := newReceiver(t, func(n int, w http.ResponseWriter) {
			if n <= 49 && n%5 == 1 || n == 2 && tt.failed == 39 {
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
		})
		e, _ := b.endpoint(t, rcv.url, 1)
		for range 5 {
			for range 10 {
				b.event(t, e)
			}
			b.drain(t)
		}
		c := b.counters(t, e, int64(50-tt.failed), int64(tt.failed))
		if got := b.condition(t, e).Circuit; got.Open() != tt.want {
			t.Errorf("%d failures of 50: circuit %+v, want open %t; counters %+v", tt.failed, got, tt.want, c)
		}
	}
}

// drain handles what is in the queues, in whatever lane it comes, and takes
// away what stays.
func (b *bench) drain(t *testing.T) {
	t.Helper()
	for found := true; found; {
		found = false
		for _, q := range []string{mainQueue, slowQueue} {
			messages := b.queues.Receive(t, q)
			found = found || len(messages) > 0
			if len(messages) > 0 {
				b.queues.Delete(t, q, b.handle(t, b.Worker, messages...)...)
			}
		}
	}
}

// probe sends the row as the probe of its endpoint.
func (b *bench) probe(t *testing.T, r *webhook.Delivery) []events.SQSMessage {
	t.Helper()
	current, err := b.table.Delivery(t.Context(), b.org, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	now := value.TimeOf(b.clock())
	probe := current.ResumeAsProbe(now, now)
	if _, err := b.table.PutDelivery(t.Context(), current, probe); err != nil {
		t.Fatal(err)
	}
	if err := b.deliveries.Send(t.Context(), webhook.LaneSlow, now, probe); err != nil {
		t.Fatal(err)
	}
	return b.handle(t, b.Worker, b.queues.Await(t, slowQueue)...)
}

// open opens the endpoint's circuit and returns a row that it holds.
func (b *bench) open(t *testing.T, e *webhook.Endpoint) *webhook.Delivery {
	t.Helper()
	now := value.TimeOf(b.clock())
	b.setCondition(t, e, func(c *webhook.Routing) {
		c.Circuit = &webhook.Circuit{State: webhook.CircuitOpen, OpenedAt: now, ProbeAt: now.Add(time.Minute), Interval: time.Minute}
	})
	row := b.event(t, e)
	b.handle(t, b.Worker, b.receive(t)...)
	b.row(t, row, webhook.DeliveryHeld, 0)
	return row
}

func TestFailedProbeHoldsItsRowAgainAndDoublesTheWait(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 10)
	row := b.open(t, e)
	for i, minutes := range []int{2, 4, 8, 16, 32, 60, 60} {
		want := time.Duration(minutes) * time.Minute
		b.pass(time.Hour)
		if left := b.probe(t, row); len(left) > 0 {
			t.Fatalf("messages left: %+v", left)
		}
		if got := b.row(t, row, webhook.DeliveryHeld, i+1); got.HeldReason != webhook.HeldCircuitOpen {
			t.Errorf("row %+v", got)
		}
		c := b.condition(t, e).Circuit
		if wait := c.ProbeAt.Std().Sub(b.clock()).Round(time.Second); c.Interval != want || wait != want {
			t.Errorf("after probe %d: %+v, the next in %s; want %s", i+1, c, wait, want)
		}
	}
	b.counters(t, e, 0, 7)
	rcv.requests(t, 7)
}

func TestLastProbeOfARowEndsIt(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 0)
	row := b.open(t, e)
	b.probe(t, row)
	b.row(t, row, webhook.DeliveryFailed, 1)
	if c := b.condition(t, e).Circuit; !c.Open() || c.Interval != 2*time.Minute {
		t.Errorf("circuit %+v, want it open for 2 minutes more", c)
	}
}

func TestSuccessfulProbeClosesTheCircuit(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := b.endpoint(t, rcv.url, 3)
	row := b.open(t, e)
	b.pass(time.Minute)
	b.probe(t, row)
	b.row(t, row, webhook.DeliveryDelivered, 1)
	c := b.condition(t, e).Circuit
	if c == nil || c.State != webhook.CircuitDraining || c.ClosedAt == nil || *c.ClosedAt != value.TimeOf(b.clock()) {
		t.Errorf("circuit %+v, want it draining", c)
	}
	next, _ := b.deliver(t, e)
	b.row(t, next, webhook.DeliveryDelivered, 1)
	b.counters(t, e, 2, 0)
}

func TestProbeOfAnEndpointThatMustNotBeAskedIsHeld(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := b.endpoint(t, rcv.url, 3)
	row := b.open(t, e)
	dynamotest.SetStatus(t, b.table, e, webhook.Paused)
	b.probe(t, row)
	if got := b.row(t, row, webhook.DeliveryHeld, 0); got.HeldReason != webhook.HeldPaused {
		t.Errorf("row %+v, want it held for the pause", got)
	}
	rcv.requests(t, 0)
}

func TestEndpointIsDisabledWhenEveryAttemptFailedForFiveDays(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 10)
	row := b.open(t, e)
	const step = 5 * 24 * time.Hour / 20
	for i := range 21 {
		if i > 0 {
			b.pass(step)
		}
		if i%7 == 6 { // its retries end before
			now := value.TimeOf(b.clock())
			row = b.requeued(t, row, now)
		}
		b.probe(t, row)
		after, err := b.table.Endpoint(t.Context(), b.org, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		disabled := after.Status == webhook.Disabled
		if disabled != (i == 20) {
			t.Fatalf("after %d failures in %s: %+v", i+1, time.Duration(i)*step, after)
		}
		if disabled && (after.DisabledReason == nil || after.Circuit != nil) {
			t.Errorf("endpoint %+v", after)
		}
	}
	b.counters(t, e, 0, 21)
}

// requeued gives a row that is HELD or FAILED a new schedule and holds it.
func (b *bench) requeued(t *testing.T, r *webhook.Delivery, now value.Time) *webhook.Delivery {
	t.Helper()
	row, err := b.table.ChangeDelivery(t.Context(), b.org, r.ID, func(r *webhook.Delivery) (*webhook.Delivery, error) {
		return r.Requeue(now).Hold(webhook.HeldCircuitOpen, now), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func TestTestsAreOutsideOfCountersAndCircuit(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 3)
	for i := range 60 {
		row := b.event(t, e)
		stored := b.row(t, row, webhook.DeliveryPending, 0)
		test := *stored
		test.Test, test.UpdatedAt = true, stored.UpdatedAt+1
		if _, err := b.table.PutDelivery(t.Context(), stored, &test); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			b.drain(t)
			b.pass(time.Minute)
		}
	}
	rcv.requests(t, 60)
	b.counters(t, e, 0, 0)
	if c := b.condition(t, e); c.Circuit != nil || c.Lane != webhook.LaneMain {
		t.Errorf("condition %+v", c)
	}
}

func TestSlowEndpointsAreAskedInTheSlowLaneUntilTheyAreFast(t *testing.T) {
	b := newBench(t)
	var slow atomic.Bool
	slow.Store(true)
	rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
		if slow.Load() {
			b.pass(2100 * time.Millisecond)
		}
		_, _ = io.WriteString(w, "ok")
	})
	e, _ := b.endpoint(t, rcv.url, 3)
	for i := range 5 {
		b.deliver(t, e)
		want := webhook.LaneMain
		if i == 4 {
			want = webhook.LaneSlow
		}
		if got := b.condition(t, e).Lane; got != want {
			t.Fatalf("after %d slow attempts: lane %q, want %q", i+1, got, want)
		}
	}
	slow.Store(false)
	row := b.event(t, e)
	if left := b.handle(t, b.Worker, b.receive(t)...); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	b.row(t, row, webhook.DeliveryPending, 0)
	b.handle(t, b.Worker, b.queues.Await(t, slowQueue)...)
	b.row(t, row, webhook.DeliveryDelivered, 1)
	b.pass(5 * time.Minute)
	b.deliver(t, e)
	if got := b.condition(t, e).Lane; got != webhook.LaneMain {
		t.Errorf("after a fast attempt in five minutes: lane %q", got)
	}
}

func TestFailuresBeforeAnotherURLDoNotCountAgainstIt(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 0)
	for i := range 12 {
		if i == 9 {
			b.pass(time.Second)
			dynamotest.ChangeEndpoint(t, b.table, e, func(e *webhook.Endpoint) {
				e.URL, e.HealthSince = fmt.Sprintf("%s/%d", rcv.url, i), value.TimeOf(b.clock())
			})
		}
		b.deliver(t, e)
		b.pass(10 * time.Second)
	}
	if c := b.condition(t, e).Circuit; c != nil {
		t.Errorf("circuit %+v after 9 failures and 3 at another url", c)
	}
	b.counters(t, e, 0, 12)
}
