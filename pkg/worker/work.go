package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// read fetches what the attempts need, for all messages together, and takes
// the slots of their endpoints beside it.
func (w *Worker) read(ctx context.Context, tasks []*task) {
	var readable []*task
	var group sync.WaitGroup
	seen := map[value.ID]bool{}
	for _, t := range tasks {
		if t.err != nil {
			continue
		}
		readable = append(readable, t)
		if t.lane == webhook.LaneMain && !seen[t.ref.EndpointID] {
			seen[t.ref.EndpointID] = true
			group.Go(func() { w.hold(ctx, t.ref) })
		}
	}
	if len(readable) > 0 {
		w.fetch(ctx, readable)
	}
	group.Wait()
}

// hold takes the slot of an endpoint. Without one its messages are moved to
// the other lane.
func (w *Worker) hold(ctx context.Context, ref webhook.DeliveryRef) {
	if err := w.slots.hold(ctx, ref.OrganizationID, ref.EndpointID, slotLow); err != nil {
		w.cfg.Logger.WarnContext(ctx, "no slot of the endpoint", "endpointId", ref.EndpointID, "error", err)
	}
}

// fetch reads the deliveries of tasks. One whose items cannot be read does
// not stop the others.
func (w *Worker) fetch(ctx context.Context, tasks []*task) {
	refs := make([]webhook.DeliveryRef, len(tasks))
	for i, t := range tasks {
		refs[i] = t.ref
	}
	deliveries, err := w.deliveries(ctx, refs)
	for i, t := range tasks {
		switch {
		case err == nil:
			t.delivery = deliveries[i]
		case fault.Is(err, fault.Unavailable) || len(tasks) == 1:
			t.err = err
		default:
			w.fetch(ctx, []*task{t})
		}
	}
}

// deliveries reads, and turns a panic over what was read into an error.
func (w *Worker) deliveries(ctx context.Context, refs []webhook.DeliveryRef) (found []webhook.DeliveryInput, err error) {
	err = recovered(func() (err error) {
		found, err = w.store.DeliveryInputs(ctx, refs)
		return err
	})
	return found, err
}

// work brings tasks to their ends.
func (w *Worker) work(ctx context.Context, tasks []*task) {
	moves := newGather(len(tasks), func(ready []*task) { guard(ready, func() { w.move(ctx, ready) }) })
	outcomes := newGather(len(tasks), func(ready []*task) { guard(ready, func() { w.record(ctx, ready) }) })
	var group sync.WaitGroup
	for _, t := range tasks {
		group.Go(func() { w.process(ctx, t, moves, outcomes) })
	}
	group.Wait()
	moves.wait()
	outcomes.wait()
}

// process brings one task to its end, or as far as the batch goes on
// together.
func (w *Worker) process(ctx context.Context, t *task, moves, outcomes *gather) {
	step, leave := ended, func() {}
	guard([]*task{t}, func() { step, leave = w.prepare(ctx, t) })
	moves.come(t, step == moved)
	if step == attempted {
		guard([]*task{t}, func() { w.attempt(ctx, t) })
		leave()
	}
	outcomes.come(t, step == attempted && t.err == nil)
}

// step is what comes next for a task.
type step uint8

const (
	ended     step = iota // nothing
	moved                 // the message goes to the slow lane
	attempted             // an attempt
)

// prepare brings to its end what needs no attempt. An attempt must be left
// when it has ended.
func (w *Worker) prepare(ctx context.Context, t *task) (next step, leave func()) {
	row, endpoint, now := t.delivery.Delivery, t.delivery.Endpoint, w.now()
	if turn, early := turnOf(row, t, now); turn == wake {
		t.err = w.hide(ctx, t, early)
		return ended, nil
	}
	if endpoint == nil || t.delivery.Application == webhook.ApplicationAbsent {
		t.err = w.settle(ctx, t, row.Cancel(now))
		return ended, nil
	}
	if t.lane == webhook.LaneMain && endpoint.Lane == webhook.LaneSlow {
		return moved, nil // whatever comes next, the other lane waits for it
	}
	if hold := heldFor(row, endpoint, t.delivery.Application); hold != "" {
		t.err = w.settle(ctx, t, row.Hold(hold, now))
		return ended, nil
	}
	if t.delivery.Payload == nil {
		t.err = fmt.Errorf("event %s has a row and no payload", row.EventID)
		return ended, nil
	}
	if t.lane == webhook.LaneSlow {
		return attempted, func() {}
	}
	if leave, err := w.slots.enter(ctx, endpoint.OrganizationID, endpoint.ID); leave != nil && err == nil {
		return attempted, leave
	}
	return moved, nil
}

// heldFor tells why the row must wait; "" when it need not. A test waits for
// nothing, and a probe not for the circuit.
func heldFor(row *webhook.Delivery, e *webhook.Endpoint, application webhook.ApplicationState) webhook.HeldReason {
	hold := e.Hold(application)
	if row.Test || row.Probe && hold == webhook.HeldCircuitOpen {
		return ""
	}
	return hold
}

// settle ends a row without an attempt. When the row has changed meanwhile
// the message comes again and goes by what it is then.
func (w *Worker) settle(ctx context.Context, t *task, next *webhook.Delivery) error {
	_, err := w.store.PutDelivery(ctx, t.delivery.Delivery, next)
	switch {
	case errors.Is(err, fault.ErrChanged):
		return w.hide(ctx, t, tolerance)
	case err == nil:
		t.delivery.Delivery = next
	}
	return err
}

// reconsider looks again at the rows of messages that would be done because
// the rows are HELD, [webhook.Delivery.MayMissRecovery]. One that nothing holds any more
// goes on: its message comes again.
func (w *Worker) reconsider(ctx context.Context, tasks []*task) {
	var held []*task
	for _, t := range tasks {
		if row := t.delivery.Delivery; t.twin == nil && t.err == nil && row != nil && row.MayMissRecovery(w.now()) {
			held = append(held, t)
		}
	}
	if len(held) == 0 {
		return
	}
	w.fetch(ctx, held)
	for _, t := range held {
		if t.err == nil {
			guard([]*task{t}, func() { t.err = w.resume(ctx, t) })
		}
	}
}

func (w *Worker) resume(ctx context.Context, t *task) error {
	row := t.delivery.Delivery
	if row == nil {
		return nil
	}
	resumed := row.RecheckHold(t.delivery.Endpoint, t.delivery.Application, w.now())
	if resumed == nil {
		return nil
	}
	_, err := w.store.PutDelivery(ctx, row, resumed)
	switch {
	case errors.Is(err, fault.ErrChanged):
		return nil // whoever was faster has sent it
	case err != nil:
		return err
	}
	return w.hide(ctx, t, tolerance)
}

func (w *Worker) hide(ctx context.Context, t *task, d time.Duration) error {
	if err := w.queue.ChangeVisibility(ctx, t.lane, sqsqueue.VisibilityChange{Receipt: t.message.ReceiptHandle, For: d}); err != nil {
		return err
	}
	return errLater
}

// move sends messages to the slow lane in the place of these, which are done.
// What the row knows them by, if anything, it knows the new ones by.
func (w *Worker) move(ctx context.Context, tasks []*task) {
	moves := make([]sqsqueue.Move, len(tasks))
	for i, t := range tasks {
		moves[i] = sqsqueue.Move{Ref: t.ref, MessageID: t.delivery.Delivery.MessageID}
	}
	err := w.queue.Move(ctx, webhook.LaneSlow, moves...)
	for _, t := range tasks {
		t.err = err
	}
}

const (
	// finishTime bounds what is done at the end where no deadline does.
	finishTime = 20 * time.Second
	// answerTime is what is left of the function's time then, for its answer:
	// without one the whole batch comes again.
	answerTime = time.Second
)

// finishing is the context of what must be done although a batch is being
// called off: what a receiver was asked for is recorded. A context's deadline
// is of the system's clock.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := time.Now().Add(finishTime)
	if deadline, limited := ctx.Deadline(); limited && deadline.Add(-answerTime).Before(limit) {
		limit = deadline.Add(-answerTime)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), limit)
}
