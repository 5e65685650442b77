package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// maxOutcomesPerTransaction leaves room for a counter shard, a finished hour
	// and a finished day with each delivery.
	maxOutcomesPerTransaction = webhook.MaxOutcomeWrites / 4
	// maxWriteConflicts bounds the tries to write outcomes that other writers
	// are changing.
	maxWriteConflicts = 20
	// throttledPause is the first pause before a throttled table is asked
	// again; it doubles up to throttledPauseMost. An attempt that is not
	// recorded is made again, so the table is asked as long as there is time.
	throttledPause     = 50 * time.Millisecond
	throttledPauseMost = 2 * time.Second
)

// record writes the outcomes of attempts. A message whose outcome cannot be
// written fails; it does not stop the others.
//
// A trouble-free attempt is written at half of the cost and left to
// the stream to count, within a second or two. While this process knows of
// trouble of the endpoint, attempts are counted with their outcome: circuits,
// lanes and the disabling of endpoints depend on how many failed of them, and in
// which order. For the same reason, and so that an upgrade loses no count, all
// are while the stream is not counted or lags.
func (w *Worker) record(ctx context.Context, messages []*message) {
	now := w.now()
	var counted, uncounted []*message
	for _, m := range messages {
		if m.troubleFree() && !w.health.troubled(m.ref.EndpointID, now) && w.stream.leaves(ctx, now) {
			uncounted = append(uncounted, m)
		} else {
			counted = append(counted, m)
		}
	}
	for together := range slices.Chunk(uncounted, maxOutcomesPerTransaction) {
		w.recordTogether(ctx, together, w.recordEach)
	}
	for together := range slices.Chunk(counted, maxOutcomesPerTransaction) {
		w.recordTogether(ctx, together, w.recordAll)
	}
}

// troubleFree reports whether the attempt was a quick success of an endpoint in
// its normal state. Tests do not count.
func (m *message) troubleFree() bool {
	e, o, d := m.input.Endpoint, m.attempt.outcome, m.input.Delivery
	return o.Result == webhook.AttemptSucceeded && o.Attempt.Duration() <= webhook.SlowAttempt && !d.Test && !d.Probe && !e.Unsettled()
}

func (w *Worker) recordTogether(ctx context.Context, messages []*message, write func(context.Context, []*message) error) {
	err := write(ctx, messages)
	if err == nil {
		return
	}
	for _, m := range messages {
		switch {
		case m.attempt.recorded:
		case fault.Is(err, fault.Unavailable) || ctx.Err() != nil || len(messages) == 1:
			m.fail(fmt.Errorf("write the outcome of delivery %s: %w", m.input.Delivery.ID, err))
		default:
			w.recordTogether(ctx, []*message{m}, write)
		}
	}
}

// recordAll writes the outcomes in one transaction with the counter shards
// that count them. After a conflict it merges the other writers' state and
// tries again.
func (w *Worker) recordAll(ctx context.Context, messages []*message) error {
	shards, err := w.takeShards(ctx, messages)
	if err != nil {
		return err
	}
	defer w.returnShards(shards)
	return w.writeOutcomes(ctx, messages, shards, w.store.RecordOutcomes)
}

// recordEach writes the outcomes, each on its own, and leaves the attempts to
// the stream to count.
func (w *Worker) recordEach(ctx context.Context, messages []*message) error {
	return w.writeOutcomes(ctx, messages, nil,
		func(ctx context.Context, changes []webhook.DeliveryChange, _ []webhook.CounterShardWrite) (*webhook.WriteConflict, error) {
			return w.store.RecordEach(ctx, changes)
		})
}

type recordFunc = func(context.Context, []webhook.DeliveryChange, []webhook.CounterShardWrite) (*webhook.WriteConflict, error)

func (w *Worker) writeOutcomes(ctx context.Context, messages []*message, shards []*takenShard, record recordFunc) error {
	var outcomes []*outcome
	for _, m := range messages {
		m.attempt.random = w.cfg.Random()
		outcomes = append(outcomes, &outcome{message: m, previous: m.input.Delivery})
	}
	return retry.Contended(ctx, maxWriteConflicts, func() (done bool, err error) {
		t := plan(outcomes, shards, w.health.known, w.now())
		var conflict *webhook.WriteConflict
		err = retryWhileThrottled(ctx, func() error {
			conflict, err = record(ctx, t.changes, t.counts)
			return err
		})
		if err != nil {
			return false, err
		}
		outcomes = t.merge(conflict)
		return len(outcomes) == 0, nil
	})
}

// outcome is one delivery's part of a transaction.
type outcome struct {
	*message

	previous *webhook.Delivery // the write depends on it
	next     *webhook.Delivery // nil: to be planned
}

// transaction is a try to write outcomes. Its writes have the order of
// outcomes and shards.
type transaction struct {
	outcomes []*outcome
	shards   []*takenShard // those that count something
	changes  []webhook.DeliveryChange
	counts   []webhook.CounterShardWrite
}

// plan computes the writes. Each outcome keeps the next delivery that was
// planned for it, so that the table recognizes a write whose answer was lost.
func plan(outcomes []*outcome, shards []*takenShard, known func(*webhook.Endpoint) webhook.Health, now value.Time) *transaction {
	t := &transaction{outcomes: outcomes}
	for _, o := range outcomes {
		if o.next == nil {
			o.next = o.deliveryAfter(now)
		}
		t.changes = append(t.changes, webhook.DeliveryChange{Previous: o.previous, Next: o.next})
	}
	for _, s := range shards {
		var attempts []webhook.Attempt
		var events webhook.EventDay
		for _, o := range outcomes {
			if o.ref.EndpointID == s.endpoint.ID && !o.input.Delivery.Test {
				attempts = append(attempts, o.attempt.outcome.Attempt)
				events.Count(o.previous, o.next)
			}
		}
		if len(attempts) == 0 {
			continue
		}
		slices.SortStableFunc(attempts, func(a, b webhook.Attempt) int {
			return cmp.Compare(a.End(), b.End())
		})
		next, finished := s.Shard.Add(attempts, known(s.endpoint), now)
		t.shards = append(t.shards, s)
		t.counts = append(t.counts, webhook.CounterShardWrite{
			OrganizationID: s.endpoint.OrganizationID, ApplicationID: s.endpoint.ApplicationID, EndpointID: s.endpoint.ID,
			Number: s.Number, Revision: s.Revision, Next: next, Finished: finished, FinishedDay: next.CountEvents(events, now),
		})
	}
	return t
}

// deliveryAfter is the delivery after the attempt.
func (o *outcome) deliveryAfter(now value.Time) *webhook.Delivery {
	e := o.input.Endpoint
	next := o.previous.Record(o.attempt.outcome, o.from.nameAfter(o.previous.AttemptCount+1), e.RetryCount, o.attempt.random, now)
	switch {
	case !next.Pending():
	case o.attempt.disabled:
		return next.Hold(webhook.HeldDisabled, now)
	case o.input.Delivery.Probe && e.Circuit.Open():
		return next.Hold(webhook.HeldCircuitOpen, now)
	}
	return next
}

// merge takes over the written state, or the state that other writers wrote
// instead, and returns the outcomes that are still to be written. An outcome
// is dropped when another attempt has taken its number, and counts it. A
// change without an attempt, such as a hold, does not undo an outcome.
func (t *transaction) merge(conflict *webhook.WriteConflict) []*outcome {
	if conflict == nil {
		for i, s := range t.shards {
			s.Revision, s.Shard = s.Revision+1, t.counts[i].Next
		}
		for _, o := range t.outcomes {
			o.recorded(o.next, true)
		}
		return nil
	}
	for i, stored := range conflict.Shards {
		t.shards[i].StoredCounterShard, t.shards[i].contested = stored, true
	}
	var left []*outcome
	for i, o := range t.outcomes {
		current, changed := conflict.Deliveries[i]
		switch {
		case conflict.Recorded[i]:
			o.recorded(o.next, true)
			continue
		case changed && (current == nil || current.AttemptCount != o.previous.AttemptCount):
			o.recorded(current, false)
			continue
		case changed:
			o.previous, o.next = current, nil
		}
		left = append(left, o)
	}
	return left
}

func (o *outcome) recorded(d *webhook.Delivery, counted bool) {
	o.attempt.recorded, o.attempt.counted, o.attempt.delivery = true, counted, d
}

// retryWhileThrottled does something until it succeeds, fails for another
// reason than a throttled table, or time has run out.
func retryWhileThrottled(ctx context.Context, do func() error) error {
	for delay := throttledPause; ; delay = min(2*delay, throttledPauseMost) {
		err := do()
		if err == nil || !fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			return err
		}
		if pauseErr := pause.For(ctx, delay); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}
