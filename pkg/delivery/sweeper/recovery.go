package sweeper

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// maxCircuitTries bounds the tries to close a circuit that others are writing.
const maxCircuitTries = 5

// Recover continues a running recovery until it has ended, or has seen so many
// deliveries, and returns it as it is then. A recovery whose endpoint is gone
// or no longer ACTIVE is cancelled; an open circuit closes when it begins. A
// recovery that another call continues at the same time is left to that call.
func (b *Backlog) Recover(ctx context.Context, r *webhook.Recovery, limit int) (*webhook.Recovery, error) {
	for left := limit; r.Status == webhook.RecoveryRunning && left > 0; {
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
// another call continues it. It may have progressed even with an error: the
// next step finds the deliveries that could not be written.
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
	requeued, changeErr := b.change(ctx, e.OrganizationID, page, func(d *webhook.Delivery) *webhook.Delivery {
		if !d.Unsent() {
			return nil
		}
		return d.Requeue(now)
	})
	next := r
	switch {
	case changeErr == nil && len(page) > 0:
		next = r.Advance(len(page), len(requeued), page[len(page)-1].Cursor, now)
	case len(requeued) > 0:
		next = r.Advance(len(requeued), len(requeued), r.Cursor, now)
	}
	if len(page) < limit && changeErr == nil {
		next = next.End(webhook.RecoveryCompleted, now)
	}
	if next == r {
		return r, changeErr
	}
	var group errgroup.Group
	group.Go(func() error { return b.send(ctx, e.Lane, requeued) })
	put, err := b.put(ctx, r, next)
	return put, errors.Join(err, group.Wait(), changeErr)
}

// put stores a recovery as it is next, and returns it; nil when another writer
// was faster.
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

// closeCircuit lets an open circuit drain: its endpoint's owner asks for the
// deliveries that it holds.
func (b *Backlog) closeCircuit(ctx context.Context, e *webhook.Endpoint) error {
	id := e.ID
	err := retry.Contended(ctx, maxCircuitTries, func() (done bool, err error) {
		if e == nil || !e.Circuit.Open() {
			return true, nil
		}
		next := e.Routing()
		next.Circuit = e.Circuit.Drain(value.TimeOf(b.clock()))
		done, err = b.store.SetRouting(ctx, e.OrganizationID, e.ID, e.Routing(), next)
		if err == nil && !done {
			e, err = b.store.Endpoint(ctx, e.OrganizationID, e.ID)
		}
		return done, err
	})
	if err != nil {
		return fmt.Errorf("close the circuit of endpoint %s: %w", id, err)
	}
	return nil
}

// recovery continues a recovery.
type recovery struct {
	backlog *Backlog
	current *webhook.Recovery // nil: another call continues it
}

func (r *recovery) running() bool {
	return r.current != nil && r.current.Status == webhook.RecoveryRunning
}

func (r *recovery) step(ctx context.Context) (more bool, err error) {
	r.current, err = r.backlog.recover(ctx, r.current, stepSize)
	return err == nil && r.running(), err
}

func (r *recovery) release(ctx context.Context) error {
	if !r.running() {
		return nil
	}
	now := value.TimeOf(r.backlog.clock())
	err := r.backlog.store.PutRecovery(ctx, r.current, r.current.Advance(0, 0, r.current.Cursor, now), now)
	if errors.Is(err, fault.ErrChanged) {
		return nil
	}
	return err
}
