package worker

import (
	"context"
	"errors"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/webhook"
)

// claim makes an attempt the message's own when another message may make it at
// the same time: the sweeper sends a second one for a delivery that is late. It
// reports whether the message may go on. Should it not come to the attempt's
// record, the other message takes over, see lostMessageTimeout, or the due mark brings one.
func (w *Worker) claim(ctx context.Context, m *message) bool {
	d, now := m.input.Delivery, w.now()
	if d.DueAt == nil || now < d.NextAttemptAt.Add(webhook.ResendAfter) {
		return true
	}
	claimed := d.Claim(m.from.nameAfter(d.AttemptCount), now)
	switch _, err := w.store.PutDelivery(ctx, d, claimed); {
	case errors.Is(err, fault.ErrChanged):
		m.disposition = disposition{action: retryLater, wait: clockSkew}
	case err != nil:
		m.fail(err)
	default:
		m.input.Delivery = claimed
	}
	return m.is(attemptNow)
}
