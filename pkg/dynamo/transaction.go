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
	"github.com/commerce-integration/service/pkg/value"
)

// write is one write of a transaction.
type write = types.TransactWriteItem

// refused lists the writes of a transaction whose condition did not hold, by
// their position. Nothing was written.
type refused []int

func (r refused) Error() string { return "a condition of the transaction does not hold" }

// has reports whether the write at the position was refused.
func (r refused) has(position int) bool { return slices.Contains(r, position) }

// refusal is a write of a transaction whose condition did not hold, and the
// item as it is where the write asks for it, nil when there is none.
type refusal struct {
	position int
	current  item
}

// transactionAttempts bounds the tries of a transaction that meets others on
// the same items; with the pauses between them it takes up to two seconds.
const transactionAttempts = 12

// transact makes all of the writes or none. When conditions do not hold the
// error is refused.
func (t *db) transact(ctx context.Context, tried string, writes ...write) error {
	refusals, err := t.commit(ctx, tried, 1, writes)
	if len(refusals) == 0 || err != nil {
		return err
	}
	failed := make(refused, len(refusals))
	for i, r := range refusals {
		failed[i] = r.position
	}
	return failed
}

// commit makes all of the writes or none; where there are refusals nothing was
// written. A transaction that collides with another one is tried again, since
// a collision says nothing about the conditions. One that the table throttles,
// fails at or does not answer is tried so many times in all, under the same
// token: by that the table knows a transaction that it has already made, so
// that its repetition is a success and not a failed condition.
func (t *db) commit(ctx context.Context, tried string, tries int, writes []write) ([]refusal, error) {
	token := value.NewRandomID().String()
	for attempt := 1; ; attempt++ {
		_, err := t.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: writes, ClientRequestToken: &token,
		})
		if err == nil {
			return nil, nil
		}
		failed, collided := cancellation(err)
		if len(failed) > 0 {
			return failed, nil
		}
		err = wrap(tried, err)
		switch {
		case collided && attempt < transactionAttempts:
			token = value.NewRandomID().String()
		case collided:
			return nil, fault.Busy(err)
		case tries <= 1 || !fault.Is(err, fault.Unavailable):
			return nil, err
		default:
			tries--
		}
		if waitErr := backOff(ctx, attempt); waitErr != nil {
			return nil, err
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
func cancellation(err error) (failed []refusal, collided bool) {
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
			failed = append(failed, refusal{i, reason.Item})
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			collided = true
		}
	}
	return failed, collided
}
