package ops

import (
	"context"
	"errors"
	"fmt"
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
// one: the secrets and headers of endpoints, and the kept answers of requests
// that name an idempotency key.
type Reseal struct {
	Table *dynamo.Table
	Box   *sealed.Box
	Clock func() time.Time
	// DryRun only counts: what is under an older key is left.
	DryRun bool
	// Position is where an interrupted run goes on.
	Position *Position[ResealState]
	// Unreadable is called for each item that cannot be opened, one at a time.
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
		r.Position.State = ResealState{}
		if err := r.Position.Save(); err != nil {
			return counts, err
		}
	}
	return counts, nil
}

// pass reads the whole table once, or what the position leaves of it.
func (r *Reseal) pass(ctx context.Context) (ResealCounts, error) {
	group, ctx := errgroup.WithContext(ctx)
	for segment := range resealSegments {
		group.Go(func() error {
			for !r.Position.State.Done[segment] {
				if err := r.page(ctx, segment); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return r.Position.State.Counts, err
}

// page seals the next items of a part of the table again.
func (r *Reseal) page(ctx context.Context, segment int) error {
	state := &r.Position.State
	found, next, err := dynamo.ScanSealed(ctx, r.Table, segment, resealSegments, state.After[segment])
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
	defer r.mu.Unlock()
	state.Counts.add(page)
	state.After[segment], state.Done[segment] = next, next == dynamo.ScanPosition{}
	return r.Position.Save()
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

// ResealState is how far a pass over the table has come.
type ResealState struct {
	After  [resealSegments]dynamo.ScanPosition `json:"after"`
	Done   [resealSegments]bool                `json:"done"`
	Counts ResealCounts                        `json:"counts"`
}
