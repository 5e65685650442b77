// Package parallel does the same with each element of a sequence, several at a
// time. An element that is alone is done in the caller's goroutine: most batches
// hold one event, and in a new goroutine each call of the AWS SDK would first
// grow the stack.
package parallel

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// Each calls do for all elements, at most limit (1 or more) at a time, and
// returns after the last call.
func Each[K, V any](limit int, all iter.Seq2[K, V], do func(K, V)) {
	_ = UntilError(context.Background(), limit, all, func(_ context.Context, k K, v V) error {
		do(k, v)
		return nil
	})
}

// UntilError calls do like [Each] and returns the first error, which cancels the
// context that all calls share. Calls that have not begun are still made.
func UntilError[K, V any](ctx context.Context, limit int, all iter.Seq2[K, V], do func(context.Context, K, V) error) error {
	var calls []func(context.Context) error
	for k, v := range all {
		calls = append(calls, func(ctx context.Context) error { return do(ctx, k, v) })
	}
	if len(calls) == 1 {
		return calls[0](ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for _, call := range calls {
		group.Go(func() error { return call(ctx) })
	}
	return group.Wait()
}
