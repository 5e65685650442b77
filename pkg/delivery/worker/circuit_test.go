package worker_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// deliver makes and handles one event of the endpoint in the lane that it is
// in. Its message, if it stays, is taken away, so that the next receive does
// not find it.
func (h *harness) deliver(t *testing.T, e *webhook.Endpoint) (*webhook.Delivery, []events.SQSMessage) {
	t.Helper()
	delivery := h.event(t, e)
	left := h.handle(t, h.Worker, h.receive(t)...)
	if h.routing(t, e).Lane == webhook.LaneSlow && len(left) == 0 {
		if moved := h.Queues().Receive(t, servicetest.SlowQueue); len(moved) > 0 {
			left = h.handle(t, h.Worker, moved...)
		}
	}
	for _, m := range left {
		h.Queues().Delete(t, queueOf(&m), m)
	}
	return delivery, left
}

func TestCircuitOpensAfterTenFailuresInARowOverAMinute(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := h.endpoint(t, rcv.url, 5)
	h.Count(t, e.ID, h.Now(), webhook.Attempt{At: h.Now()})
	h.Pass(time.Second)
	var retry []events.SQSMessage
	var first *webhook.Delivery
	for i := range 12 {
		delivery, left := h.deliver(t, e)
		if i == 0 {
			first, retry = delivery, left
		}
		// The eleventh is the first that comes a minute after the first.
		if c := h.routing(t, e).Circuit; c.Open() != (i >= 10) {
			t.Fatalf("after %d failures in %s: circuit %+v", i+1, 6*time.Duration(i)*time.Second, c)
		}
		h.Pass(6 * time.Second)
	}
	rcv.requests(t, 11)
	c := h.routing(t, e)
	if wait := c.Circuit.ProbeAt.Std().Sub(c.Circuit.OpenedAt.Std()); wait != time.Minute || c.Circuit.Interval() != time.Minute || c.Lane != webhook.LaneSlow {
		t.Errorf("routing %+v, circuit %+v; want a probe after a minute", c, c.Circuit)
	}
	held, left := h.deliver(t, e)
	if got := h.delivery(t, held, webhook.DeliveryHeld, 0); got.HeldReason != webhook.HeldCircuitOpen || len(left) > 0 {
		t.Errorf("delivery %+v, messages left %d; want it held for the circuit", got, len(left))
	}
	// The retry of the first comes due. It leaves the lane that is not for
	// failing endpoints even to be held.
	h.crash(t, h.Worker, retry...)
	h.delivery(t, first, webhook.DeliveryPending, 1)
	h.handle(t, h.Worker, h.Queues().Receive(t, servicetest.SlowQueue)...)
	if got := h.delivery(t, first, webhook.DeliveryHeld, 1); got.HeldReason != webhook.HeldCircuitOpen {
		t.Errorf("delivery %+v, want it held for the circuit", got)
	}
	rcv.requests(t, 11)
	h.counters(t, e, 1, 11)
}

// probe sends the delivery as the probe of its endpoint.
func (h *harness) probe(t *testing.T, r *webhook.Delivery) []events.SQSMessage {
	t.Helper()
	now := h.Now()
	probe := h.ChangeDelivery(t, r.ID, func(d *webhook.Delivery) *webhook.Delivery { return d.ResumeAsProbe(now, now) })
	if err := h.deliveries.Send(t.Context(), webhook.LaneSlow, now, probe); err != nil {
		t.Fatal(err)
	}
	return h.handle(t, h.Worker, h.Queues().Await(t, servicetest.SlowQueue)...)
}

// open opens the endpoint's circuit and returns a delivery that it holds.
func (h *harness) open(t *testing.T, e *webhook.Endpoint) *webhook.Delivery {
	t.Helper()
	now := h.Now()
	h.SetRouting(t, e.ID, func(c *webhook.Routing) {
		c.Circuit = &webhook.Circuit{State: webhook.CircuitOpen, OpenedAt: now, ProbeAt: now.Add(time.Minute), IntervalMs: time.Minute.Milliseconds()}
	})
	delivery := h.event(t, e)
	h.handle(t, h.Worker, h.receive(t)...)
	h.delivery(t, delivery, webhook.DeliveryHeld, 0)
	return delivery
}

func TestFailedProbeIsHeldAgainAndEndsNoDelivery(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := h.endpoint(t, rcv.url, 0)
	delivery := h.open(t, e)
	h.Pass(time.Minute)
	if left := h.probe(t, delivery); len(left) > 0 {
		t.Errorf("messages left: %+v", left)
	}
	if got := h.delivery(t, delivery, webhook.DeliveryHeld, 1); got.HeldReason != webhook.HeldCircuitOpen {
		t.Errorf("delivery %+v", got)
	}
	h.counters(t, e, 0, 1)
	if c := h.routing(t, e).Circuit; !c.Open() || c.Interval() != 2*time.Minute {
		t.Errorf("circuit %+v, want it open for 2 minutes more", c)
	}
}

func TestSuccessfulProbeClosesTheCircuit(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	delivery := h.open(t, e)
	h.Pass(time.Minute)
	h.probe(t, delivery)
	h.delivery(t, delivery, webhook.DeliveryDelivered, 1)
	c := h.routing(t, e).Circuit
	if c == nil || c.State != webhook.CircuitDraining || c.ClosedAt == nil || *c.ClosedAt != h.Now() {
		t.Errorf("circuit %+v, want it draining", c)
	}
	next, _ := h.deliver(t, e)
	h.delivery(t, next, webhook.DeliveryDelivered, 1)
	h.counters(t, e, 2, 0)
}

func TestEndpointIsDisabledWhenEveryAttemptFailedForFiveDays(t *testing.T) {
	h := newHarness(t)
	e, _ := h.endpoint(t, newReceiver(t, always(http.StatusInternalServerError)).url, 10)
	delivery, reason := h.open(t, e), "answered 500"
	for range 19 {
		h.Count(t, e.ID, h.Now(), webhook.Attempt{At: h.Now(), Error: &reason})
	}
	for i, pass := range []time.Duration{5*24*time.Hour - time.Minute, time.Minute} {
		h.Pass(pass)
		h.probe(t, delivery)
		h.CountStream(t)
		got := h.StoredEndpoint(t, e.ID)
		if disabled := got.Status == webhook.Disabled; disabled != (i == 1) || disabled && (got.DisabledReason == nil || got.Circuit != nil) {
			t.Fatalf("after %d failures more: %+v", i+1, got)
		}
	}
	h.counters(t, e, 0, 21)
}
