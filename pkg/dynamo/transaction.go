package dynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/pause"
)

// write is one write of a transaction.
type write = types.TransactWriteItem

// refused lists the writes of a transaction whose condition did not hold, by
// their position. Nothing was written.
type refused []int

func (r refused) Error() string { return "a condition of the transaction does not hold" }

// has reports whether the write at the position was refused.
func (r refused) has(position int) bool { return slices.Contains(r, position) }

// transactionAttempts bounds the tries of a transaction that meets others on
// the same items; with the pauses between them it takes up to two seconds.
const transactionAttempts = 12

// transact makes all of the writes or none. When conditions do not hold the
// error is refused. A transaction that collides with another one is tried
// again, since a collision says nothing about the conditions.
//
// The SDK gives each call a token of its own, so that its own retry of a
// write that already went through is a success and not a failed condition.
func (t *Table) transact(ctx context.Context, tried string, writes ...write) error {
	for attempt := 1; ; attempt++ {
		_, err := t.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
		if err == nil {
			return nil
		}
		failed, collided := cancellation(err)
		switch {
		case len(failed) > 0:
			return failed
		case !collided:
			return wrap(tried, err)
		case attempt == transactionAttempts:
			return fault.Busy(wrap(tried, err))
		}
		if err := backOff(ctx, attempt); err != nil {
			return wrap(tried, err)
		}
	}
}

// backOff waits before another attempt at what others are busy with: a random
// time, longer from attempt to attempt, at most a quarter of a second.
func backOff(ctx context.Context, attempt int) error {
	longest := min(10*time.Millisecond<<attempt, 250*time.Millisecond)
	return pause.For(ctx, rand.N(longest)) //nolint:gosec // jitter is no secret
}

// cancellation reads why a transaction was cancelled: the writes whose
// condition failed, and whether it met another request or too little
// throughput.
func cancellation(err error) (failed refused, collided bool) {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		var conflict *types.TransactionConflictException
		return nil, errors.As(err, &conflict)
	}
	for i, reason := range cancelled.CancellationReasons {
		if reason.Code == nil {
			continue
		}
		switch *reason.Code {
		case "ConditionalCheckFailed":
			failed = append(failed, i)
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			collided = true
		}
	}
	return failed, collided
}
