package sweeper

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// The deliveries that a run sends at most when their circuit closed less than
// one minute, and less than two, ago: should the endpoint fail again, no more
// have to be held anew. Later runs send as many as time allows.
const (
	maxFirstMinute  = 500
	maxSecondMinute = 5000
)

// drain sends the deliveries that a circuit held, once it has closed.
type drain struct {
	*Sweeper
	mark   webhook.Due
	cursor string
	sent   int
}

func (d *drain) step(ctx context.Context) (more bool, err error) {
	now := d.now()
	e, err := d.store.Endpoint(ctx, d.mark.OrganizationID, d.mark.ID)
	if err != nil || e == nil || e.Circuit == nil || e.Circuit.Open() {
		return false, err // it opened again, which moved the mark
	}
	hold, err := d.hold(ctx, e)
	if err != nil || hold != "" {
		return false, errors.Join(err, d.postpone(ctx, d.mark, now.Add(holdCheck)))
	}
	room := maxDrained(e.Circuit, now) - d.sent
	if room <= 0 {
		return false, d.postpone(ctx, d.mark, now)
	}
	page, err := d.store.Held(ctx, e.OrganizationID, e.ID, d.cursor, min(room, stepSize))
	if err != nil {
		return false, err
	}
	if len(page) == 0 {
		return false, d.end(ctx, e, now)
	}
	c := d.backlog.change(ctx, e.OrganizationID, page, func(held *webhook.Delivery) *webhook.Delivery {
		if held.HeldReason != webhook.HeldCircuitOpen {
			return nil
		}
		return held.Resume(now)
	})
	resumed := c.written()
	d.cursor, d.sent = page[len(page)-1].Cursor, d.sent+len(resumed)
	err = errors.Join(d.backlog.send(ctx, e.Lane, resumed), c.err)
	return err == nil, err
}

// maxDrained is how many deliveries a run sends.
func maxDrained(c *webhook.Circuit, now value.Time) int {
	switch {
	case c.ClosedAt == nil || now < c.ClosedAt.Add(time.Minute):
		return maxFirstMinute
	case now < c.ClosedAt.Add(2*time.Minute):
		return maxSecondMinute
	}
	return math.MaxInt
}

// end removes the circuit when no more deliveries can be held. Otherwise
// another run looks again: deliveries older than the cursor may have been held
// meanwhile.
func (d *drain) end(ctx context.Context, e *webhook.Endpoint, now value.Time) error {
	if d.cursor != "" || !e.Circuit.Settled(now) {
		return d.postpone(ctx, d.mark, now.Add(horizon))
	}
	_, err := d.store.SetRouting(ctx, e.OrganizationID, e.ID, e.Routing(), webhook.Routing{Lane: e.Lane})
	return err
}
