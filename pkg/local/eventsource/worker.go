package eventsource

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A shardWorker processes the records of a shard whose partition keys fall to it, in order and with a checkpoint of its
// own, as if they were a shard.
type shardWorker struct {
	key       string // of its checkpoint
	stream    *Stream
	processor batchProcessor
	backlog   *backlog      // of all workers of the shard
	fed       chan struct{} // takes one

	mu      sync.Mutex
	waiting []record  // passed the filter, not yet processed
	since   time.Time // when the first of them came
	from    string    // its first position, until records behind that come
	scanned string    // the last sequence number that was read for it, "" before the first
	closed  bool      // nothing more will come
}

func newShardWorker(s *Stream, key, at string, held *backlog) *shardWorker {
	w := &shardWorker{key: key, stream: s, backlog: held, from: at, fed: make(chan struct{}, 1)}
	w.processor = batchProcessor{
		function: s.function, host: s.feed.cfg.Host, partial: s.cfg.ReportBatchItemFailures, bisect: s.cfg.BisectBatch,
		retryMin: s.cfg.RetryMin, retryMax: s.cfg.RetryMax,
		checkpoint: func(r record) error { return s.progress.set(key, r.id) },
	}
	return w
}

// feed gives the worker its records of a page that ends with the sequence number scanned.
func (w *shardWorker) feed(records []record, scanned string, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.from != "" && scanned != "" {
		// Another worker was behind this one when reading began.
		records = slices.DeleteFunc(records, func(r record) bool { return compareSequences(r.id, w.from) <= 0 })
		if compareSequences(scanned, w.from) < 0 {
			scanned = w.from
		} else {
			w.from = ""
		}
	}
	if scanned == w.scanned && closed == w.closed {
		return
	}
	if len(w.waiting) == 0 {
		w.since = w.stream.feed.cfg.Now()
	}
	w.backlog.add(records, 1)
	w.waiting, w.scanned, w.closed = append(w.waiting, records...), scanned, closed
	select {
	case w.fed <- struct{}{}:
	default:
	}
}

// run processes batches until the worker is closed and has none left. Its error is errNotFinished when ctx ended first,
// else one of the checkpoints.
func (w *shardWorker) run(ctx context.Context) error {
	for {
		batch, left, closed, err := w.take()
		if err != nil {
			return err
		}
		if len(batch) > 0 {
			if err := w.processor.process(ctx, batch); err != nil {
				return err
			}
			w.backlog.add(batch, -1)
			continue
		}
		if closed {
			return nil
		}
		if err := w.await(ctx, left); err != nil {
			return err
		}
	}
}

// take returns the next batch if it is full, its window is over or the worker is closed, else how long the window is
// still open, 0 when nothing waits. When nothing waits, the checkpoint moves behind the records that the filter
// dropped.
func (w *shardWorker) take() (batch []record, left time.Duration, closed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		if w.scanned != "" {
			err = w.stream.progress.setFiltered(w.key, w.scanned)
		}
		return nil, 0, w.closed, err
	}
	n := fitting(w.waiting, w.stream.cfg.BatchSize)
	full := n < len(w.waiting) || n == w.stream.cfg.BatchSize
	now := w.stream.feed.cfg.Now()
	if left = w.since.Add(w.stream.cfg.MaximumBatchingWindow).Sub(now); left > 0 && !full && !w.closed {
		return nil, left, false, nil
	}
	batch, w.waiting, w.since = w.waiting[:n:n], w.waiting[n:], now
	if len(w.waiting) == 0 {
		w.waiting = nil
	}
	return batch, 0, false, nil
}

// await returns when the worker was fed, or after d unless that is 0. Its error is errNotFinished when ctx ended.
func (w *shardWorker) await(ctx context.Context, d time.Duration) error {
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
