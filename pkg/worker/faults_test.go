package worker_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
	"github.com/commerce-integration/service/pkg/worker"
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
	err = f.try("Deliveries", func() (err error) { found, err = f.Store.DeliveryInputs(ctx, refs); return err })
	return found, err
}

func (f *faulty) PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error) {
	err = f.try("PutRow", func() (err error) { current, err = f.Store.PutDelivery(ctx, previous, next); return err })
	return current, err
}

func (f *faulty) RecordOutcomes(ctx context.Context, outcomes []webhook.DeliveryChange, tallies []webhook.CounterShardWrite) (clash *webhook.WriteConflict, err error) {
	err = f.try("RecordOutcomes", func() (err error) { clash, err = f.Store.RecordOutcomes(ctx, outcomes, tallies); return err })
	return clash, err
}

func (f *faulty) CounterShard(ctx context.Context, org, endpoint value.ID, shard int) (stored webhook.StoredCounterShard, err error) {
	err = f.try("Tally", func() (err error) { stored, err = f.Store.CounterShard(ctx, org, endpoint, shard); return err })
	return stored, err
}

func (f *faulty) TakePermit(ctx context.Context, org, endpoint value.ID, holder string, now, until value.Time) (taken bool, err error) {
	err = f.try("TakePermit", func() (err error) {
		taken, err = f.Store.TakePermit(ctx, org, endpoint, holder, now, until)
		return err
	})
	return taken, err
}

func (f *faulty) ChangeVisibility(ctx context.Context, in webhook.Lane, hidings ...sqsqueue.VisibilityChange) error {
	return f.try("Hide", func() error { return f.Queue.ChangeVisibility(ctx, in, hidings...) })
}

func (f *faulty) Move(ctx context.Context, to webhook.Lane, moves ...sqsqueue.Move) error {
	return f.try("Move", func() error { return f.Queue.Move(ctx, to, moves...) })
}

// failing is a worker of which a call fails, the first times.
func (b *bench) failing(call string, times int, before, after error) *worker.Worker {
	var calls atomic.Int64
	f := &faulty{Store: b.table, Queue: b.deliveries, fail: func(c string) (error, error) {
		if c == call && calls.Add(1) <= int64(times) {
			return before, after
		}
		return nil, nil
	}}
	return b.worker(f, f, true)
}

var (
	errBusy  = fault.Busy(errors.New("throttled"))
	errWrong = errors.New("wrong")
)

const always1000 = 1000

// A process that dies at a step leaves what the next one needs: the step's
// call and everything behind it fail, and no message is deleted.
func TestDyingAtAnyStepLosesNothingAndCountsNothingTwice(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		step     string
		after    bool // dies after the call instead of before it
		requests int  // until the first attempt is recorded, and the next
	}{
		{"Deliveries", false, 2},
		{"Tally", false, 3},
		{"RecordOutcomes", false, 3},
		{"RecordOutcomes", true, 2},
		{"Hide", false, 2},
		{"Hide", true, 2},
	} {
		rcv := newReceiver(t, always(http.StatusInternalServerError))
		e, _ := b.endpoint(t, rcv.url, 3)
		row := b.event(t, e)
		m := b.receive(t)
		var dead atomic.Bool
		f := &faulty{Store: b.table, Queue: b.deliveries, fail: func(call string) (before, after error) {
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
		b.crash(t, b.worker(f, f, true), m...)
		b.pass(6 * time.Minute) // the queue's own timeout
		for range 2 {
			if left := b.handle(t, b.Worker, m...); len(left) != 1 {
				t.Fatalf("%s, after %t: the message that carries the retry is done", tt.step, tt.after)
			}
			if got, err := b.table.Delivery(t.Context(), b.org, row.ID); err != nil || got.AttemptCount == 2 {
				break
			}
			b.pass(5 * time.Second)
		}
		b.row(t, row, webhook.DeliveryPending, 2)
		b.counters(t, e, 0, 2)
		rcv.requests(t, tt.requests)
		b.queues.Delete(t, mainQueue, m...)
	}
}

func TestMessageThatIsMovedAndNotDeletedMakesNoSecondAttempt(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 5)
	b.setLane(t, e, webhook.LaneSlow)
	row := b.event(t, e)
	old := b.receive(t)[0]
	if left := b.crash(t, b.Worker, old); len(left) > 0 {
		t.Fatalf("left %+v, want the message moved", left)
	}
	moved := b.queues.Await(t, slowQueue)[0]
	rcv.requests(t, 0)
	if left := b.handle(t, b.Worker, moved); len(left) != 1 {
		t.Errorf("left %+v, want the moved message to carry the retry", left)
	}
	b.row(t, row, webhook.DeliveryPending, 1)
	for range 2 { // before the retry and at its time
		if left := b.crash(t, b.Worker, old); len(left) != 1 {
			t.Errorf("left %+v, want the old message to wait for its turn to take over", left)
		}
		b.pass(5 * time.Second)
	}
	rcv.requests(t, 1)
	b.counters(t, e, 0, 1)
}

// crowded is a queue with too many messages in flight.
type crowded struct{ worker.Queue }

func (crowded) TooManyInFlight(context.Context, webhook.Lane) bool { return true }

func TestRetriesOfACrowdedQueueAreDelayedMessages(t *testing.T) {
	b := newBench(t)
	w := b.worker(b.table, crowded{b.deliveries}, true)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 5)
	row := b.event(t, e)
	old := b.receive(t)[0]
	if left := b.crash(t, w, old); len(left) > 0 {
		t.Fatalf("left %+v, want another message in its place", left)
	}
	first := b.row(t, row, webhook.DeliveryPending, 1)
	sent := time.Now()
	next := b.receive(t)[0]
	if waited := time.Since(sent); waited < 3*time.Second || next.MessageId == old.MessageId {
		t.Errorf("message %s after %s, want another than %s after 4s", next.MessageId, waited, old.MessageId)
	}
	b.pass(5 * time.Second)
	// The old one was not deleted, and comes first: it may carry the row as
	// well, but only until either makes the attempt.
	if left := b.crash(t, b.Worker, old); len(left) != 1 {
		t.Errorf("left %+v, want the old message to carry the next retry", left)
	}
	if got := b.row(t, row, webhook.DeliveryPending, 2); got.MessageID == first.MessageID {
		t.Errorf("carrier %s after both attempts", got.MessageID)
	}
	for range 2 {
		if left := b.crash(t, b.Worker, next); len(left) != 1 {
			t.Errorf("left %+v, want the other message to wait for its turn to take over", left)
		}
		b.pass(50 * time.Second)
	}
	if left := b.handle(t, w, old); len(left) > 0 {
		t.Errorf("left %+v, want another message in its place", left)
	}
	b.row(t, row, webhook.DeliveryPending, 3)
	rcv.requests(t, 3)
	b.counters(t, e, 0, 3)
}

func TestFaultsOfOursKeepTheMessageAndUseUpNothing(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		call     string
		err      error
		attempts int // that the row knows of
		requests int
	}{
		{"Deliveries", errBusy, 0, 0},
		{"Deliveries", errWrong, 0, 0},
		{"Tally", errWrong, 0, 1},
		{"RecordOutcomes", errWrong, 0, 1},
		{"Hide", errBusy, 1, 1},
	} {
		failing := true
		rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
			if failing {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		e, _ := b.endpoint(t, rcv.url, 3)
		row := b.event(t, e)
		m := b.receive(t)
		if left := b.handle(t, b.failing(tt.call, always1000, tt.err, nil), m...); len(left) != 1 {
			t.Errorf("%s: %s: %d messages left, want the message kept", tt.call, tt.err, len(left))
		}
		b.row(t, row, webhook.DeliveryPending, tt.attempts)
		b.counters(t, e, 0, int64(tt.attempts))
		rcv.requests(t, tt.requests)
		failing = false
		if left := b.at(t, m[0], 5*time.Second); len(left) > 0 {
			t.Errorf("%s: messages left: %+v", tt.call, left)
		}
		b.row(t, row, webhook.DeliveryDelivered, tt.attempts+1)
	}
}

func TestFaultsOfOursHideTheMessageLongerEachTime(t *testing.T) {
	b := newBench(t)
	for receives, want := range map[string]time.Duration{
		"": 2 * time.Second, "1": 2 * time.Second, "2": 4 * time.Second, "8": 256 * time.Second, "9": 5 * time.Minute, "49": 5 * time.Minute,
	} {
		q := &hidden{Queue: b.deliveries}
		w := b.worker(&faulty{Store: b.table, fail: func(string) (error, error) { return errBusy, nil }}, q, true)
		ref := webhook.DeliveryRef{OrganizationID: b.org, DeliveryID: value.NewID(), EventID: value.NewID(), EndpointID: value.NewID(), ApplicationID: b.app}
		m := events.SQSMessage{MessageId: "m", ReceiptHandle: "r", Body: ref.Body(), Attributes: map[string]string{"ApproximateReceiveCount": receives}}
		b.crash(t, w, m)
		if len(q.hidings) != 1 || q.hidings[0] != (sqsqueue.VisibilityChange{Receipt: "r", For: want}) {
			t.Errorf("received %q times: hidden %+v, want %s", receives, q.hidings, want)
		}
	}
}

// hidden notes what is hidden.
type hidden struct {
	worker.Queue
	hidings []sqsqueue.VisibilityChange
}

func (h *hidden) ChangeVisibility(_ context.Context, _ webhook.Lane, hidings ...sqsqueue.VisibilityChange) error {
	h.hidings = append(h.hidings, hidings...)
	return nil
}

func TestBusyTableIsAskedAgainBeforeTheReceiverIs(t *testing.T) {
	b := newBench(t)
	for _, call := range []string{"Tally", "RecordOutcomes"} {
		for name, lost := range map[string]bool{"refused": false, "answer lost": true} {
			rcv := newReceiver(t, always(http.StatusInternalServerError))
			e, _ := b.endpoint(t, rcv.url, 3)
			row := b.event(t, e)
			w := b.failing(call, 3, errBusy, nil)
			if lost {
				w = b.failing(call, 3, nil, errBusy)
			}
			m := b.receive(t)
			if left := b.handle(t, w, m...); len(left) != 1 {
				t.Errorf("%s, %s: left %+v, want the message that carries the retry", call, name, left)
			}
			b.row(t, row, webhook.DeliveryPending, 1)
			b.counters(t, e, 0, 1)
			rcv.requests(t, 1)
			b.queues.Delete(t, mainQueue, m...)
		}
	}
}

func TestWhatCannotBeWrittenDoesNotStopItsNeighbours(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := b.endpoint(t, rcv.url, 3)
	good, bad := b.event(t, e), b.event(t, e)
	f := &refusing{Store: b.table, row: bad.ID}
	var messages []events.SQSMessage
	for len(messages) < 2 {
		messages = append(messages, b.receive(t)...)
	}
	if left := b.handle(t, b.worker(f, b.deliveries, true), messages...); len(left) != 1 {
		t.Errorf("left %+v, want the message whose outcome is not written", left)
	}
	b.row(t, good, webhook.DeliveryDelivered, 1)
	b.row(t, bad, webhook.DeliveryPending, 0)
	b.counters(t, e, 1, 0)
}

// refusing is a table that takes no outcome of a row.
type refusing struct {
	worker.Store
	row value.ID
}

func (r *refusing) RecordOutcomes(ctx context.Context, outcomes []webhook.DeliveryChange, tallies []webhook.CounterShardWrite) (*webhook.WriteConflict, error) {
	for _, o := range outcomes {
		if o.Next.ID == r.row {
			return nil, errWrong
		}
	}
	return r.Store.RecordOutcomes(ctx, outcomes, tallies)
}

func TestFailedMoveKeepsTheMessage(t *testing.T) {
	b := newBench(t)
	rcv := newReceiver(t, always(http.StatusInternalServerError))
	e, _ := b.endpoint(t, rcv.url, 3)
	b.setLane(t, e, webhook.LaneSlow)
	row := b.event(t, e)
	if left := b.handle(t, b.failing("Move", 1, errBusy, nil), b.receive(t)...); len(left) != 1 {
		t.Errorf("left %+v, want the message kept", left)
	}
	b.row(t, row, webhook.DeliveryPending, 0)
	b.setLane(t, e, webhook.LaneMain)
	next := b.event(t, e)
	f := &faulty{Store: b.table, Queue: crowded{b.deliveries}, fail: func(call string) (error, error) {
		if call == "Move" {
			return errBusy, nil
		}
		return nil, nil
	}}
	if left := b.handle(t, b.worker(f, f, true), b.receive(t)...); len(left) != 1 {
		t.Errorf("left %+v, want the message to carry its retry itself", left)
	}
	b.row(t, next, webhook.DeliveryPending, 1)
}
