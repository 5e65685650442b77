package eventsource

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// A streamWorker processes the records whose partition keys fall to it, in order and with a checkpoint of its own.
type streamWorker struct {
	number int
	source *streamSource
	fed    chan struct{} // takes one

	mu      sync.Mutex
	waiting []record  // passed the filter, not yet processed
	since   time.Time // when the first of them came
	scanned string    // the last sequence number that was read for it, at first its checkpoint
}

func newStreamWorker(s *streamSource, number int) *streamWorker {
	return &streamWorker{number: number, source: s, scanned: s.progress.at(number), fed: make(chan struct{}, 1)}
}

// feed gives the worker its records of a page that ends with the sequence number scanned. When reading began, another
// worker may have been behind this one.
func (w *streamWorker) feed(records []record, scanned string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	records = slices.DeleteFunc(records, func(r record) bool { return value.CompareSequences(r.id, w.scanned) <= 0 })
	if value.CompareSequences(scanned, w.scanned) <= 0 {
		return
	}
	if len(w.waiting) == 0 {
		w.since = time.Now()
	}
	w.source.feed.backlog.add(records, 1)
	w.waiting, w.scanned = append(w.waiting, records...), scanned
	select {
	case w.fed <- struct{}{}:
	default:
	}
}

// run processes batches until ctx ends, which is errNotFinished, or a checkpoint fails.
func (w *streamWorker) run(ctx context.Context) error {
	for {
		batch, left, err := w.take()
		switch {
		case err != nil:
		case len(batch) == 0:
			err = w.await(ctx, left)
		default:
			if err = w.process(ctx, batch); err == nil {
				w.source.feed.backlog.add(batch, -1)
			}
		}
		if err != nil {
			return err
		}
	}
}

// take returns the next batch if it is full or its window is over, else how long the window is still open, 0 when
// nothing waits. When nothing waits, the checkpoint moves behind the records that the filter dropped.
func (w *streamWorker) take() (batch []record, left time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.waiting = nil
		return nil, 0, w.source.progress.set(w.number, w.scanned, filteredWriteInterval)
	}
	n := fitting(w.waiting, w.source.cfg.BatchSize)
	full := n < len(w.waiting) || n == w.source.cfg.BatchSize
	if left = time.Until(w.since.Add(w.source.cfg.MaximumBatchingWindow)); left > 0 && !full {
		return nil, left, nil
	}
	batch, w.waiting, w.since = w.waiting[:n:n], w.waiting[n:], time.Now()
	return batch, 0, nil
}

// await returns when the worker was fed, or after d unless that is 0. Its error is errNotFinished when ctx ended.
func (w *streamWorker) await(ctx context.Context, d time.Duration) error {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return errNotFinished
	case <-w.fed:
	case <-over:
	}
	return nil
}

// backlog bounds the bytes of events that were read and are not processed yet.
type backlog struct {
	max   int
	room  chan struct{} // takes one: some were processed
	bytes atomic.Int64
}

func newBacklog(most int) *backlog { return &backlog{max: most, room: make(chan struct{}, 1)} }

// add adds records, or with the sign -1 removes them.
func (b *backlog) add(records []record, sign int) {
	for _, r := range records {
		b.bytes.Add(int64(sign * r.size))
	}
	if sign < 0 {
		select {
		case b.room <- struct{}{}:
		default:
		}
	}
}

// await returns when there is room, or ctx ends.
func (b *backlog) await(ctx context.Context) {
	for b.bytes.Load() > int64(b.max) {
		select {
		case <-ctx.Done():
			return
		case <-b.room:
		}
	}
}
