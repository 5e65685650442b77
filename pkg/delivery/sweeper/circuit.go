package sweeper

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// pausedCheck is how often a circuit is looked at whose endpoint is not
	// ACTIVE; activating it moves the due mark. heldRecheckInterval is how often when the
	// deliveries must wait for another reason, whose end moves no mark.
	pausedCheck         = time.Hour
	heldRecheckInterval = 5 * time.Minute
	// probeLease is how long a probe that was sent is waited for, at least: its
	// outcome may be lost, as when the table fails. Each further probe waits twice
	// as long, maxProbeLease at most, since they may all be in a queue that is late.
	probeLease, maxProbeLease = 2 * time.Minute, time.Hour
	// probePage is the held deliveries that are read to find one for a probe.
	probePage = 10
)

// circuits sends a probe to each endpoint whose circuit is open and due, and
// returns the drains of those that closed.
func (s *Sweeper) circuits(ctx context.Context, due []webhook.Due) (drains []*job, err error) {
	closed := make([]bool, len(due))
	var group errgroup.Group
	group.SetLimit(maxWrites)
	for i, d := range due {
		if d.Kind != webhook.DueCircuit {
			continue
		}
		group.Go(func() (err error) {
			closed[i], err = s.circuit(ctx, d)
			return s.failed(ctx, err, "organizationId", d.OrganizationID, "circuit", d.ID)
		})
	}
	err = group.Wait()
	for i := range due {
		if closed[i] {
			drains = append(drains, &job{due: due[i]})
		}
	}
	return drains, err
}

// circuit looks at one circuit: it sends the probe of an open one, or says
// that it is to be drained. The mark is moved by the lease first: a probe that
// is not sent is made again.
func (s *Sweeper) circuit(ctx context.Context, d webhook.Due) (drains bool, err error) {
	now := s.now()
	e, err := s.store.Endpoint(ctx, d.OrganizationID, d.ID)
	if err != nil || e == nil || e.Circuit == nil {
		return false, err // GSI1 is behind the table
	}
	hold, err := s.hold(ctx, e)
	switch {
	case err != nil:
		return false, err
	case e.Status != webhook.Active && e.Circuit.Open():
		return false, s.postpone(ctx, d, now.Add(pausedCheck))
	case hold.Decided():
		return false, s.postpone(ctx, d, now.Add(heldRecheckInterval))
	case !e.Circuit.Open():
		return !early(d, now), nil
	}
	if err := s.announce(ctx, e, now); err != nil {
		return false, err
	}
	at := max(now, e.Circuit.ProbeAt)
	moved, _, err := s.store.Postpone(ctx, d, at.Add(webhook.Lease))
	if err != nil || moved == nil {
		return false, err
	}
	ctx, cancel := finishing(ctx)
	defer cancel()
	sent, err := s.backlog.sendProbe(ctx, e, at)
	if err != nil {
		return false, err
	}
	wait := e.Circuit.Interval()
	if sent {
		late := now.Std().Sub(e.Circuit.ProbeAt.Std())
		wait = min(max(probeLease, late), maxProbeLease)
	}
	return false, s.postpone(ctx, *moved, now.Add(wait))
}

// announce stores the announcement to make of an endpoint whose circuit is open,
// unless another writer was faster: then the next look does. The dispatcher makes
// its events.
func (s *Sweeper) announce(ctx context.Context, e *webhook.Endpoint, now value.Time) error {
	tally, err := s.store.Tally(ctx, e.OrganizationID, e.ID)
	if err != nil {
		return err
	}
	next := e.Routing()
	next.Alert = e.NextAlert(tally.Health(e.HealthStart(), now), now)
	if next.Equal(e.Routing()) {
		return nil
	}
	_, err = s.store.SetRouting(ctx, e.OrganizationID, e.ID, e.Routing(), next)
	return err
}

// hold says why events of the endpoint must wait. An application that is
// gone takes its endpoints with it.
func (s *Sweeper) hold(ctx context.Context, e *webhook.Endpoint) (webhook.HeldReason, error) {
	application, err := s.store.Application(ctx, e.OrganizationID, e.ApplicationID)
	hold, gone := webhook.MaySend(e, webhook.StateOf(application))
	if gone {
		hold = webhook.HeldSuspended
	}
	return hold, err
}

// Probe sends the endpoint, whose circuit is open, a probe at once, if it holds
// a delivery.
func (b *Backlog) Probe(ctx context.Context, e *webhook.Endpoint) error {
	_, err := b.sendProbe(ctx, e, value.TimeOf(b.clock()))
	return err
}

// sendProbe sends the endpoint's probe for the time, if its circuit holds a delivery.
func (b *Backlog) sendProbe(ctx context.Context, e *webhook.Endpoint, at value.Time) (sent bool, err error) {
	d, err := b.probe(ctx, e, at)
	if err != nil || d == nil {
		return false, err
	}
	return true, b.send(ctx, e.Lane, []*webhook.Delivery{d})
}

// probe makes a delivery that the endpoint's circuit holds its probe at the
// time, with a due mark, and returns it; nil when none is held. Of the oldest
// ones it takes one with the fewest attempts: an event that the endpoint can
// never accept does not keep the circuit open for all others.
func (b *Backlog) probe(ctx context.Context, e *webhook.Endpoint, at value.Time) (*webhook.Delivery, error) {
	now := value.TimeOf(b.clock())
	for cursor := ""; ; {
		page, err := b.store.Held(ctx, e.OrganizationID, e.ID, cursor, probePage)
		if err != nil || len(page) == 0 {
			return nil, err
		}
		cursor = page[len(page)-1].Cursor
		deliveries, err := b.read(ctx, e.OrganizationID, page)
		if err != nil {
			return nil, err
		}
		deliveries = slices.DeleteFunc(deliveries, func(d *webhook.Delivery) bool {
			return d == nil || d.HeldReason != webhook.HeldCircuitOpen
		})
		slices.SortStableFunc(deliveries, func(a, b *webhook.Delivery) int { return cmp.Compare(a.AttemptCount, b.AttemptCount) })
		for _, d := range deliveries {
			next := d.ResumeAsProbe(at, now)
			if _, err := b.store.PutDelivery(ctx, d, next); err == nil {
				return next, nil
			} else if !errors.Is(err, fault.ErrChanged) {
				return nil, err
			}
		}
	}
}

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
		return false, errors.Join(err, d.postpone(ctx, d.mark, now.Add(heldRecheckInterval)))
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
	resumed, err := d.backlog.change(ctx, e.OrganizationID, page, func(held *webhook.Delivery) *webhook.Delivery {
		if held.HeldReason != webhook.HeldCircuitOpen {
			return nil
		}
		return held.Resume(now)
	})
	d.cursor, d.sent = page[len(page)-1].Cursor, d.sent+len(resumed)
	err = errors.Join(d.backlog.send(ctx, e.Lane, resumed), err)
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
		return d.postpone(ctx, d.mark, now.Add(dueWithin))
	}
	_, err := d.store.SetRouting(ctx, e.OrganizationID, e.ID, e.Routing(), webhook.Routing{Lane: e.Lane, Alert: e.Alert})
	return err
}
