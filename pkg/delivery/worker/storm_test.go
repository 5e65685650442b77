package worker_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Several processes work on the same endpoints while the table throttles,
// loses answers, and messages come twice: whatever happens, counters are what
// the deliveries record.
func TestCountersEqualTheRecordedOutcomesInAStorm(t *testing.T) {
	h := newHarness(t)
	const eventsOfEach = 60
	var endpoints []*webhook.Endpoint
	var deliveries []*webhook.Delivery
	for range 3 {
		rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
			if rand.N(2) == 0 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		e, _ := h.endpoint(t, rcv.url, 2)
		endpoints = append(endpoints, e)
		for range eventsOfEach {
			deliveries = append(deliveries, h.event(t, e))
		}
	}
	var handled, retries atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		f := &faulty{Store: h.Table, Queue: h.deliveries, fail: func(call string) (before, after error) {
			if call != "PutDelivery" && call != "DeliveryInputs" {
				return nil, nil
			}
			switch rand.N(10) {
			case 0:
				return fault.Busy(errors.New("throttled")), nil
			case 1:
				return nil, fault.Busy(errors.New("answer lost"))
			}
			return nil, nil
		}}
		w := h.worker(f, f, true)
		for range 3 { // invocations of the process
			group.Go(func() { h.storm(t, w, &handled, &retries) })
		}
	}
	group.Wait()
	want := map[bool]int64{}
	for _, r := range deliveries {
		got, err := h.Table.Delivery(t.Context(), h.Org, r.ID)
		if err != nil || got.Pending() {
			t.Errorf("delivery %+v, %v; want it at its end or held", got, err)
			continue
		}
		for _, a := range got.Attempts {
			want[a.Error == nil]++
		}
	}
	h.CountStream(t)
	var got webhook.Counters
	for _, e := range endpoints {
		found, err := h.Table.Counters(t.Context(), h.Org, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		got.SuccessCount += found[e.ID].SuccessCount
		got.FailureCount += found[e.ID].FailureCount
	}
	if got.SuccessCount != want[true] || got.FailureCount != want[false] {
		t.Errorf("counted %d successes and %d failures, recorded %d and %d", got.SuccessCount, got.FailureCount, want[true], want[false])
	}
	t.Logf("%d messages handled, %d kept for a retry; %d successes, %d failures", handled.Load(), retries.Load(), got.SuccessCount, got.FailureCount)
}

// storm handles what comes, each batch twice at the same time now and then,
// until nothing is left that can be received.
func (h *harness) storm(t *testing.T, w *worker.Worker, handled, kept *atomic.Int64) {
	for quiet := 0; quiet < 3; {
		quiet++
		for _, q := range []string{servicetest.MainQueue, servicetest.SlowQueue} {
			messages := h.Queues().Receive(t, q)
			if len(messages) == 0 {
				continue
			}
			quiet = 0
			var twins sync.WaitGroup
			if rand.N(4) == 0 {
				twins.Go(func() { h.crash(t, w, messages...) })
			}
			left := h.handle(t, w, messages...)
			twins.Wait()
			handled.Add(int64(len(messages)))
			kept.Add(int64(len(left)))
			// What stays comes again at once instead of after its wait.
			for try := 0; len(left) > 0 && try < 20; try++ {
				h.Pass(time.Minute)
				left = h.handle(t, w, left...)
			}
		}
	}
}

// One endpoint hangs while many of its events wait. The others' attempts are
// made meanwhile, and no more of its own than its share is under way.
func TestHangingEndpointDoesNotHoldUpOthers(t *testing.T) {
	h := newHarness(t)
	release := make(chan struct{})
	var underWay, most atomic.Int64
	hanging := newReceiver(t, func(int, http.ResponseWriter) {
		most.Store(max(most.Load(), underWay.Add(1)))
		<-release
		underWay.Add(-1)
	})
	asked := make(chan struct{})
	quick := newReceiver(t, func(int, http.ResponseWriter) { close(asked) })
	stuck, _ := h.endpoint(t, hanging.url, 3)
	other, _ := h.endpoint(t, quick.url, 3)
	const bound = webhook.FirstPermits * webhook.AttemptsPerPermit
	for range bound + 10 {
		h.event(t, stuck)
	}
	var group sync.WaitGroup
	var kept atomic.Int64
	invoke := func(messages []events.SQSMessage) {
		group.Go(func() { kept.Add(int64(len(h.handle(t, h.Worker, messages...)))) })
	}
	for range bound/10 + 1 {
		invoke(h.receive(t))
	}
	delivery := h.event(t, other)
	invoke(h.receive(t))
	const patience = time.Minute // and the endpoint hangs until this test lets go
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("the other endpoint's attempt is not made")
	}
	for deadline := time.Now().Add(patience); underWay.Load() < bound && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	close(release)
	group.Wait()
	h.delivery(t, delivery, webhook.DeliveryDelivered, 1)
	if kept.Load() != 10 || most.Load() != bound {
		t.Errorf("%d messages wait and %d attempts at a time, want 10 and %d", kept.Load(), most.Load(), bound)
	}
	if moved := h.Queues().Receive(t, servicetest.SlowQueue); len(moved) > 0 {
		t.Errorf("%d messages are in the slow lane, want none", len(moved))
	}
}

// busyDelivery is a delivery of an endpoint that has as many attempts under way as it
// may have, and the messages of its batch, which were received so often.
func (h *harness) busyDelivery(t *testing.T, receives string) (d *webhook.Delivery, messages []events.SQSMessage) {
	t.Helper()
	e, _ := h.endpoint(t, newReceiver(t, always(http.StatusOK)).url, 3)
	h.event(t, e)
	d = h.event(t, e)
	for len(messages) < 2 {
		messages = append(messages, h.receive(t)...)
	}
	for i := range messages {
		messages[i].Attributes["ApproximateReceiveCount"] = receives
	}
	return d, messages
}

// A message that finds its endpoint busy for the fifth time leaves the queue, and
// its delivery waits as a due one.
func TestDeliveryOfABusyEndpointBecomesADueOne(t *testing.T) {
	for receives, left := range map[string]int{"4": 2, "5": 0} {
		t.Run(receives, func(t *testing.T) {
			h := newHarness(t)
			d, messages := h.busyDelivery(t, receives)
			h.leaves(t, left, h.failing("TakePermit", always1000, errBusy, nil), messages...)
			got := h.delivery(t, d, webhook.DeliveryPending, 0)
			if due := left == 0; (got.DueAt != nil) != due || due && (*got.DueAt != h.At(time.Minute) || *got.NextAttemptAt != *got.DueAt) {
				t.Errorf("delivery %+v, due in a minute: want %t", got, due)
			}
		})
	}
}

// A message does not wait invisible in a lane that has too many in flight: the lane
// stops for all tenants at 120,000.
func TestABusyEndpointDoesNotFillTheLane(t *testing.T) {
	h := newHarness(t)
	_, messages := h.busyDelivery(t, "1")
	f := &faulty{Store: h.Table, fail: func(call string) (error, error) {
		if call == "TakePermit" {
			return errBusy, nil
		}
		return nil, nil
	}}
	h.leaves(t, 0, h.worker(f, &full{Queue: h.deliveries}, true), messages...)
}
