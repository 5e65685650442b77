package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/commerce-integration/service/pkg/base/deadline"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/arntarget"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/webhook"
)

// ShutdownMargin is the part of the function's time that an attempt must leave, for
// its outcome to be written.
const ShutdownMargin = 3 * time.Second

// attempt is a request that was made, and what became of its outcome.
type attempt struct {
	outcome  webhook.Outcome
	disabled bool // the endpoint is DISABLED by the answer
	random   float64

	recorded bool              // delivery is what the table holds
	counted  bool              // by this attempt, not by another one of the same number
	delivery *webhook.Delivery // after the attempt, or after the other one; nil: expired
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

// makeAttempt asks the receiver once. Without a permit for the endpoint the
// message is moved to the slow lane, where attempts need none.
func (w *Worker) makeAttempt(ctx context.Context, m *message) {
	endpoint, d := m.input.Endpoint, m.input.Delivery
	if m.from.lane == webhook.LaneMain {
		end, err := w.permits.start(ctx, endpoint.OrganizationID, endpoint.ID, m.alone)
		if err != nil || end == nil {
			m.disposition = moveToSlowLane(d)
			return
		}
		defer end()
	}
	timeout := time.Duration(endpoint.TimeoutSeconds) * time.Second
	if deadline.Left(ctx) < timeout+ShutdownMargin {
		m.fail(errors.New("too little time is left for an attempt"))
		return
	}
	start := w.cfg.Clock()
	answer, err := w.send(ctx, &m.input, start, timeout)
	if err != nil {
		m.fail(err)
		return
	}
	w.cfg.Logger.InfoContext(ctx, "attempt", "deliveryId", d.ID, "endpointId", d.EndpointID, "type", d.Type,
		"attempt", d.AttemptCount+1, "status", answer.Status, "reason", answer.Reason, "took", answer.Took)
	if answer.Kind == outbound.Ours {
		m.fail(fmt.Errorf("attempt: %s: %w", answer.Reason, answer.Err))
		return
	}
	m.attempt = &attempt{outcome: outcomeOf(&answer, value.TimeOf(start))}
	if answer.Status == http.StatusGone && !d.Test {
		m.attempt.disabled = w.disableGone(ctx, endpoint, answer.Status)
	}
}

// send asks the receiver of a delivery once, by HTTP or through the target
// of an ARN, with a signature of the time start. An error is our fault.
func (w *Worker) send(ctx context.Context, in *webhook.DeliveryInput, start time.Time, timeout time.Duration) (outbound.Outcome, error) {
	endpoint, d := in.Endpoint, in.Delivery
	body, err := d.Body(in.Payload)
	if err != nil {
		return outbound.Outcome{}, err
	}
	arn, isARN := webhook.ParseARN(endpoint.URL)
	isARN = isARN && w.cfg.ARNs != nil
	if isARN {
		if body, err = arn.Body(body); err != nil {
			return outbound.Outcome{}, err
		}
	}
	header, err := w.header(endpoint, d.EventID, start, body)
	if err != nil {
		return outbound.Outcome{}, err
	}
	if isARN {
		return w.cfg.ARNs.Send(ctx, endpoint.OrganizationID, arn, arntarget.Event{Type: d.Type, Header: header, Body: body}, timeout), nil
	}
	return w.client.Post(ctx, endpoint.URL, header, body, timeout), nil
}

// outcomeOf turns an answer, or its absence, into the delivery's terms.
func outcomeOf(answer *outbound.Outcome, at value.Time) webhook.Outcome {
	o := webhook.Outcome{Attempt: webhook.Attempt{At: at, DurationMs: answer.Took.Milliseconds()}, Result: webhook.AttemptFailed}
	reason := answer.Reason
	switch answer.Kind {
	case outbound.Answered:
		body, status := webhook.ClipBody(answer.Body), answer.Status
		o.Attempt.ResponseStatus, o.Attempt.ResponseBody = &status, &body
		if answer.Status >= 200 && answer.Status <= 299 {
			o.Result = webhook.AttemptSucceeded
			return o
		}
		reason = cmp.Or(answer.Reason, answerReason(answer.Status))
		if answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusServiceUnavailable {
			o.RetryAfter = answer.RetryAfter
		}
	case outbound.Forbidden:
		o.Result = webhook.AttemptRefused
	}
	o.Attempt.Error = &reason
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
func (w *Worker) disableGone(ctx context.Context, asked *webhook.Endpoint, status int) bool {
	e, err := w.store.ChangeEndpoint(ctx, asked.OrganizationID, asked.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		if e.URL != asked.URL || e.Status != webhook.Active {
			return e, nil
		}
		return e.Disable(answerReason(status), w.now()), nil
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
