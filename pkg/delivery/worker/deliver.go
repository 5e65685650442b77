package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/deadline"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
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
	alone       bool // in its batch
	// unstored is the delivery that the message carries; nil for none.
	unstored *webhook.Delivery
	// carriedUntil is when the input, which the message carried, is no longer good; 0
	// when it was read.
	carriedUntil value.Time
}

func (m *message) fail(err error) {
	m.disposition = disposition{action: failed, wait: queue.BackOff(queue.Receives(m.sqs)), err: err}
}

func (m *message) is(a action) bool { return m.disposition.action == a }

// Handle delivers a batch of messages, all at the same time; several of the same
// delivery one after the other. The response names the messages that stay in the
// queue: those that wait for a retry, and those that could not be worked on, which
// wait longer each time.
func (w *Worker) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	messages := w.parse(batch)
	w.read(ctx, slices.DeleteFunc(slices.Clone(messages), func(m *message) bool {
		return m.is(failed) || m.input.Delivery != nil
	}))
	same := map[value.ID][]*message{}
	for _, m := range messages {
		same[m.ref.DeliveryID] = append(same[m.ref.DeliveryID], m)
	}
	parallel.Each(len(messages), maps.All(same), func(_ value.ID, ofDelivery []*message) {
		for i, m := range ofDelivery {
			if i > 0 && !m.is(failed) { // what was read is before the other's attempt
				w.read(ctx, ofDelivery[i:i+1])
			}
			w.deliver(ctx, m)
		}
	})
	return w.report(ctx, messages), nil
}

// parse reads messages, and takes over what they carry for their first attempt.
func (w *Worker) parse(batch events.SQSEvent) []*message {
	messages := make([]*message, len(batch.Records))
	now := w.now()
	for i := range batch.Records {
		m := &message{sqs: &batch.Records[i], alone: len(batch.Records) == 1}
		body, err := webhook.ParseDeliveryMessage(m.sqs.Body)
		if err != nil {
			m.fail(err)
		}
		m.ref = body.DeliveryRef
		m.from = origin{lane: w.queue.Lane(m.sqs), messageID: m.sqs.MessageId, replaces: m.ref.As}
		if m.unstored = body.Unstored(); queue.Receives(m.sqs) == 1 {
			m.input, m.carriedUntil = body.Input(now)
		}
		messages[i] = m
	}
	return messages
}

// read reads what the attempts of messages need, in one call. A delivery that is not
// stored is as its message carries it, unless an erasure has taken its payload. A
// message whose items cannot be read does not stop the others.
func (w *Worker) read(ctx context.Context, messages []*message) {
	if len(messages) == 0 {
		return
	}
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
			m.input, m.carriedUntil = found[i], 0
			if m.input.Delivery == nil && m.input.Payload != nil {
				m.input.Delivery = m.unstored
			}
		case fault.Is(err, fault.Unavailable) || len(messages) == 1:
			m.fail(err)
		default:
			w.read(ctx, []*message{m})
		}
	}
}

// deliver works on a message and then settles it. A panic in either leaves the message
// to the queue.
func (w *Worker) deliver(ctx context.Context, m *message) {
	for _, step := range []func(context.Context, *message){w.work, w.settle} {
		if err := recovered(func() error { step(ctx, m); return nil }); err != nil {
			m.fail(err)
		}
	}
}

// work decides on a message, and asks the receiver or ends the delivery.
func (w *Worker) work(ctx context.Context, m *message) {
	if !m.is(failed) {
		m.disposition = decide(m.from, m.input, w.now())
	}
	switch d := m.input.Delivery; m.disposition.action {
	case attemptNow:
		m.disposition = w.attempt(ctx, m)
	case cancelDelivery:
		w.end(ctx, m, d.Cancel(w.now()))
	case holdDelivery:
		w.end(ctx, m, d.Hold(m.disposition.reason, w.now()))
	case failed:
		m.fail(m.disposition.err)
	}
	if d := m.input.Delivery; m.is(acknowledge) && d != nil && d.MayMissRecovery(w.now()) {
		w.recheckHold(ctx, m)
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

// recheckHold looks again at a delivery that is HELD and whose message would be
// acknowledged for that reason, see [webhook.Delivery.MayMissRecovery]. The
// message of one that is resumed comes again.
func (w *Worker) recheckHold(ctx context.Context, m *message) {
	w.read(ctx, []*message{m})
	if m.is(failed) || m.input.Delivery == nil {
		return
	}
	resumed := m.input.Delivery.RecheckHold(m.input.Endpoint, m.input.Application, w.now())
	if resumed != nil && w.put(ctx, m, resumed) {
		m.disposition = disposition{action: retryLater, wait: clockSkew}
	}
}

// settle replaces a message, or keeps it from the queue's readers for its wait.
// One that cannot be replaced is kept, and one that cannot be kept waits for the
// queue's own timeout.
func (w *Worker) settle(ctx context.Context, m *message) {
	ctx, cancel := deadline.Finish(ctx, answerMargin, finishTime)
	defer cancel()
	d := m.input.Delivery
	if d != nil && !d.Stored() && (m.is(retryLater) || m.is(replace)) {
		w.put(ctx, m, d.StoredAt(w.now()))
	}
	if m.unstored != nil && m.is(retryLater) && d != nil {
		// A payload does not wait in the queue: see the erasure of a customer.
		m.disposition.action, m.disposition.lane = replace, m.from.lane
		if m.from.namedBy(d) {
			m.disposition.as = d.MessageID
		}
	}
	if d := m.disposition; d.action == replace {
		err := w.queue.Move(ctx, d.lane, queue.Move{Ref: m.ref, MessageID: d.as, Delay: d.wait})
		if m.disposition = (disposition{}); err != nil {
			m.fail(err)
			m.disposition.wait = max(m.disposition.wait, d.wait)
		}
	}
	if !m.is(retryLater) && !m.is(failed) {
		return
	}
	change := queue.VisibilityChange{Receipt: m.sqs.ReceiptHandle, For: m.disposition.wait}
	if err := w.queue.ChangeVisibility(ctx, m.from.lane, change); err != nil {
		w.cfg.Logger.WarnContext(ctx, "a message waits for the queue's own timeout", "messageId", m.sqs.MessageId, "error", err)
	}
}

func (w *Worker) report(ctx context.Context, messages []*message) events.SQSEventResponse {
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, m := range messages {
		if m.is(acknowledge) {
			continue
		}
		if m.is(failed) {
			w.cfg.Logger.ErrorContext(ctx, "delivery could not be worked on", "messageId", m.sqs.MessageId,
				"deliveryId", m.ref.DeliveryID, "receives", queue.Receives(m.sqs), "error", m.disposition.err)
		}
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.sqs.MessageId})
	}
	return response
}

// recovered turns a panic into an error.
func recovered(do func() error) (err error) {
	defer fault.Recovered(&err)
	return do()
}
