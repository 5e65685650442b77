package sweeper

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// pausedLook is how often a circuit is looked at whose endpoint is not
	// ACTIVE; an owner who activates it moves the mark. waitLook is how often
	// where nothing does so.
	pausedLook = time.Hour
	waitLook   = 5 * time.Minute
	// longestProbe bounds how long a probe is waited for that is under way.
	longestProbe = time.Hour
	// candidates is the held rows that are read for a probe, of which the first
	// that still is held is taken.
	candidates = 10
)

// Applications tells the state of applications.
type Applications interface {
	Application(ctx context.Context, org, id value.ID) (*account.Application, error)
}

// probe is a row on its way as its endpoint's probe.
type probe struct {
	row  *webhook.Delivery
	lane webhook.Lane
}

// circuits probes the endpoints whose circuit is open, each for its time, and
// returns those that are to be drained.
func (s *Sweeper) circuits(ctx context.Context, due []webhook.Due, found *findings) (drains []*job, err error) {
	probes := make([]probe, len(due))
	draining := make([]bool, len(due))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, d := range due {
		if d.Kind != webhook.DueCircuit {
			continue
		}
		group.Go(func() (err error) {
			probes[i], draining[i], err = s.circuit(ctx, d)
			return s.failed(ctx, err, "organizationId", d.OrganizationID, "circuit", d.ID)
		})
	}
	err = group.Wait()
	lanes := map[webhook.Lane][]*webhook.Delivery{}
	for i, p := range probes {
		if p.row != nil {
			lanes[p.lane] = append(lanes[p.lane], p.row)
		}
		if draining[i] {
			drains = append(drains, &job{due: due[i]})
		}
	}
	ctx, cancel := finishing(ctx)
	defer cancel()
	for lane, rows := range lanes {
		sendErr := s.queue.Send(ctx, lane, value.TimeOf(s.cfg.Clock()), rows...)
		if sendErr == nil {
			found.add(&found.probes, len(rows))
		}
		err = errors.Join(err, s.failed(ctx, sendErr, "probes", len(rows)))
	}
	return drains, err
}

// circuit looks at one circuit: it makes the probe of an open one, or tells
// that it is to be drained. The mark is moved first: a probe that is lost is
// made again.
func (s *Sweeper) circuit(ctx context.Context, d webhook.Due) (made probe, drains bool, err error) {
	now := value.TimeOf(s.cfg.Clock())
	e, err := s.store.Endpoint(ctx, d.OrganizationID, d.ID)
	if err != nil || e == nil || e.Circuit == nil {
		return probe{}, false, err // the index is behind
	}
	hold, err := s.hold(ctx, e)
	switch {
	case err != nil:
		return probe{}, false, err
	case e.Status != webhook.Active && e.Circuit.Open():
		return probe{}, false, s.postpone(ctx, d, now.Add(pausedLook))
	case hold.Decided():
		return probe{}, false, s.postpone(ctx, d, now.Add(waitLook))
	case !e.Circuit.Open():
		return probe{}, !early(d, now), nil
	}
	late := now.Std().Sub(e.Circuit.ProbeAt.Std())
	moved, _, err := s.store.Postpone(ctx, d, now.Add(min(max(webhook.Lease, late), longestProbe)))
	if err != nil || moved == nil {
		return probe{}, false, err
	}
	row, err := s.backlog.probe(ctx, e, max(now, e.Circuit.ProbeAt))
	if err == nil && row == nil {
		err = s.postpone(ctx, *moved, now.Add(e.Circuit.Interval))
	}
	return probe{row, e.Lane}, false, err
}

func (s *Sweeper) postpone(ctx context.Context, d webhook.Due, until value.Time) error {
	_, _, err := s.store.Postpone(ctx, d, until)
	return err
}

// hold tells why events of the endpoint must wait. An application that is
// gone takes its endpoints with it.
func (s *Sweeper) hold(ctx context.Context, e *webhook.Endpoint) (webhook.HeldReason, error) {
	app, err := s.store.Application(ctx, e.OrganizationID, e.ApplicationID)
	if err != nil {
		return "", err
	}
	if app == nil || app.Status == account.Suspended {
		return e.Hold(webhook.ApplicationSuspended), nil
	}
	return e.Hold(webhook.ApplicationActive), nil
}

// probe makes the oldest row that the endpoint's circuit holds its probe at
// the time, under a due mark, and returns it; nil when none is held.
func (b *Backlog) probe(ctx context.Context, e *webhook.Endpoint, at value.Time) (*webhook.Delivery, error) {
	now := value.TimeOf(b.clock())
	for cursor := ""; ; {
		page, err := b.store.Held(ctx, e.OrganizationID, e.ID, cursor, candidates)
		if err != nil || len(page) == 0 {
			return nil, err
		}
		cursor = page[len(page)-1].Cursor
		rows, err := b.read(ctx, e.OrganizationID, page)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if row == nil || row.HeldReason != webhook.HeldCircuitOpen {
				continue
			}
			next := row.ResumeAsProbe(at, now)
			if _, err := b.store.PutDelivery(ctx, row, next); err == nil {
				return next, nil
			} else if !errors.Is(err, fault.ErrChanged) {
				return nil, err
			}
		}
	}
}
