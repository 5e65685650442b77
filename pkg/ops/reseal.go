package ops

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
)

const (
	// resealSegments is how many parts of the table are read at a time.
	resealSegments = 8
	// maxResealPasses bounds the passes over the table. Only items that change
	// between their reading and their writing need another one.
	maxResealPasses = 5
)

// ResealCounts counts items that hold something sealed.
type ResealCounts struct {
	Items      int `json:"items"`
	Resealed   int `json:"resealed"`
	Left       int `json:"left"`       // under an older key that opens
	Unreadable int `json:"unreadable"` // under a key that is gone, or damaged
}

// Reseal opens what an older service key sealed, and seals it under the current
// one: the secrets and headers of endpoints, the keys of senders and the kept
// answers of requests that name an idempotency key.
type Reseal struct {
	Table *dynamo.Table
	Box   *sealed.Box
	Clock func() time.Time
	// DryRun only counts: what is under an older key is left.
	DryRun bool
	// Position is where an interrupted run goes on, nil for a dry run.
	Position *ResealPosition
	// Unreadable is told of each item that cannot be opened, one at a time.
	Unreadable func(item string, err error)

	mu sync.Mutex // of the position, the counts and Unreadable
}

// Run goes over the table until a pass finds nothing under an older key. Each
// item is replaced only when it has not changed since it was read, so that it
// may run beside the service, be killed and run twice.
func (r *Reseal) Run(ctx context.Context) (counts ResealCounts, err error) {
	for range maxResealPasses {
		pass, err := r.pass(ctx)
		resealed := counts.Resealed + pass.Resealed
		counts = pass
		counts.Resealed = resealed
		if err != nil || r.DryRun || pass.Resealed+pass.Left == 0 {
			return counts, err
		}
		if err := r.Position.restart(); err != nil {
			return counts, err
		}
	}
	return counts, nil
}

// pass reads the whole table once, or what the position leaves of it.
func (r *Reseal) pass(ctx context.Context) (ResealCounts, error) {
	var total ResealCounts
	if r.Position != nil {
		total = r.Position.state.Counts
	}
	group, ctx := errgroup.WithContext(ctx)
	for segment := range resealSegments {
		group.Go(func() error {
			var after dynamo.ScanPosition
			if r.Position != nil {
				if r.Position.state.Done[segment] {
					return nil
				}
				after = r.Position.state.After[segment]
			}
			for {
				found, next, err := dynamo.ScanSealed(ctx, r.Table, segment, resealSegments, after)
				if err != nil {
					return err
				}
				var page ResealCounts
				for i := range found {
					if err := r.item(ctx, &found[i], &page); err != nil {
						return fmt.Errorf("reseal %s: %w", &found[i], err)
					}
				}
				r.mu.Lock()
				total.add(page)
				if r.Position != nil {
					err = r.Position.save(segment, next, total)
				}
				r.mu.Unlock()
				if err != nil || next == (dynamo.ScanPosition{}) {
					return err
				}
				after = next
			}
		})
	}
	err := group.Wait()
	return total, err
}

func (c *ResealCounts) add(o ResealCounts) {
	c.Items, c.Resealed, c.Left, c.Unreadable = c.Items+o.Items, c.Resealed+o.Resealed, c.Left+o.Left, c.Unreadable+o.Unreadable
}

// item seals one item again.
func (r *Reseal) item(ctx context.Context, s *dynamo.SealedItem, counts *ResealCounts) error {
	counts.Items++
	changed, err := r.again(s)
	switch {
	case errors.Is(err, sealed.ErrUnopened):
		counts.Unreadable++
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Unreadable(s.String(), err)
		return nil
	case err != nil || !changed:
		return err
	case r.DryRun:
		counts.Left++
		return nil
	}
	done, err := dynamo.ReplaceSealed(ctx, r.Table, s)
	if done {
		counts.Resealed++
	} else if err == nil {
		counts.Left++ // it was changed meanwhile: the next pass looks at it
	}
	return err
}

func (r *Reseal) again(s *dynamo.SealedItem) (changed bool, err error) {
	if s.Senders != nil {
		next, err := s.Senders.Reseal(r.Box.Again)
		changed = next != s.Senders
		s.Senders = next
		return changed, err
	}
	if s.Endpoint != nil {
		next, err := s.Endpoint.Reseal(r.Box.Again, value.TimeOf(r.Clock()))
		changed = next != s.Endpoint
		s.Endpoint = next
		return changed, err
	}
	next, err := s.Request.Reseal(r.Box.AgainBytes)
	changed = string(next) != string(s.Request.Answer)
	s.Request.Answer = next
	return changed, err
}

// ResealPosition is how far a run has come.
type ResealPosition struct {
	Checkpoint

	state resealState
}

type resealState struct {
	Fingerprint string                              `json:"fingerprint"` // of the table and the current key
	Started     time.Time                           `json:"started"`
	After       [resealSegments]dynamo.ScanPosition `json:"after"`
	Done        [resealSegments]bool                `json:"done"`
	Counts      ResealCounts                        `json:"counts"`
}

// OpenResealPosition returns the position of an earlier, interrupted run of
// the same command, at most a day old, or that of a new run.
func OpenResealPosition(dataDir, fingerprint string, now time.Time) (*ResealPosition, error) {
	p := &ResealPosition{
		Checkpoint: Checkpoint(filepath.Join(dataDir, "reseal-"+fingerprint[:16]+".json")),
		state:      resealState{Fingerprint: fingerprint, Started: now},
	}
	stored := p.state
	if err := p.Load(&stored); err != nil {
		return nil, err
	}
	if stored.Fingerprint == fingerprint && now.Sub(stored.Started) < maxPositionAge {
		p.state = stored
	}
	return p, nil
}

// Resumed reports whether an earlier run was interrupted.
func (p *ResealPosition) Resumed() bool { return p.state.Counts.Items > 0 }

func (p *ResealPosition) save(segment int, next dynamo.ScanPosition, counts ResealCounts) error {
	p.state.After[segment], p.state.Done[segment], p.state.Counts = next, next == dynamo.ScanPosition{}, counts
	return p.Checkpoint.Save(p.state)
}

// restart begins another pass.
func (p *ResealPosition) restart() error {
	p.state = resealState{Fingerprint: p.state.Fingerprint, Started: p.state.Started}
	return p.Checkpoint.Save(p.state)
}
