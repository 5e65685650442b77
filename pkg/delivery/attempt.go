package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/outbound"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// spare is what must be left of the function's time beside an attempt,
	// for its outcome to be written.
	spare = 3 * time.Second
	// conflicts bounds the tries to write an outcome into a row that others
	// are writing.
	conflicts = 5
)

// deliver makes the attempt, writes its outcome and plans the next.
func (w *Worker) deliver(ctx context.Context, t *task) error {
	endpoint, row := t.delivery.Endpoint, t.delivery.Row
	if t.delivery.Payload == nil {
		return fmt.Errorf("event %s has a row and no payload", row.EventID)
	}
	key, err := w.signingKey(endpoint)
	if err != nil {
		return err
	}
	timeout := time.Duration(endpoint.TimeoutSeconds) * time.Second
	start := w.cfg.Clock()
	if deadline, limited := ctx.Deadline(); limited && deadline.Sub(start) < timeout+spare {
		return errors.New("too little time is left for an attempt")
	}
	header := webhook.Headers(row.EventID, start, t.delivery.Payload, key)
	sent := w.client.Post(ctx, endpoint.URL, header, t.delivery.Payload, timeout)
	w.cfg.Logger.InfoContext(ctx, "attempt", "rowId", row.ID, "endpointId", endpoint.ID, "type", row.Type,
		"attempt", row.AttemptCount+1, "status", sent.Status, "reason", sent.Reason, "took", sent.Took)
	if sent.Kind == outbound.Ours {
		return fmt.Errorf("attempt: %s: %w", sent.Reason, sent.Err)
	}
	outcome := outcomeOf(&sent, value.TimeOf(start))
	next, err := w.record(ctx, t, outcome, w.disableGone(ctx, t, &sent))
	if err != nil || next == nil {
		return err
	}
	if !next.Pending() || next.Carrier != t.message.MessageId {
		return nil
	}
	return w.hide(ctx, t, next.NextAttemptAt.Std().Sub(w.cfg.Clock()))
}

func (w *Worker) signingKey(e *webhook.Endpoint) ([]byte, error) {
	text, err := w.secrets.Open(e.Secret.Sealed, webhook.SecretPurpose(e.ID))
	if err != nil {
		return nil, fmt.Errorf("secret of endpoint %s: %w", e.ID, err)
	}
	return webhook.SecretKey(string(text))
}

// outcomeOf turns an answer, or its absence, into the row's terms.
func outcomeOf(sent *outbound.Outcome, at value.Time) webhook.Outcome {
	o := webhook.Outcome{Attempt: webhook.Attempt{At: at, DurationMs: sent.Took.Milliseconds()}, Verdict: webhook.Failed}
	fail := func(reason string) { o.Attempt.Error = &reason }
	switch sent.Kind {
	case outbound.Answered:
		body := webhook.ClipBody(sent.Body)
		o.Attempt.ResponseStatus, o.Attempt.ResponseBody = &sent.Status, &body
		if sent.Status >= 200 && sent.Status <= 299 {
			o.Verdict = webhook.Delivered
			break
		}
		fail(answerReason(sent.Status))
		if sent.Status == http.StatusTooManyRequests || sent.Status == http.StatusServiceUnavailable {
			o.RetryAfter = sent.RetryAfter
		}
	case outbound.Forbidden:
		o.Verdict = webhook.Hopeless
		fail(sent.Reason)
	default:
		fail(sent.Reason)
	}
	return o
}

func answerReason(status int) string {
	reason := fmt.Sprintf("answered %d", status)
	if text := http.StatusText(status); text != "" {
		reason += " " + text
	}
	if status >= 300 && status <= 399 {
		reason += "; redirects are not followed"
	}
	return reason
}

// disableGone disables an endpoint that answered 410 and reports whether it
// is DISABLED then. An endpoint that has got another url meanwhile did not
// give that answer. Should the disabling fail, the next 410 brings another.
func (w *Worker) disableGone(ctx context.Context, t *task, sent *outbound.Outcome) bool {
	asked := t.delivery.Endpoint
	if sent.Status != http.StatusGone || t.delivery.Row.Test {
		return false
	}
	e, err := w.store.ChangeEndpoint(ctx, asked.OrganizationID, asked.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		if e.URL != asked.URL || e.Status != webhook.Active {
			return e, nil
		}
		return e.Disable(answerReason(sent.Status), value.TimeOf(w.cfg.Clock())), nil
	})
	if err != nil {
		w.cfg.Logger.ErrorContext(ctx, "endpoint that is gone was not disabled", "endpointId", asked.ID, "error", err)
	}
	return e != nil && e.Status == webhook.Disabled
}

// record writes the outcome into the row and returns the row as it is then;
// nil when another attempt of the same number was written first, or when the
// row is no more. What others did to the row meanwhile without an attempt
// does not undo this one.
func (w *Worker) record(ctx context.Context, t *task, o webhook.Outcome, disabled bool) (*webhook.Row, error) {
	row := t.delivery.Row
	number, random := row.AttemptCount, w.cfg.Random()
	for range conflicts {
		now := value.TimeOf(w.cfg.Clock())
		next := row.Record(o, t.message.MessageId, t.delivery.Endpoint.RetryCount, random, now)
		if disabled && next.Pending() {
			next = next.Hold(webhook.HeldDisabled, now)
		}
		current, err := w.store.PutRow(ctx, row, next)
		switch {
		case err == nil:
			if !row.Test {
				t.attempt = &o.Attempt
			}
			return next, nil
		case !errors.Is(err, dynamo.ErrChanged):
			return nil, err
		case current == nil || current.AttemptCount != number:
			return nil, nil
		}
		row = current
	}
	return nil, fmt.Errorf("write the outcome of row %s: others were faster %d times", row.ID, conflicts)
}
