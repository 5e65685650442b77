package ops

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
)

// maxResealPasses bounds the passes over the table. Only items that change
// between their reading and their writing need another one.
const maxResealPasses = 5

// ResealCounts counts items that hold something sealed.
type ResealCounts struct {
	Items      int `json:"items"`
	Resealed   int `json:"resealed"`
	Left       int `json:"left"`       // under an older key that opens
	Unreadable int `json:"unreadable"` // under a key that is gone, or damaged
}

// Reseal opens what an older service key sealed, and seals it under the current
// one: the secrets and headers of endpoints, the secrets of sources, and the kept answers of requests
// that name an idempotency key.
type Reseal struct {
	Table *dynamo.Table
	Box   *sealed.Box
	Clock func() time.Time
	// DryRun only counts: what is under an older key is left.
	DryRun bool
	// Unreadable is called for each item that cannot be opened, one at a time.
	Unreadable func(item string, err error)

	mu     sync.Mutex   // of the counts and Unreadable
	counts ResealCounts // of the pass
}

// Run goes over the table until a pass finds nothing under an older key. Each
// item is replaced only when it has not changed since it was read, so that it
// may run beside the service, be killed and run twice.
func (r *Reseal) Run(ctx context.Context) (ResealCounts, error) {
	resealed := 0
	for range maxResealPasses {
		r.counts = ResealCounts{}
		err := r.Table.EachSealed(ctx, r.item)
		again := r.counts.Resealed+r.counts.Left > 0
		resealed += r.counts.Resealed
		r.counts.Resealed = resealed
		if err != nil || r.DryRun || !again {
			return r.counts, err
		}
	}
	return r.counts, nil
}

// item seals one item again, and counts what became of it.
func (r *Reseal) item(ctx context.Context, s *dynamo.SealedItem) error {
	changed, err := r.again(s)
	unreadable, done := errors.Is(err, sealed.ErrUnopened), false
	if changed && !unreadable && !r.DryRun && err == nil {
		done, err = r.Table.ReplaceSealed(ctx, s)
	}
	if err != nil && !unreadable {
		return fmt.Errorf("reseal %s: %w", s, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Items++
	switch {
	case unreadable:
		r.counts.Unreadable++
		r.Unreadable(s.String(), err)
	case done:
		r.counts.Resealed++
	case changed:
		r.counts.Left++ // it was changed meanwhile: the next pass looks at it
	}
	return nil
}

func (r *Reseal) again(s *dynamo.SealedItem) (changed bool, err error) {
	before, now := *s, value.TimeOf(r.Clock())
	switch {
	case s.Endpoint != nil:
		s.Endpoint, err = s.Endpoint.Reseal(r.Box.Again, now)
		return s.Endpoint != before.Endpoint, err
	case s.Source != nil:
		s.Source, err = s.Source.Reseal(r.Box.Again, now)
		return s.Source != before.Source, err
	}
	next, err := s.Request.Reseal(r.Box.AgainBytes)
	changed = string(next) != string(s.Request.Answer)
	s.Request.Answer = next
	return changed, err
}
