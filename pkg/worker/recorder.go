package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/pause"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// together is how many outcomes are written at once: each row may have a
	// tally and a finished hour of its own beside it.
	together = webhook.MaxOutcomeWrites / 3
	// clashes bounds the writes of outcomes that others are changing.
	clashes = 20
	// busyPause is the first pause before a busy table is asked again; it
	// doubles up to busyPauseMost. What is not recorded is sent twice, so that
	// the table is asked as long as there is time.
	busyPause     = 50 * time.Millisecond
	busyPauseMost = 2 * time.Second
)

// record writes the outcomes of attempts, brings their messages to their
// ends and judges the endpoints.
func (w *Worker) record(ctx context.Context, tasks []*task) {
	ctx, cancel := finishing(ctx)
	defer cancel()
	for some := range slices.Chunk(tasks, together) {
		w.write(ctx, some)
	}
	w.await(ctx, tasks)
	w.judge(ctx, tasks)
}

// write writes the outcomes of some tasks. One that cannot be written does
// not stop the others.
func (w *Worker) write(ctx context.Context, tasks []*task) {
	err := w.writeAll(ctx, tasks)
	if err == nil {
		return
	}
	for _, t := range tasks {
		if t.settled {
			continue
		}
		if fault.Is(err, fault.Unavailable) || ctx.Err() != nil || len(tasks) == 1 {
			t.err = fmt.Errorf("write the outcome of row %s: %w", t.delivery.Delivery.ID, err)
		} else {
			w.write(ctx, []*task{t})
		}
	}
}

// entry is an outcome on its way into the table.
type entry struct {
	*task

	previous *webhook.Delivery // on which the write depends
	number   int               // attempts before this one
	random   float64
}

// writeAll writes the outcomes together with the tallies that count them,
// until all are in the table or another's are in their place.
func (w *Worker) writeAll(ctx context.Context, tasks []*task) error {
	entries := make([]*entry, len(tasks))
	for i, t := range tasks {
		e := &entry{task: t, previous: t.delivery.Delivery, number: t.delivery.Delivery.AttemptCount, random: w.cfg.Random()}
		e.plan(w.now())
		entries[i] = e
	}
	books, err := w.open(ctx, entries)
	if err != nil {
		return err
	}
	defer w.closeAll(books)
	for range clashes {
		if len(entries) == 0 {
			return nil
		}
		outcomes, counts := w.compose(entries, books)
		clash, err := w.persist(ctx, outcomes, counts)
		if err != nil {
			return err
		}
		if clash == nil {
			for _, e := range entries {
				e.settled, e.counted = true, true
			}
			for _, c := range counts {
				c.book.Revision, c.book.Shard = c.Revision+1, c.Next
			}
			return nil
		}
		for i, stored := range clash.Shards {
			counts[i].book.StoredCounterShard, counts[i].book.contested = stored, true
		}
		entries = w.resolve(entries, clash)
	}
	return fault.Busy(fmt.Errorf("others were faster %d times", clashes))
}

// plan makes the row as it is after the attempt.
func (e *entry) plan(now value.Time) {
	next := e.previous.Record(e.outcome, e.carrier(e.number+1), e.delivery.Endpoint.RetryCount, e.random, now)
	switch {
	case !next.Pending():
	case e.disabled:
		next = next.Hold(webhook.HeldDisabled, now)
	case e.delivery.Delivery.Probe && e.delivery.Endpoint.Circuit.Open():
		next = next.Hold(webhook.HeldCircuitOpen, now)
	}
	e.row = next
}

// book is the tally that counts the attempts of an endpoint.
type book struct {
	*tally

	endpoint *webhook.Endpoint
}

// open takes a tally for each endpoint that is to be counted for, in the
// order of the endpoints.
func (w *Worker) open(ctx context.Context, entries []*entry) ([]*book, error) {
	var books []*book
	for _, e := range entries {
		known := slices.ContainsFunc(books, func(b *book) bool { return b.endpoint.ID == e.ref.EndpointID })
		if !e.delivery.Delivery.Test && !known {
			books = append(books, &book{endpoint: e.delivery.Endpoint})
		}
	}
	slices.SortFunc(books, func(a, b *book) int { return a.endpoint.ID.Compare(b.endpoint.ID) })
	for i, b := range books {
		var err error
		if b.tally, err = w.tally(ctx, b.endpoint); err != nil {
			w.closeAll(books[:i])
			return nil, err
		}
	}
	return books, nil
}

// tally takes a tally of the endpoint; a busy table is asked again.
func (w *Worker) tally(ctx context.Context, e *webhook.Endpoint) (taken *tally, err error) {
	err = insist(ctx, func() error {
		taken, err = w.tallies.take(ctx, e.OrganizationID, e.ID)
		return err
	})
	return taken, err
}

func (w *Worker) closeAll(books []*book) {
	for _, b := range books {
		w.tallies.giveBack(b.tally)
	}
}

// count is the write of a book.
type count struct {
	webhook.CounterShardWrite

	book *book
}

// compose returns what is to be written: the rows, and of the books that
// count something the tallies.
func (w *Worker) compose(entries []*entry, books []*book) ([]webhook.DeliveryChange, []count) {
	outcomes := make([]webhook.DeliveryChange, len(entries))
	for i, e := range entries {
		outcomes[i] = webhook.DeliveryChange{Previous: e.previous, Next: e.row}
	}
	now := w.now()
	var counts []count
	for _, b := range books {
		var attempts []webhook.Attempt
		for _, e := range entries {
			if e.ref.EndpointID == b.endpoint.ID && !e.delivery.Delivery.Test {
				attempts = append(attempts, e.outcome.Attempt)
			}
		}
		if len(attempts) == 0 {
			continue
		}
		slices.SortStableFunc(attempts, func(a, b webhook.Attempt) int {
			return cmp.Compare(a.At.Add(a.Duration()), b.At.Add(b.Duration()))
		})
		next, finished := b.Shard.Add(attempts, w.pulses.known(b.endpoint), now)
		counts = append(counts, count{webhook.CounterShardWrite{
			OrganizationID: b.endpoint.OrganizationID, EndpointID: b.endpoint.ID,
			Number: b.Number, Revision: b.Revision, Next: next, Finished: finished,
		}, b})
	}
	return outcomes, counts
}

// persist writes outcomes; a busy table is asked again.
func (w *Worker) persist(ctx context.Context, outcomes []webhook.DeliveryChange, counts []count) (clash *webhook.WriteConflict, err error) {
	writes := make([]webhook.CounterShardWrite, len(counts))
	for i, c := range counts {
		writes[i] = c.CounterShardWrite
	}
	err = insist(ctx, func() error {
		clash, err = w.store.RecordOutcomes(ctx, outcomes, writes)
		return err
	})
	return clash, err
}

// insist does something until it fails for another reason than that the
// table is busy, or there is no time.
func insist(ctx context.Context, do func() error) error {
	for delay := busyPause; ; delay = min(2*delay, busyPauseMost) {
		err := do()
		if err == nil || !fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			return err
		}
		if pauseErr := pause.For(ctx, delay); pauseErr != nil {
			return errors.Join(err, pauseErr)
		}
	}
}

// resolve goes by what others have written instead. An outcome whose number
// another attempt has taken is dropped, and counted by that one; what changed
// without an attempt, as a hold does, does not undo the outcome.
func (w *Worker) resolve(entries []*entry, clash *webhook.WriteConflict) []*entry {
	var left []*entry
	for i, e := range entries {
		current, changed := clash.Deliveries[i]
		switch {
		case clash.Recorded[i]:
			e.settled, e.counted = true, true
		case !changed:
			left = append(left, e)
		case current == nil || current.AttemptCount != e.number:
			e.row, e.settled = current, true
		default:
			e.previous = current
			e.plan(w.now())
			left = append(left, e)
		}
	}
	return left
}

// await keeps the messages whose rows have an attempt ahead that no due mark
// brings until it is due: hidden, or, when too many are, as delayed messages
// in their place.
func (w *Worker) await(ctx context.Context, tasks []*task) {
	now := w.now()
	hidings := map[webhook.Lane][]sqsqueue.VisibilityChange{}
	moves := map[webhook.Lane][]*task{}
	for _, t := range tasks {
		if t.err != nil || t.row == nil || !t.row.Pending() {
			continue
		}
		turn, wait := turnOf(t.row, t, now)
		if turn == drop {
			continue
		}
		t.err, t.wait = errLater, wait
		if t.carries(t.row) && w.queue.TooManyInFlight(ctx, t.lane) {
			to := t.delivery.Endpoint.Lane
			moves[to] = append(moves[to], t)
			continue
		}
		hidings[t.lane] = append(hidings[t.lane], t.hiding())
	}
	for to, some := range moves {
		if err := w.delay(ctx, to, some); err != nil {
			w.cfg.Logger.WarnContext(ctx, "retries are kept in a crowded queue", "messages", len(some), "error", err)
			for _, t := range some {
				hidings[t.lane] = append(hidings[t.lane], t.hiding())
			}
		}
	}
	for lane, some := range hidings {
		if err := w.queue.ChangeVisibility(ctx, lane, some...); err != nil {
			w.cfg.Logger.WarnContext(ctx, "retries wait for the queue's own timeout", "messages", len(some), "error", err)
		}
	}
}

func (t *task) hiding() sqsqueue.VisibilityChange {
	return sqsqueue.VisibilityChange{Receipt: t.message.ReceiptHandle, For: t.wait}
}

// delay sends delayed messages in the place of these, which are done.
func (w *Worker) delay(ctx context.Context, to webhook.Lane, tasks []*task) error {
	moves := make([]sqsqueue.Move, len(tasks))
	for i, t := range tasks {
		moves[i] = sqsqueue.Move{Ref: t.ref, MessageID: t.row.MessageID, Delay: t.wait}
	}
	if err := w.queue.Move(ctx, to, moves...); err != nil {
		return err
	}
	for _, t := range tasks {
		t.err = nil
	}
	return nil
}
