package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/commerce-integration/service/pkg/base/deadline"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/arntarget"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// ShutdownMargin is the part of the function's time that an attempt must leave, for
// its outcome to be written.
const ShutdownMargin = 3 * time.Second

const (
	// maxBusyReturns is how often a message may come before its delivery, whose
	// endpoint has as many attempts under way as it may have, waits as a due one.
	maxBusyReturns = 5
	busyWait       = time.Minute
	// recordPause is the first pause before an outcome is written again, which
	// doubles up to recordPauseMost. An attempt that is not recorded is made again,
	// so the table is asked as long as there is time.
	recordPause     = 50 * time.Millisecond
	recordPauseMost = 2 * time.Second
)

// attempt asks the receiver once, records the outcome and decides what becomes of
// the message. It makes no attempt while the endpoint has as many under way as it
// may have.
func (w *Worker) attempt(ctx context.Context, m *message) disposition {
	endpoint := m.input.Endpoint
	timeout := timeoutOf(endpoint)
	if deadline.Left(ctx) < timeout+ShutdownMargin {
		m.fail(errors.New("too little time is left for an attempt"))
		return m.disposition
	}
	var held *permit
	if m.from.lane == webhook.LaneMain {
		permit, err := w.permits.start(ctx, endpoint, m.alone)
		if err != nil {
			w.cfg.Logger.WarnContext(ctx, "no permit for the endpoint", "endpointId", endpoint.ID, "error", err)
		}
		if permit == nil {
			return w.busy(ctx, m)
		}
		held = permit
		defer permit.end()
	}
	if !w.claim(ctx, m) {
		return m.disposition
	}
	start := w.cfg.Clock()
	if m.carriedUntil != 0 && value.TimeOf(start) >= m.carriedUntil {
		return disposition{action: retryLater, wait: clockSkew} // it comes again, and is read
	}
	sent, answer, err := w.send(ctx, &m.input, start, timeout)
	if err == nil && answer.Kind == outbound.Ours {
		err = fmt.Errorf("attempt: %s: %w", answer.Reason, answer.Err)
	}
	if err != nil {
		m.fail(err)
		return m.disposition
	}
	if held != nil {
		held.note(answer.Took)
	}
	outcome, level := outcomeOf(sent, &answer, value.TimeOf(start)), slog.LevelInfo
	if outcome.Result == webhook.AttemptSucceeded && answer.Took <= webhook.SlowAttempt {
		level = slog.LevelDebug // the history says the same
	}
	w.cfg.Logger.Log(ctx, level, "attempt", "deliveryId", m.ref.DeliveryID, "endpointId", endpoint.ID, "type", m.input.Delivery.Type,
		"attempt", m.input.Delivery.AttemptCount+1, "status", answer.Status, "reason", answer.Reason, "took", answer.Took,
		"at", outcome.Attempt.At)
	return w.record(ctx, m, outcome, answer.Status == http.StatusGone)
}

func timeoutOf(e *webhook.Endpoint) time.Duration {
	return time.Duration(e.TimeoutSeconds) * time.Second
}

// busy lets a message wait for its endpoint: in its queue at first, and then, or when
// too many wait there, as a due delivery, so that one endpoint does not fill the lane.
func (w *Worker) busy(ctx context.Context, m *message) disposition {
	if receives := queue.Receives(m.sqs); receives < maxBusyReturns && !w.queue.TooManyInFlight(ctx, m.from.lane) {
		return disposition{action: retryLater, wait: queue.BackOff(receives)}
	}
	now := w.now()
	w.end(ctx, m, m.input.Delivery.Postpone(now.Add(busyWait), now))
	return m.disposition
}

// claim makes an attempt the message's own when another message may make it at
// the same time: the sweeper sends a second one for a delivery that is late. It
// reports whether the message may go on. Should it not come to the attempt's
// record, the other message takes over, see lostMessageTimeout, or the due mark brings one.
func (w *Worker) claim(ctx context.Context, m *message) bool {
	d, now := m.input.Delivery, w.now()
	if d.DueAt == nil || now < d.NextAttemptAt.Add(webhook.ResendAfter) {
		return true
	}
	return w.put(ctx, m, d.Claim(m.from.nameAfter(d.AttemptCount), now))
}

// record writes the outcome of an attempt, once, and decides what becomes of the
// message. A change that another writer made without an attempt, such as a hold,
// does not undo the outcome; another attempt that has taken the number does.
func (w *Worker) record(ctx context.Context, m *message, o webhook.Outcome, gone bool) disposition {
	ctx, cancel := deadline.Finish(ctx, answerMargin, finishTime)
	defer cancel()
	gone = gone && !m.input.Delivery.Test && w.disableGone(ctx, m.input.Endpoint)
	d, random := m.input.Delivery, w.cfg.Random()
	for delay := recordPause; ; delay = min(2*delay, recordPauseMost) {
		next := m.after(d, o, gone, random, w.now())
		current, err := w.store.PutDelivery(ctx, d, next)
		switch {
		case err == nil:
			return w.next(ctx, m, next)
		case errors.Is(err, fault.ErrChanged) && (current == nil || current.AttemptCount != d.AttemptCount):
			if current != nil && current.Attempts[len(current.Attempts)-1].At != o.Attempt.At {
				w.cfg.Logger.InfoContext(ctx, "another attempt was recorded", "messageId", m.sqs.MessageId, "deliveryId", d.ID)
			}
			return w.next(ctx, m, current)
		case errors.Is(err, fault.ErrChanged):
			d, err = current, nil
		case fault.Is(err, fault.Unavailable):
			err = nil
		}
		if err == nil {
			err = pause.For(ctx, delay)
		}
		if err != nil {
			m.fail(fmt.Errorf("write the outcome of delivery %s: %w", d.ID, err))
			return m.disposition
		}
	}
}

// after is the delivery d after the attempt of the message.
func (m *message) after(d *webhook.Delivery, o webhook.Outcome, gone bool, random float64, now value.Time) *webhook.Delivery {
	e := m.input.Endpoint
	next := d.Record(o, m.from.nameAfter(d.AttemptCount+1), e.RetryCount, random, now)
	switch {
	case !next.Pending():
	case gone:
		next = next.Hold(webhook.HeldDisabled, now)
	case m.input.Delivery.Probe && e.Circuit.Open():
		next = next.Hold(webhook.HeldCircuitOpen, now)
	}
	next.Unsettled = e.Unsettled()
	return next
}

// next decides what becomes of a message after an attempt, by the delivery as it
// is then.
func (w *Worker) next(ctx context.Context, m *message, d *webhook.Delivery) disposition {
	m.input.Delivery = d
	tooMany := d != nil && m.from.namedBy(d) && w.queue.TooManyInFlight(ctx, m.from.lane)
	return decideNext(m.from, d, m.input.Endpoint.Lane, tooMany, w.now())
}

// send asks the receiver of a delivery once, by HTTP or through the target
// of an ARN, with a signature of the time start. An error is our fault.
func (w *Worker) send(
	ctx context.Context, in *webhook.DeliveryInput, start time.Time, timeout time.Duration,
) (sent webhook.Exchange, answer outbound.Outcome, err error) {
	endpoint, d := in.Endpoint, in.Delivery
	sent.URL = endpoint.URL
	body, err := d.Body(in.Payload)
	if err != nil {
		return sent, answer, err
	}
	arn, isARN := webhook.ParseARN(endpoint.URL)
	isARN = isARN && w.cfg.ARNs != nil
	if isARN {
		if body, err = arn.Body(body); err != nil {
			return sent, answer, err
		}
	}
	header, err := w.header(endpoint, d.EventID, start, body)
	if err != nil {
		return sent, answer, err
	}
	if !arn.Bus {
		sent.Signature = header.Get(webhook.HeaderSignature)
	}
	if isARN {
		return sent, w.cfg.ARNs.Send(ctx, endpoint.OrganizationID, arn, arntarget.Event{Type: d.Type, Header: header, Body: body}, timeout), nil
	}
	for _, h := range endpoint.Delivery.Headers {
		sent.OwnHeaders = append(sent.OwnHeaders, h.Name)
	}
	return sent, w.client.Post(ctx, endpoint.URL, header, body, timeout), nil
}

// outcomeOf turns an answer, or its absence, into the delivery's terms.
func outcomeOf(x webhook.Exchange, answer *outbound.Outcome, at value.Time) webhook.Outcome {
	o, reason := webhook.Outcome{Result: webhook.AttemptFailed}, answer.Reason
	switch answer.Kind {
	case outbound.Answered:
		x.Status, x.Header, x.Body = answer.Status, answer.Header, answer.Body
		if x.Success() {
			o.Result = webhook.AttemptSucceeded
			break
		}
		reason = cmp.Or(answer.Reason, answerReason(answer.Status))
		if answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusServiceUnavailable {
			o.RetryAfter = answer.RetryAfter
		}
	case outbound.Forbidden:
		o.Result = webhook.AttemptRefused
	}
	o.Attempt = x.Keep(at, answer.Took)
	if o.Result != webhook.AttemptSucceeded {
		o.Attempt.Error = &reason
	}
	return o
}

func answerReason(status int) string {
	reason := "answered " + strconv.Itoa(status)
	if text := http.StatusText(status); text != "" {
		reason += " " + text
	}
	if status >= 300 && status <= 399 {
		reason += "; redirects are not followed"
	}
	return reason
}

// disableGone disables an endpoint that answered 410 and reports whether it
// is DISABLED then. An endpoint whose url has changed meanwhile did not give
// that answer. Should the disabling fail, the next 410 tries again.
func (w *Worker) disableGone(ctx context.Context, asked *webhook.Endpoint) bool {
	e, err := w.store.ChangeEndpoint(ctx, asked.OrganizationID, asked.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		if e.URL != asked.URL || e.Status != webhook.Active {
			return e, nil
		}
		return e.Disable(answerReason(http.StatusGone), w.now()), nil
	})
	if err != nil {
		w.cfg.Logger.ErrorContext(ctx, "endpoint that is gone was not disabled", "endpointId", asked.ID, "error", err)
	}
	return err == nil && e != nil && e.Status == webhook.Disabled
}

// header is the header of an attempt at the given time: the endpoint's own
// headers and, signed with every secret of the endpoint that is valid then, the
// service's.
func (w *Worker) header(e *webhook.Endpoint, event value.ID, at time.Time, body []byte) (http.Header, error) {
	var keys [][]byte
	for _, secret := range e.Secrets(value.TimeOf(at)) {
		text, err := w.secrets.Open(secret.Sealed, webhook.SecretPurpose(e.ID))
		if err != nil {
			return nil, fmt.Errorf("secret of endpoint %s: %w", e.ID, err)
		}
		key, err := webhook.SecretKey(string(text))
		if err != nil {
			return nil, fmt.Errorf("secret of endpoint %s: %w", e.ID, err)
		}
		keys = append(keys, key)
	}
	header := webhook.Headers(event, at, body, keys...)
	for _, h := range e.Delivery.Headers {
		text, err := w.secrets.Open(h.Sealed, webhook.HeaderPurpose(e.ID, h.Name))
		if err != nil {
			return nil, fmt.Errorf("header %s of endpoint %s: %w", h.Name, e.ID, err)
		}
		header[h.Name] = []string{string(text)}
	}
	return header, nil
}
