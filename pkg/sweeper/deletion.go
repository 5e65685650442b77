package sweeper

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Cancel cancels the HELD rows of a deleted endpoint, as many as given; what
// has FAILED stays so.
func (b *Backlog) Cancel(ctx context.Context, org, endpoint value.ID, rows int) error {
	for seen, cursor := 0, ""; seen < rows; seen += stepSize {
		next, err := b.cancel(ctx, org, endpoint, cursor)
		if err != nil || next == "" {
			return err
		}
		cursor = next
	}
	return nil
}

// cancel cancels the next rows behind the cursor and returns the cursor to go
// on from; "" when there are no more.
func (b *Backlog) cancel(ctx context.Context, org, endpoint value.ID, cursor string) (string, error) {
	now := value.TimeOf(b.clock())
	page, err := b.store.Unsent(ctx, org, endpoint, 0, now.Add(time.Hour), cursor, stepSize)
	if err != nil || len(page) == 0 {
		return "", err
	}
	c := b.change(ctx, org, page, func(r *webhook.Delivery) *webhook.Delivery {
		if r.Status != webhook.DeliveryHeld {
			return nil
		}
		return r.Cancel(now)
	})
	return page[len(page)-1].Cursor, c.err
}

// deletion cancels the rows of a deleted endpoint and then forgets it.
type deletion struct {
	sweeper *Sweeper
	mark    webhook.Due
	cursor  string
}

func (d *deletion) step(ctx context.Context) (more bool, err error) {
	d.cursor, err = d.sweeper.backlog.cancel(ctx, d.mark.OrganizationID, d.mark.ID, d.cursor)
	if err != nil || d.cursor != "" {
		return err == nil, err
	}
	return false, d.sweeper.store.FinishEndpointDeletion(ctx, d.mark.OrganizationID, d.mark.ID)
}

func (d *deletion) leave(ctx context.Context) error { return d.sweeper.release(ctx, d.mark) }
