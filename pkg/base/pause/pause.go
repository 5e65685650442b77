// Package pause waits without outliving a context. It is for the pauses
// between tries; how long they are and how many is left to the caller.
package pause

import (
	"context"
	"time"
)

// For returns after d, or with the context's error when that is done first.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
