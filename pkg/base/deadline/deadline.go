// Package deadline divides the time of a Lambda invocation: work ends a little
// before the function does, and what must be finished may outlive a
// cancellation. Deadlines of contexts are of the system's clock, whatever
// clock a caller is given.
package deadline

import (
	"context"
	"math"
	"time"
)

// Left is how long it is until ctx ends; very long where it has no deadline.
func Left(ctx context.Context) time.Duration {
	end, limited := ctx.Deadline()
	if !limited {
		return math.MaxInt64
	}
	return time.Until(end)
}

// Before returns a context that ends the margin before ctx does, so that time
// is left for an answer.
func Before(ctx context.Context, margin time.Duration) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-margin))
}

// Finish returns a context for work that must be finished although ctx was
// cancelled or its time is up. It ends the margin before ctx's deadline, or
// after it where the margin is negative, and after the limit at the latest.
func Finish(ctx context.Context, margin, limit time.Duration) (context.Context, context.CancelFunc) {
	detached := context.WithoutCancel(ctx)
	if left := Left(ctx); left < math.MaxInt64 {
		limit = min(limit, left-margin)
	}
	return context.WithTimeout(detached, limit)
}
