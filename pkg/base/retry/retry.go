// Package retry repeats writes that met another writer. A write says what it
// was based on; when the stored state differs it is computed anew from that
// state, a bounded number of times with random pauses in between. What a try
// does is left to the caller.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/pause"
)

// ErrContended is the cause of what [Contended] returns when every try met
// another writer.
var ErrContended = errors.New("others were faster")

// Contended calls try until it is done or fails, up to so many times. A try
// that is not done has met another writer. When all have, the error is a fault
// of kind Unavailable.
func Contended(ctx context.Context, tries int, try func() (done bool, err error)) error {
	for attempt := range tries {
		if attempt > 0 {
			if err := Backoff(ctx, attempt); err != nil {
				return fault.Busy(fmt.Errorf("wait for other writers: %w", err))
			}
		}
		if done, err := try(); done || err != nil {
			return err
		}
	}
	return fault.Busy(fmt.Errorf("%w %d times", ErrContended, tries))
}

// Backoff waits before another attempt, counted from 1, at what others are
// busy with: a random time, longer from attempt to attempt, at most a quarter
// of a second.
func Backoff(ctx context.Context, attempt int) error {
	longest := min(10*time.Millisecond<<min(attempt, 5), 250*time.Millisecond)
	return pause.For(ctx, rand.N(longest)) //nolint:gosec // jitter is not secret
}
