package sweeper

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// circuitTries bounds the tries to close a circuit that others are writing.
const circuitTries = 5

// Recover goes on with a running recovery until it has ended, or has seen as
// many rows as given, and returns it as it is then. A recovery whose endpoint
// is gone or no longer ACTIVE is cancelled; an open circuit closes when it
// begins. When somebody else goes on with it at the same time, this call
// leaves it to them.
func (b *Backlog) Recover(ctx context.Context, r *webhook.Recovery, rows int) (*webhook.Recovery, error) {
	for left := rows; r.Status == webhook.RecoveryRunning && left > 0; {
		next, err := b.recover(ctx, r, min(stepSize, left))
		if err != nil {
			return nil, err
		}
		if next == nil {
			return b.store.Recovery(ctx, r.OrganizationID, r.EndpointID, r.ID)
		}
		left -= int(next.MatchedCount - r.MatchedCount)
		r = next
	}
	return r, nil
}

// recover does a step of a recovery and returns it as it is then, nil when
// somebody else goes on with it. With an error it may have got further, too:
// rows that could not be written are the next step's to begin with.
func (b *Backlog) recover(ctx context.Context, r *webhook.Recovery, limit int) (*webhook.Recovery, error) {
	e, err := b.store.Endpoint(ctx, r.OrganizationID, r.EndpointID)
	if err != nil {
		return r, err
	}
	now := value.TimeOf(b.clock())
	if e == nil || e.Status != webhook.Active {
		return b.put(ctx, r, r.End(webhook.RecoveryCancelled, now))
	}
	if r.Cursor == "" {
		if err := b.closeCircuit(ctx, e); err != nil {
			return r, err
		}
	}
	page, err := b.store.Unsent(ctx, r.OrganizationID, r.EndpointID, r.Since, r.Until, r.Cursor, limit)
	if err != nil {
		return r, err
	}
	c := b.change(ctx, e.OrganizationID, page, func(row *webhook.Delivery) *webhook.Delivery {
		if !row.Unsent() {
			return nil
		}
		return row.Requeue(now)
	})
	requeued, next := c.written(), r
	if seen := c.seen(); seen > 0 {
		cursor := r.Cursor
		if c.first > 0 {
			cursor = page[c.first-1].Cursor
		}
		next = r.Advance(seen, len(requeued), cursor, now)
	}
	if len(page) < limit && c.err == nil {
		next = next.End(webhook.RecoveryCompleted, now)
	}
	if next == r {
		return r, c.err
	}
	var group errgroup.Group
	group.Go(func() error { return b.send(ctx, e.Lane, requeued) })
	put, err := b.put(ctx, r, next)
	return put, errors.Join(err, group.Wait(), c.err)
}

// put keeps a recovery as it is next, and returns that; nil when somebody
// else was faster.
func (b *Backlog) put(ctx context.Context, r, next *webhook.Recovery) (*webhook.Recovery, error) {
	err := b.store.PutRecovery(ctx, r, next, value.TimeOf(b.clock()).Add(jobLease))
	switch {
	case errors.Is(err, fault.ErrChanged):
		return nil, nil
	case err != nil:
		return r, err
	}
	return next, nil
}

// closeCircuit makes an open circuit drain: its endpoint's owner asks for what
// it holds.
func (b *Backlog) closeCircuit(ctx context.Context, e *webhook.Endpoint) error {
	for range circuitTries {
		if e == nil || !e.Circuit.Open() {
			return nil
		}
		next := webhook.Routing{Circuit: e.Circuit.Drain(value.TimeOf(b.clock())), Lane: e.Lane}
		done, err := b.store.SetRouting(ctx, e.OrganizationID, e.ID, e.Routing(), next)
		if err != nil || done {
			return err
		}
		if e, err = b.store.Endpoint(ctx, e.OrganizationID, e.ID); err != nil {
			return err
		}
	}
	return fault.Busy(fmt.Errorf("close the circuit of endpoint %s: others were faster %d times", e.ID, circuitTries))
}

// recovery goes on with a recovery.
type recovery struct {
	backlog *Backlog
	now     *webhook.Recovery // nil: somebody else goes on
}

func (r *recovery) step(ctx context.Context) (more bool, err error) {
	r.now, err = r.backlog.recover(ctx, r.now, stepSize)
	return err == nil && r.now != nil && r.now.Status == webhook.RecoveryRunning, err
}

// leave lets the next run go on at once.
func (r *recovery) leave(ctx context.Context) error {
	if r.now == nil || r.now.Status != webhook.RecoveryRunning {
		return nil
	}
	now := value.TimeOf(r.backlog.clock())
	err := r.backlog.store.PutRecovery(ctx, r.now, r.now.Advance(0, 0, r.now.Cursor, now), now)
	if errors.Is(err, fault.ErrChanged) {
		return nil
	}
	return err
}
