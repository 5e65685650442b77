package auth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// readTimeout bounds one reading of keys, secrets, credentials or applications.
const readTimeout = 3 * time.Second

// ages bound for how long the readings of a source are used.
type ages struct {
	fresh   time.Duration // readings this old are made again
	stale   time.Duration // readings this old are used while that fails
	unknown time.Duration // least time between readings that tokens of unknown keys cause
	failed  time.Duration // least time after a reading that failed
}

// source keeps what was read last. Nothing reads in the background, because Lambda
// freezes a function between requests: a request that needs a newer reading makes it,
// and those that come meanwhile wait for it. It is safe for concurrent use.
type source[V any] struct {
	what string // is read
	read func(context.Context) (V, error)
	now  func() time.Time
	ages ages

	mu       sync.Mutex
	last     *sourced[V] // nil before the first reading
	failedAt time.Time
	failure  error // of the last reading; nil when it succeeded
}

// sourced is one reading. Readings are compared by identity.
type sourced[V any] struct {
	value V
	at    time.Time // before it was made
}

// get returns the last reading, or a new one when that is old.
func (s *source[V]) get(ctx context.Context) (*sourced[V], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.last != nil && now.Sub(s.last.at) < s.ages.fresh {
		return s.last, nil
	}
	err := s.refresh(ctx, now)
	if err != nil && (s.last == nil || now.Sub(s.last.at) >= s.ages.stale) {
		return nil, err
	}
	return s.last, nil
}

// newer returns a reading after the given one, or the same when that is too young
// to read again for an unknown key.
func (s *source[V]) newer(ctx context.Context, than *sourced[V]) (*sourced[V], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); s.last == than && now.Sub(than.at) >= s.ages.unknown {
		if err := s.refresh(ctx, now); err != nil {
			return nil, err
		}
	}
	return s.last, nil
}

// refresh reads, unless that has just failed. It serves all who wait, so it outlives
// the caller. That a reading fails is our error, and never makes a token wrong.
func (s *source[V]) refresh(ctx context.Context, now time.Time) error {
	if s.failure != nil && now.Sub(s.failedAt) < s.ages.failed {
		return s.failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	v, err := s.read(ctx)
	if err != nil {
		s.failure, s.failedAt = fault.Busy(fmt.Errorf("read %s: %w", s.what, err)), now
		return s.failure
	}
	s.last, s.failure = &sourced[V]{v, now}, nil
	return nil
}
