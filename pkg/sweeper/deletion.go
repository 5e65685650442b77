package sweeper

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Cancel cancels up to so many HELD deliveries of a deleted endpoint. FAILED
// ones stay so.
func (b *Backlog) Cancel(ctx context.Context, org, endpoint value.ID, limit int) error {
	for seen, cursor := 0, ""; seen < limit; seen += stepSize {
		next, err := b.cancel(ctx, org, endpoint, cursor)
		if err != nil || next == "" {
			return err
		}
		cursor = next
	}
	return nil
}

// cancel cancels the next deliveries behind the cursor and returns the cursor
// to continue from; "" when there are no more.
func (b *Backlog) cancel(ctx context.Context, org, endpoint value.ID, cursor string) (string, error) {
	now := value.TimeOf(b.clock())
	page, err := b.store.Unsent(ctx, org, endpoint, 0, now.Add(time.Hour), cursor, stepSize)
	if err != nil || len(page) == 0 {
		return "", err
	}
	c := b.change(ctx, org, page, func(d *webhook.Delivery) *webhook.Delivery {
		if d.Status != webhook.DeliveryHeld {
			return nil
		}
		return d.Cancel(now)
	})
	return page[len(page)-1].Cursor, c.err
}

// deletion cancels the deliveries of a deleted endpoint and then removes what
// is left of it.
type deletion struct {
	leased
	cursor string
}

func (d *deletion) step(ctx context.Context) (more bool, err error) {
	d.cursor, err = d.backlog.cancel(ctx, d.mark.OrganizationID, d.mark.ID, d.cursor)
	if err != nil || d.cursor != "" {
		return err == nil, err
	}
	return false, d.store.FinishEndpointDeletion(ctx, d.mark.OrganizationID, d.mark.ID)
}
