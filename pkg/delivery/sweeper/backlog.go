package sweeper

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	stepSize = 500 // deliveries that are found, changed and sent in a step
	readSize = 100 // deliveries that one call reads
	maxReads = 4   // calls at a time
)

// BacklogStore keeps what a backlog works on. PutDelivery and PutRecovery fail
// with [fault.ErrChanged] when another writer was faster.
type BacklogStore interface {
	// Unsent finds the deliveries of an endpoint that are HELD or FAILED. Held
	// are those that its circuit holds, which Unsent finds too.
	Unsent(ctx context.Context, org, endpoint value.ID, since, until value.Time, cursor string, limit int) ([]webhook.UnsentDelivery, error)
	Held(ctx context.Context, org, endpoint value.ID, cursor string, limit int) ([]webhook.UnsentDelivery, error)
	Deliveries(ctx context.Context, org value.ID, ids []value.ID) (map[value.ID]*webhook.Delivery, error)
	PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error)
	Recovery(ctx context.Context, org, endpoint, id value.ID) (*webhook.Recovery, error)
	PutRecovery(ctx context.Context, previous, next *webhook.Recovery, from value.Time) error
	Endpoint(ctx context.Context, org, id value.ID) (*webhook.Endpoint, error)
	// SetRouting reports whether previous was the stored one, and next is then.
	SetRouting(ctx context.Context, org, endpoint value.ID, previous, next webhook.Routing) (bool, error)
}

// Backlog is the HELD and FAILED deliveries of endpoints, to be sent again or
// cancelled.
type Backlog struct {
	store BacklogStore
	queue Queue
	clock func() time.Time
}

// NewBacklog returns the backlog kept in the store, sent through q.
func NewBacklog(store BacklogStore, q Queue, clock func() time.Time) *Backlog {
	return &Backlog{store: store, queue: q, clock: clock}
}

// change replaces each delivery of a page by what become makes of it, nil
// meaning that it stays, and returns those that were written, in the order of the
// page. A delivery that another writer changes at the same time stays, too. With an
// error some are not written.
func (b *Backlog) change(ctx context.Context, org value.ID, page []webhook.UnsentDelivery, become func(*webhook.Delivery) *webhook.Delivery) ([]*webhook.Delivery, error) {
	deliveries, err := b.read(ctx, org, page)
	if err != nil {
		return nil, err
	}
	written := make([]*webhook.Delivery, len(page))
	err = parallel.UntilError(ctx, maxWrites, slices.All(deliveries), func(failing context.Context, i int, d *webhook.Delivery) error {
		if d == nil || failing.Err() != nil {
			return failing.Err()
		}
		next := become(d)
		if next == nil {
			return nil
		}
		// The error of another write does not cancel this one: it may be made already.
		_, err := b.store.PutDelivery(ctx, d, next)
		switch {
		case err == nil:
			written[i] = next
		case errors.Is(err, fault.ErrChanged):
			return nil
		}
		return err
	})
	return slices.DeleteFunc(written, func(d *webhook.Delivery) bool { return d == nil }), err
}

// send sends the messages of deliveries. Their due marks let a run of the
// sweeper repeat it when it fails.
func (b *Backlog) send(ctx context.Context, lane webhook.Lane, deliveries []*webhook.Delivery) error {
	if len(deliveries) == 0 {
		return nil
	}
	return b.queue.Send(ctx, lane, value.TimeOf(b.clock()), deliveries...)
}

// Cancel cancels up to so many HELD deliveries of a deleted endpoint.
func (b *Backlog) Cancel(ctx context.Context, org, endpoint value.ID, limit int) (err error) {
	cursor := ""
	for seen := 0; seen < limit; seen += stepSize {
		if cursor, err = b.cancel(ctx, org, endpoint, cursor); err != nil || cursor == "" {
			return err
		}
	}
	return nil
}

// cancel cancels the HELD deliveries of a deleted endpoint among the next ones
// behind the cursor, and returns the cursor to continue from; "" when there are
// no more. FAILED ones stay so.
func (b *Backlog) cancel(ctx context.Context, org, endpoint value.ID, cursor string) (string, error) {
	now := value.TimeOf(b.clock())
	page, err := b.store.Unsent(ctx, org, endpoint, 0, now.Add(time.Hour), cursor, stepSize)
	if err != nil || len(page) == 0 {
		return "", err
	}
	_, err = b.change(ctx, org, page, func(d *webhook.Delivery) *webhook.Delivery {
		if d.Status != webhook.DeliveryHeld {
			return nil
		}
		return d.Cancel(now)
	})
	return page[len(page)-1].Cursor, err
}

// read reads the deliveries of a page in its order, nil for those that expired.
func (b *Backlog) read(ctx context.Context, org value.ID, page []webhook.UnsentDelivery) ([]*webhook.Delivery, error) {
	deliveries := make([]*webhook.Delivery, len(page))
	batches := slices.Collect(slices.Chunk(page, readSize))
	return deliveries, parallel.UntilError(ctx, maxReads, slices.All(batches), func(ctx context.Context, n int, batch []webhook.UnsentDelivery) error {
		ids := make([]value.ID, len(batch))
		for i, d := range batch {
			ids[i] = d.DeliveryID
		}
		found, err := b.store.Deliveries(ctx, org, ids)
		for i, id := range ids {
			deliveries[n*readSize+i] = found[id]
		}
		return err
	})
}
