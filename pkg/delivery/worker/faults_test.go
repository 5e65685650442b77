package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// faulty is a table and queues of which a call, by its name, fails when fail
// says so, before or after it is made.
type faulty struct {
	worker.Store
	worker.Queue

	fail func(call string) (before, after error)
}

func (f *faulty) try(call string, do func() error) error {
	before, after := f.fail(call)
	if before != nil {
		return before
	}
	return errors.Join(do(), after)
}

func (f *faulty) DeliveryInputs(ctx context.Context, refs []webhook.DeliveryRef) (found []webhook.DeliveryInput, err error) {
	err = f.try("DeliveryInputs", func() (err error) { found, err = f.Store.DeliveryInputs(ctx, refs); return err })
	return found, err
}

func (f *faulty) PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error) {
	err = f.try("PutDelivery", func() (err error) { current, err = f.Store.PutDelivery(ctx, previous, next); return err })
	return current, err
}

func (f *faulty) TakePermit(ctx context.Context, r webhook.PermitRequest) (taken bool, err error) {
	err = f.try("TakePermit", func() (err error) { taken, err = f.Store.TakePermit(ctx, r); return err })
	return taken, err
}

func (f *faulty) ChangeVisibility(ctx context.Context, in webhook.Lane, changes ...queue.VisibilityChange) error {
	return f.try("ChangeVisibility", func() error { return f.Queue.ChangeVisibility(ctx, in, changes...) })
}

func (f *faulty) Move(ctx context.Context, to webhook.Lane, moves ...queue.Move) error {
	return f.try("Move", func() error { return f.Queue.Move(ctx, to, moves...) })
}

// failing is a worker of which a call fails, the first times.
func (h *harness) failing(call string, times int, before, after error) *worker.Worker {
	var calls atomic.Int64
	f := &faulty{Store: h.Table, Queue: h.deliveries, fail: func(c string) (error, error) {
		if c == call && calls.Add(1) <= int64(times) {
			return before, after
		}
		return nil, nil
	}}
	return h.worker(f, f, true)
}

var (
	errBusy  = fault.Busy(errors.New("throttled"))
	errWrong = errors.New("wrong")
)

const always1000 = 1000

// A process that dies at a step leaves what the next one needs: the step's
// call and everything behind it fail, and no message is deleted.
func TestDyingAtAnyStepLosesNothingAndCountsNothingTwice(t *testing.T) {
	h := newHarness(t)
	for _, tt := range []struct {
		step     string
		after    bool // dies after the call instead of before it
		requests int  // until the first attempt is recorded, and the next
	}{
		{"DeliveryInputs", false, 2},
		{"PutDelivery", false, 3},
		{"PutDelivery", true, 2},
		{"ChangeVisibility", false, 2},
		{"ChangeVisibility", true, 2},
	} {
		t.Run(fmt.Sprintf("%v_%v", tt.step, tt.after), func(t *testing.T) {
			rcv := newReceiver(t, always(http.StatusInternalServerError))
			e, _ := h.endpoint(t, rcv.url, 3)
			delivery := h.event(t, e)
			m := h.receive(t)
			var dead atomic.Bool
			f := &faulty{Store: h.Table, Queue: h.deliveries, fail: func(call string) (before, after error) {
				switch {
				case dead.Load():
					return errWrong, nil
				case call == tt.step && tt.after:
					dead.Store(true)
					return nil, errWrong
				case call == tt.step:
					dead.Store(true)
					return errWrong, nil
				}
				return nil, nil
			}}
			if left := h.crash(t, h.worker(f, f, true), m...); len(left) != 1 {
				t.Errorf("left %+v, want the message kept", left)
			}
			h.Pass(6 * time.Minute) // the queue's own timeout
			for range 2 {
				h.leaves(t, 1, h.Worker, m...)
				if got, err := h.Table.Delivery(t.Context(), h.Org, delivery.ID); err != nil || got.AttemptCount == 2 {
					break
				}
				h.Pass(5 * time.Second)
			}
			h.delivery(t, delivery, webhook.DeliveryPending, 2)
			h.counters(t, e, 0, 2)
			rcv.requests(t, tt.requests)
			h.Queues().Delete(t, servicetest.MainQueue, m...)
		})
	}
}

func TestMessageThatIsMovedAndNotDeletedMakesNoSecondAttempt(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := h.endpoint(t, rcv.url, 5)
	h.setLane(t, e, webhook.LaneSlow)
	delivery := h.event(t, e)
	old := h.receive(t)[0]
	if left := h.crash(t, h.Worker, old); len(left) > 0 {
		t.Fatalf("left %+v, want the message moved", left)
	}
	moved := h.Queues().Await(t, servicetest.SlowQueue)[0]
	rcv.requests(t, 0)
	h.leaves(t, 1, h.Worker, moved)
	h.delivery(t, delivery, webhook.DeliveryPending, 1)
	for range 2 { // before the retry and at its time
		if left := h.crash(t, h.Worker, old); len(left) != 1 {
			t.Errorf("left %+v, want the old message to wait for its turn to take over", left)
		}
		h.Pass(5 * time.Second)
	}
	rcv.requests(t, 1)
	h.counters(t, e, 0, 1)
}

// full is a queue with too many messages in flight. It notes what is moved, and
// delays none of it.
type full struct {
	worker.Queue
	moves []queue.Move
}

func (*full) TooManyInFlight(context.Context, webhook.Lane) bool { return true }

func (f *full) Move(ctx context.Context, to webhook.Lane, moves ...queue.Move) error {
	f.moves = append(f.moves, moves...)
	undelayed := slices.Clone(moves)
	for i := range undelayed {
		undelayed[i].Delay = 0
	}
	return f.Queue.Move(ctx, to, undelayed...)
}

func TestRetriesAreDelayedMessagesWhenTooManyAreInFlight(t *testing.T) {
	h := newHarness(t)
	q := &full{Queue: h.deliveries}
	w := h.worker(h.Table, q, true)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := h.endpoint(t, rcv.url, 5)
	delivery := h.event(t, e)
	old := h.receive(t)[0]
	if left := h.crash(t, w, old); len(left) > 0 {
		t.Fatalf("left %+v, want another message in its place", left)
	}
	first := h.delivery(t, delivery, webhook.DeliveryPending, 1)
	if len(q.moves) != 1 || q.moves[0].Delay.Round(time.Second) != 5*time.Second {
		t.Errorf("moved %+v, want one in 5s", q.moves)
	}
	next := h.receive(t)[0]
	h.Pass(5 * time.Second)
	// The old one was not deleted, and comes first: it may carry the delivery as
	// well, but only until either makes the attempt.
	if left := h.crash(t, h.Worker, old); len(left) != 1 {
		t.Errorf("left %+v, want the old message to carry the next retry", left)
	}
	if got := h.delivery(t, delivery, webhook.DeliveryPending, 2); got.MessageID == first.MessageID {
		t.Errorf("carrier %s after both attempts", got.MessageID)
	}
	for range 2 {
		if left := h.crash(t, h.Worker, next); len(left) != 1 {
			t.Errorf("left %+v, want the other message to wait for its turn to take over", left)
		}
		h.Pass(50 * time.Second)
	}
	h.leaves(t, 0, w, old)
	h.delivery(t, delivery, webhook.DeliveryPending, 3)
	rcv.requests(t, 3)
	h.counters(t, e, 0, 3)
}

func TestFaultsOfOursBackOff(t *testing.T) {
	h := newHarness(t)
	q := &hidden{Queue: h.deliveries}
	w := h.worker(&faulty{Store: h.Table, fail: func(string) (error, error) { return errBusy, nil }}, q, true)
	ref := webhook.DeliveryRef{OrganizationID: h.Org, DeliveryID: value.NewID(), EventID: value.NewID(), EndpointID: value.NewID(), ApplicationID: h.App}
	m := events.SQSMessage{MessageId: "m", ReceiptHandle: "r", Body: webhook.DeliveryMessage{DeliveryRef: ref}.Body(), Attributes: map[string]string{"ApproximateReceiveCount": "8"}}
	h.crash(t, w, m)
	if len(q.changes) != 1 || q.changes[0] != (queue.VisibilityChange{Receipt: "r", For: queue.BackOff(8)}) {
		t.Errorf("hidden %+v, want %s", q.changes, queue.BackOff(8))
	}
}

// hidden notes what is hidden.
type hidden struct {
	worker.Queue
	changes []queue.VisibilityChange
}

func (v *hidden) ChangeVisibility(_ context.Context, _ webhook.Lane, changes ...queue.VisibilityChange) error {
	v.changes = append(v.changes, changes...)
	return nil
}

func TestBusyTableIsAskedAgainBeforeTheReceiverIs(t *testing.T) {
	h := newHarness(t)
	for _, lost := range []bool{false, true} { // refused, or its answer is lost
		t.Run(fmt.Sprintf("lost_%t", lost), func(t *testing.T) {
			rcv := newReceiver(t, always(http.StatusInternalServerError))
			e, _ := h.endpoint(t, rcv.url, 3)
			delivery := h.event(t, e)
			w := h.failing("PutDelivery", 2, errBusy, nil)
			if lost {
				w = h.failing("PutDelivery", 2, nil, errBusy)
			}
			m := h.receive(t)
			h.leaves(t, 1, w, m...)
			h.delivery(t, delivery, webhook.DeliveryPending, 1)
			h.counters(t, e, 0, 1)
			rcv.requests(t, 1)
			h.Queues().Delete(t, servicetest.MainQueue, m...)
		})
	}
}

func TestWhatCannotBeWrittenDoesNotStopItsNeighbours(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	good, bad := h.event(t, e), h.event(t, e)
	f := &refusing{Store: h.Table, delivery: bad.ID}
	var messages []events.SQSMessage
	for len(messages) < 2 {
		messages = append(messages, h.receive(t)...)
	}
	h.leaves(t, 1, h.worker(f, h.deliveries, true), messages...)
	h.delivery(t, good, webhook.DeliveryDelivered, 1)
	h.delivery(t, bad, webhook.DeliveryPending, 0)
	h.counters(t, e, 1, 0)
}

// refusing is a table that takes no outcome of a delivery.
type refusing struct {
	worker.Store
	delivery value.ID
}

func (r *refusing) PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (*webhook.Delivery, error) {
	if next.ID == r.delivery {
		return nil, errWrong
	}
	return r.Store.PutDelivery(ctx, previous, next)
}

func TestFailedMoveKeepsTheMessage(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := h.endpoint(t, rcv.url, 3)
	h.setLane(t, e, webhook.LaneSlow)
	delivery := h.event(t, e)
	h.leaves(t, 1, h.failing("Move", 1, errBusy, nil), h.receive(t)...)
	h.delivery(t, delivery, webhook.DeliveryPending, 0)
	h.setLane(t, e, webhook.LaneMain)
	next := h.event(t, e)
	f := &faulty{Store: h.Table, Queue: &full{Queue: h.deliveries}, fail: func(call string) (error, error) {
		if call == "Move" {
			return errBusy, nil
		}
		return nil, nil
	}}
	h.leaves(t, 1, h.worker(f, f, true), h.receive(t)...)
	h.delivery(t, next, webhook.DeliveryPending, 1)
}
