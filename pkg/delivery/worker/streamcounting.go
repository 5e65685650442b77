package worker

import (
	"context"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// uncountedAgain is when a stream that is not counted is looked at again.
const uncountedAgain = 5 * time.Second

// streamCounting is what this process knows about whether the stream is counted:
// not before a consumer of this release runs, and not while it lags.
type streamCounting struct {
	store Outcomes

	mu    sync.Mutex
	works bool
	again value.Time // when to look again
}

// leaves reports whether attempts may be left to the stream. A table that does
// not answer says no.
func (s *streamCounting) leaves(ctx context.Context, now value.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now < s.again {
		return s.works
	}
	at, err := s.store.Counted(ctx)
	s.works, s.again = err == nil && now < at.Add(webhook.CountedFor), now.Add(uncountedAgain)
	if s.works {
		s.again = now.Add(webhook.CountedEvery)
	}
	return s.works
}
