package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/deadline"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// finishTime bounds the work that must be done although a batch is being
	// called off: every attempt that was made is recorded.
	finishTime = 20 * time.Second
	// answerMargin is the rest of the function's time, for its answer:
	// without one the whole batch comes again.
	answerMargin = time.Second
)

// message is one queue message on its way through the worker. One goroutine
// at a time works on it.
type message struct {
	sqs         *events.SQSMessage
	from        origin
	ref         webhook.DeliveryRef
	input       webhook.DeliveryInput
	disposition disposition
	twin        *message // the same message received twice: its disposition is this one's
	attempt     *attempt // nil: none was made
	alone       bool     // in its batch
}

func (m *message) fail(err error) {
	m.disposition = disposition{action: failed, wait: queue.BackOff(queue.Receives(m.sqs)), err: err}
}

func (m *message) is(a action) bool { return m.disposition.action == a }

// Handle makes the attempts of a batch of messages. The response names the
// messages that stay in the queue: those that wait for a retry, and those
// that could not be worked on, which wait longer each time.
func (w *Worker) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	messages := w.parse(batch)
	w.read(ctx, messages)
	w.decideAll(messages)
	w.process(ctx, messages)
	w.recheckHolds(ctx, messages)
	w.backOff(ctx, messages)
	return w.report(ctx, messages), nil
}

func (w *Worker) parse(batch events.SQSEvent) []*message {
	messages := make([]*message, len(batch.Records))
	for i := range batch.Records {
		m := &message{sqs: &batch.Records[i], alone: len(batch.Records) == 1}
		var err error
		if m.ref, err = webhook.ParseDeliveryRef(m.sqs.Body); err != nil {
			m.fail(err)
		}
		m.from = origin{lane: w.queue.Lane(m.sqs), messageID: m.sqs.MessageId, replaces: m.ref.As}
		messages[i] = m
	}
	return messages
}

// read fetches what the attempts need, for all messages together, and leases
// the permits of their endpoints meanwhile. A message that came alone rarely
// needs one.
func (w *Worker) read(ctx context.Context, messages []*message) {
	readable := slices.DeleteFunc(slices.Clone(messages), func(m *message) bool { return m.is(failed) })
	if len(readable) == 0 {
		return
	}
	var group sync.WaitGroup
	seen := map[value.ID]bool{}
	for _, m := range readable {
		if m.from.lane == webhook.LaneMain && !m.alone && !seen[m.ref.EndpointID] {
			seen[m.ref.EndpointID] = true
			group.Go(func() {
				// Without a permit the messages are moved to the other lane.
				if _, err := w.permits.renew(ctx, m.ref.OrganizationID, m.ref.EndpointID, leaseRenewBelow); err != nil {
					w.cfg.Logger.WarnContext(ctx, "no permit for the endpoint", "endpointId", m.ref.EndpointID, "error", err)
				}
			})
		}
	}
	w.fetch(ctx, readable)
	group.Wait()
}

// fetch reads the deliveries of messages. One whose items cannot be read does
// not stop the others.
func (w *Worker) fetch(ctx context.Context, messages []*message) {
	refs := make([]webhook.DeliveryRef, len(messages))
	for i, m := range messages {
		refs[i] = m.ref
	}
	var found []webhook.DeliveryInput
	err := recovered(func() (err error) {
		found, err = w.store.DeliveryInputs(ctx, refs)
		return err
	})
	for i, m := range messages {
		switch {
		case err == nil:
			m.input = found[i]
		case fault.Is(err, fault.Unavailable) || len(messages) == 1:
			m.fail(err)
		default:
			w.fetch(ctx, []*message{m})
		}
	}
}

// decideAll decides on each message, and chooses one message for each
// delivery, the one that may act first. A further message of a delivery is
// acknowledged, since the chosen one stays, is replaced or ends the delivery.
func (w *Worker) decideAll(messages []*message) {
	now := w.now()
	chosen := map[value.ID]*message{}
	for _, m := range messages {
		if m.is(failed) {
			continue
		}
		if m.disposition = decide(m.from, m.input, now); m.is(failed) {
			m.fail(m.disposition.err)
		}
		first := chosen[m.ref.DeliveryID]
		if !m.is(acknowledge) && (first == nil || m.disposition.wait < first.disposition.wait) {
			chosen[m.ref.DeliveryID] = m
		}
	}
	for _, m := range messages {
		first := chosen[m.ref.DeliveryID]
		if m.is(acknowledge) || m.is(failed) || first == m {
			continue
		}
		m.disposition = disposition{}
		if first.sqs.MessageId == m.sqs.MessageId {
			m.twin = first
		}
	}
}

// process carries out the dispositions of messages at the same time, and
// settles together those that are ready at about the same time.
func (w *Worker) process(ctx context.Context, messages []*message) {
	open := slices.DeleteFunc(slices.Clone(messages), func(m *message) bool { return m.is(acknowledge) || m.is(failed) })
	ready := make(chan *message, len(open))
	for _, m := range open {
		go func() {
			guard([]*message{m}, func() { w.perform(ctx, m) })
			ready <- m
		}()
	}
	var settling sync.WaitGroup
	for batch := range batches(ready, len(open)) {
		settling.Go(func() { guard(batch, func() { w.settle(ctx, batch) }) })
	}
	settling.Wait()
}

// perform makes the attempt of a message, or ends its delivery without one.
func (w *Worker) perform(ctx context.Context, m *message) {
	d, now := m.input.Delivery, w.now()
	switch m.disposition.action {
	case attemptNow:
		if w.claim(ctx, m) {
			w.makeAttempt(ctx, m)
		}
	case cancelDelivery:
		w.end(ctx, m, d.Cancel(now))
	case holdDelivery:
		w.end(ctx, m, d.Hold(m.disposition.reason, now))
	}
}

// put writes the delivery of a message as it is next, and reports whether it did.
// When another writer was faster the message comes again and goes by what the
// delivery is then.
func (w *Worker) put(ctx context.Context, m *message, next *webhook.Delivery) bool {
	_, err := w.store.PutDelivery(ctx, m.input.Delivery, next)
	switch {
	case errors.Is(err, fault.ErrChanged):
		m.disposition = disposition{action: retryLater, wait: clockSkew}
	case err != nil:
		m.fail(err)
	default:
		m.input.Delivery = next
	}
	return err == nil
}

// end writes a delivery that gets no attempt.
func (w *Worker) end(ctx context.Context, m *message, next *webhook.Delivery) {
	if w.put(ctx, m, next) {
		m.disposition = disposition{}
	}
}

// settle records the outcomes of attempts, updates the routing of their
// endpoints, which may make a delivery the next probe, and decides what becomes
// of their messages.
func (w *Worker) settle(ctx context.Context, messages []*message) {
	ctx, cancel := deadline.Finish(ctx, answerMargin, finishTime)
	defer cancel()
	attempted := slices.DeleteFunc(slices.Clone(messages), func(m *message) bool { return m.attempt == nil })
	w.record(ctx, attempted)
	w.updateRoutings(ctx, attempted)
	now := w.now()
	for _, m := range attempted {
		if d := m.attempt.delivery; !m.is(failed) {
			tooMany := d != nil && m.from.namedBy(d) && w.queue.TooManyInFlight(ctx, m.from.lane)
			m.disposition = decideNext(m.from, d, m.input.Endpoint.Lane, tooMany, now)
		}
	}
	w.apply(ctx, messages)
}

// apply replaces messages, and changes the visibility of those that stay,
// with one call for each queue.
func (w *Worker) apply(ctx context.Context, messages []*message) {
	for lane, some := range group(messages, replace, func(m *message) webhook.Lane { return m.disposition.lane }) {
		w.replace(ctx, lane, some)
	}
	w.changeVisibility(ctx, messages, retryLater)
}

// replace sends messages to the lane in the place of these. A retry whose
// message cannot be replaced waits in its own queue.
func (w *Worker) replace(ctx context.Context, to webhook.Lane, messages []*message) {
	moves := make([]queue.Move, len(messages))
	for i, m := range messages {
		moves[i] = queue.Move{Ref: m.ref, MessageID: m.disposition.as, Delay: m.disposition.wait}
	}
	err := w.queue.Move(ctx, to, moves...)
	if err != nil {
		w.cfg.Logger.WarnContext(ctx, "messages were not replaced", "messages", len(messages), "error", err)
	}
	for _, m := range messages {
		switch {
		case err == nil:
			m.disposition = disposition{}
		case m.attempt != nil:
			m.disposition = disposition{action: retryLater, wait: m.disposition.wait}
		default:
			m.fail(err)
		}
	}
}

// changeVisibility keeps the messages with the action from their readers for
// their wait. Without it they wait for the queue's own timeout.
func (w *Worker) changeVisibility(ctx context.Context, messages []*message, with action) {
	for lane, some := range group(messages, with, func(m *message) webhook.Lane { return m.from.lane }) {
		changes := make([]queue.VisibilityChange, len(some))
		for i, m := range some {
			changes[i] = queue.VisibilityChange{Receipt: m.sqs.ReceiptHandle, For: m.disposition.wait}
		}
		if err := w.queue.ChangeVisibility(ctx, lane, changes...); err != nil {
			w.cfg.Logger.WarnContext(ctx, "messages wait for the queue's own timeout", "messages", len(some), "error", err)
		}
	}
}

// group returns the messages with the action by lane.
func group(messages []*message, with action, lane func(*message) webhook.Lane) map[webhook.Lane][]*message {
	groups := map[webhook.Lane][]*message{}
	for _, m := range messages {
		if m.is(with) {
			groups[lane(m)] = append(groups[lane(m)], m)
		}
	}
	return groups
}

// recheckHolds looks again at deliveries that are HELD and whose messages
// would be acknowledged for that reason, see [webhook.Delivery.MayMissRecovery].
// The message of one that is resumed comes again.
func (w *Worker) recheckHolds(ctx context.Context, messages []*message) {
	var held []*message
	for _, m := range messages {
		if d := m.input.Delivery; m.twin == nil && m.is(acknowledge) && d != nil && d.MayMissRecovery(w.now()) {
			held = append(held, m)
		}
	}
	if len(held) == 0 {
		return
	}
	w.fetch(ctx, held)
	for _, m := range held {
		if m.is(acknowledge) {
			guard([]*message{m}, func() { w.recheckHold(ctx, m) })
		}
	}
	w.changeVisibility(ctx, held, retryLater)
}

func (w *Worker) recheckHold(ctx context.Context, m *message) {
	d := m.input.Delivery
	if d == nil {
		return
	}
	resumed := d.RecheckHold(m.input.Endpoint, m.input.Application, w.now())
	if resumed == nil {
		return
	}
	if w.put(ctx, m, resumed) {
		m.disposition = disposition{action: retryLater, wait: clockSkew}
	}
}

// backOff keeps the messages that could not be worked on invisible, longer
// each time.
func (w *Worker) backOff(ctx context.Context, messages []*message) {
	ctx, cancel := deadline.Finish(ctx, answerMargin, finishTime)
	defer cancel()
	w.changeVisibility(ctx, messages, failed)
}

func (w *Worker) report(ctx context.Context, messages []*message) events.SQSEventResponse {
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, m := range messages {
		end := m.disposition
		if m.twin != nil {
			end = m.twin.disposition
		}
		if end.action == acknowledge {
			continue
		}
		if m.is(failed) {
			w.cfg.Logger.ErrorContext(ctx, "delivery could not be worked on", "messageId", m.sqs.MessageId,
				"deliveryId", m.ref.DeliveryID, "receives", queue.Receives(m.sqs), "error", end.err)
		}
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.sqs.MessageId})
	}
	return response
}

// guard does something for messages; a panic in it leaves them to the queue
// and the other messages alone.
func guard(messages []*message, do func()) {
	if err := recovered(func() error { do(); return nil }); err != nil {
		for _, m := range messages {
			m.fail(err)
		}
	}
}

// recovered turns a panic into an error.
func recovered(do func() error) (err error) {
	defer fault.Recovered(&err)
	return do()
}
