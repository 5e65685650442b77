package sweeper

import (
	"context"
	"errors"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// What a run sends at most of what a circuit held that closed less than one
// minute, and less than two, ago: should the endpoint fail again, no more has
// to be held anew. From then on it is everything.
const (
	firstMinute  = 500
	secondMinute = 5000
)

// drain sends what a circuit held, once it has closed.
type drain struct {
	sweeper *Sweeper
	mark    webhook.Due
	cursor  string
	sent    int
}

func (d *drain) step(ctx context.Context) (more bool, err error) {
	s, now := d.sweeper, value.TimeOf(d.sweeper.cfg.Clock())
	e, err := s.store.Endpoint(ctx, d.mark.OrganizationID, d.mark.ID)
	if err != nil || e == nil || e.Circuit == nil || e.Circuit.Open() {
		return false, err // it opened again, which moved the mark
	}
	hold, err := s.hold(ctx, e)
	if err != nil || hold != "" {
		return false, errors.Join(err, s.postpone(ctx, d.mark, now.Add(waitLook)))
	}
	room := ramp(e.Circuit, now) - d.sent
	if room <= 0 {
		return false, d.leave(ctx)
	}
	page, err := s.store.Held(ctx, e.OrganizationID, e.ID, d.cursor, min(room, stepSize))
	if err != nil {
		return false, err
	}
	if len(page) == 0 {
		return false, d.empty(ctx, e, now)
	}
	resumed, err := s.backlog.resume(ctx, e, page)
	d.cursor, d.sent = page[len(page)-1].Cursor, d.sent+resumed
	return err == nil, err
}

// ramp is how many rows a run sends of what the circuit held.
func ramp(c *webhook.Circuit, now value.Time) int {
	switch {
	case c.ClosedAt == nil || now < c.ClosedAt.Add(time.Minute):
		return firstMinute
	case now < c.ClosedAt.Add(2*time.Minute):
		return secondMinute
	}
	return everything
}

// resume sends rows that a circuit held and tells how many.
func (b *Backlog) resume(ctx context.Context, e *webhook.Endpoint, page []webhook.UnsentDelivery) (int, error) {
	now := value.TimeOf(b.clock())
	c := b.change(ctx, e.OrganizationID, page, func(row *webhook.Delivery) *webhook.Delivery {
		if row.HeldReason != webhook.HeldCircuitOpen {
			return nil
		}
		return row.Resume(now)
	})
	rows := c.written()
	return len(rows), errors.Join(b.send(ctx, e.Lane, rows), c.err)
}

// empty ends the circuit when nothing more can come, and lets another run
// look again otherwise: rows may have been held meanwhile that are older than
// the cursor.
func (d *drain) empty(ctx context.Context, e *webhook.Endpoint, now value.Time) error {
	if d.cursor != "" || !e.Circuit.Settled(now) {
		return d.sweeper.postpone(ctx, d.mark, now.Add(horizon))
	}
	_, err := d.sweeper.store.SetRouting(ctx, e.OrganizationID, e.ID, e.Routing(), webhook.Routing{Lane: e.Lane})
	return err
}

func (d *drain) leave(ctx context.Context) error { return d.sweeper.release(ctx, d.mark) }
