package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/commerce-integration/service/pkg/outbound"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Spare is what must be left of the function's time beside an attempt, for
// its outcome to be written.
const Spare = 3 * time.Second

// attempt asks the receiver once and notes the outcome, or why there was no
// attempt.
func (w *Worker) attempt(ctx context.Context, t *task) {
	endpoint, row := t.delivery.Endpoint, t.delivery.Delivery
	timeout := time.Duration(endpoint.TimeoutSeconds) * time.Second
	// A context's deadline is of the system's clock.
	if deadline, limited := ctx.Deadline(); limited && time.Until(deadline) < timeout+Spare {
		t.err = errors.New("too little time is left for an attempt")
		return
	}
	start := w.cfg.Clock()
	header, err := w.signer.header(endpoint, row.EventID, start, t.delivery.Payload)
	if err != nil {
		t.err = err
		return
	}
	sent := w.client.Post(ctx, endpoint.URL, header, t.delivery.Payload, timeout)
	w.log(ctx, row, &sent)
	if sent.Kind == outbound.Ours {
		t.err = fmt.Errorf("attempt: %s: %w", sent.Reason, sent.Err)
		return
	}
	t.outcome = outcomeOf(&sent, value.TimeOf(start))
	if sent.Status == http.StatusGone && !row.Test {
		t.disabled = w.disableGone(ctx, endpoint, sent.Status)
	}
}

func (w *Worker) log(ctx context.Context, row *webhook.Delivery, sent *outbound.Outcome) {
	if !w.cfg.Logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	w.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "attempt",
		slog.String("rowId", row.ID.String()), slog.String("endpointId", row.EndpointID.String()), slog.String("type", row.Type),
		slog.Int("attempt", row.AttemptCount+1), slog.Int("status", sent.Status), slog.String("reason", sent.Reason),
		slog.Duration("took", sent.Took))
}

// outcomeOf turns an answer, or its absence, into the row's terms.
func outcomeOf(sent *outbound.Outcome, at value.Time) webhook.Outcome {
	o := webhook.Outcome{Attempt: webhook.Attempt{At: at, DurationMs: sent.Took.Milliseconds()}, Result: webhook.AttemptFailed}
	fail := func(reason string) { o.Attempt.Error = &reason }
	switch sent.Kind {
	case outbound.Answered:
		body, status := webhook.ClipBody(sent.Body), sent.Status
		o.Attempt.ResponseStatus, o.Attempt.ResponseBody = &status, &body
		if sent.Status >= 200 && sent.Status <= 299 {
			o.Result = webhook.AttemptSucceeded
			break
		}
		fail(answerReason(sent.Status))
		if sent.Status == http.StatusTooManyRequests || sent.Status == http.StatusServiceUnavailable {
			o.RetryAfter = sent.RetryAfter
		}
	case outbound.Forbidden:
		o.Result = webhook.AttemptRefused
		fail(sent.Reason)
	default:
		fail(sent.Reason)
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
// is DISABLED then. An endpoint that has got another url meanwhile did not
// give that answer. Should the disabling fail, the next 410 brings another.
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
