package sweep

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// everything is the number of rows of work without a bound but its time.
const everything = math.MaxInt

// stepSize is the rows that are read, changed and sent at a time.
const stepSize = 200

// Rows finds and changes the rows of an endpoint.
type Rows interface {
	Unsent(ctx context.Context, org, endpoint value.ID, since, until value.Time, cursor string, limit int) ([]webhook.Unsent, error)
	Rows(ctx context.Context, org value.ID, ids []value.ID) (map[value.ID]*webhook.Row, error)
	PutRow(ctx context.Context, previous, next *webhook.Row) (current *webhook.Row, err error)
}

// Recoveries keeps recoveries and tells the state of their endpoints.
// PutRecovery fails with [dynamo.ErrChanged] when somebody else was faster.
type Recoveries interface {
	Recovery(ctx context.Context, org, endpoint, id value.ID) (*webhook.Recovery, error)
	PutRecovery(ctx context.Context, previous, next *webhook.Recovery, from value.Time) error
	Endpoint(ctx context.Context, org, id value.ID) (*webhook.Endpoint, error)
}

// BacklogStore is what a backlog is kept in.
type BacklogStore interface {
	Rows
	Recoveries
}

// Backlog is the HELD and FAILED rows of endpoints, to be sent again or
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

// Recover goes on with a running recovery until it has ended, or has seen as
// many rows as given, and returns it as it is then. A recovery whose endpoint
// is gone or no longer ACTIVE is cancelled. When somebody else goes on with it
// at the same time, this call leaves it to them.
func (b *Backlog) Recover(ctx context.Context, r *webhook.Recovery, rows int) (*webhook.Recovery, error) {
	for seen := 0; r.Status == webhook.RecoveryRunning && seen < rows; seen += stepSize {
		next, err := b.step(ctx, r)
		if errors.Is(err, dynamo.ErrChanged) {
			return b.store.Recovery(ctx, r.OrganizationID, r.EndpointID, r.ID)
		}
		if err != nil {
			return nil, err
		}
		r = next
	}
	return r, nil
}

func (b *Backlog) step(ctx context.Context, r *webhook.Recovery) (*webhook.Recovery, error) {
	e, err := b.store.Endpoint(ctx, r.OrganizationID, r.EndpointID)
	if err != nil {
		return nil, err
	}
	now := value.TimeOf(b.clock())
	if e == nil || e.Status != webhook.Active {
		next := r.End(webhook.RecoveryCancelled, now)
		return next, b.store.PutRecovery(ctx, r, next, 0)
	}
	page, err := b.store.Unsent(ctx, r.OrganizationID, r.EndpointID, r.Since, r.Until, r.Cursor, stepSize)
	if err != nil {
		return nil, err
	}
	requeued, err := b.requeue(ctx, r.OrganizationID, page, now)
	if err != nil {
		return nil, err
	}
	next := r
	if len(page) > 0 {
		next = r.Advance(len(page), requeued, page[len(page)-1].Cursor, now)
	}
	if len(page) < stepSize {
		next = next.End(webhook.RecoveryCompleted, now)
	}
	return next, b.store.PutRecovery(ctx, r, next, now.Add(jobLease))
}

// requeue gives the rows a new schedule under a due mark and then sends their
// messages, the oldest first. Should the sending fail, the marks bring them.
func (b *Backlog) requeue(ctx context.Context, org value.ID, page []webhook.Unsent, now value.Time) (int, error) {
	changed, err := b.change(ctx, org, page, func(r *webhook.Row) *webhook.Row {
		if !r.Unsent() {
			return nil
		}
		return r.Requeue(now)
	})
	if err != nil {
		return 0, err
	}
	requeued := slices.DeleteFunc(changed, func(r *webhook.Row) bool { return r == nil })
	return len(requeued), b.queue.SendRows(ctx, now, requeued...)
}

// change writes what becomes of each row, nil meaning that it stays, and
// returns the rows that it wrote, in the order of the page.
func (b *Backlog) change(ctx context.Context, org value.ID, page []webhook.Unsent, become func(*webhook.Row) *webhook.Row) ([]*webhook.Row, error) {
	ids := make([]value.ID, len(page))
	for i, u := range page {
		ids[i] = u.RowID
	}
	rows, err := b.store.Rows(ctx, org, ids)
	if err != nil {
		return nil, err
	}
	changed := make([]*webhook.Row, len(ids))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, id := range ids {
		row := rows[id]
		if row == nil {
			continue
		}
		next := become(row)
		if next == nil {
			continue
		}
		group.Go(func() error {
			_, err := b.store.PutRow(inner, row, next)
			if errors.Is(err, dynamo.ErrChanged) {
				return nil
			}
			changed[i] = next
			return err
		})
	}
	return changed, group.Wait()
}

// Cancel cancels the HELD rows of a deleted endpoint, as many as given; what
// has FAILED stays so.
func (b *Backlog) Cancel(ctx context.Context, org, endpoint value.ID, rows int) error {
	for seen, cursor := 0, ""; seen < rows; seen += stepSize {
		now := value.TimeOf(b.clock())
		page, err := b.store.Unsent(ctx, org, endpoint, 0, now.Add(time.Hour), cursor, stepSize)
		if err != nil || len(page) == 0 {
			return err
		}
		cursor = page[len(page)-1].Cursor
		if _, err := b.change(ctx, org, page, func(r *webhook.Row) *webhook.Row {
			if r.Status != webhook.RowHeld {
				return nil
			}
			return r.Cancel(now)
		}); err != nil {
			return err
		}
	}
	return nil
}
