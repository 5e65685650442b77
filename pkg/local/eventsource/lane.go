package eventsource

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A lane delivers a part of a shard in order, with a checkpoint of its own, as if it were a shard. Every record of one
// partition key falls to the same lane.
type lane struct {
	key      string // of its checkpoint
	stream   *Stream
	delivery delivery
	ahead    *ahead
	fed      chan struct{} // takes one

	mu      sync.Mutex
	waiting []record  // passed the filter, not yet delivered
	since   time.Time // when the first of them came
	from    string    // what it was past at first, until records come that are behind that
	scanned string    // the last sequence number that was read for it, "" before the first
	closed  bool      // nothing more will come
}

func newLane(s *Stream, key, at string, held *ahead) *lane {
	l := &lane{key: key, stream: s, ahead: held, from: at, fed: make(chan struct{}, 1)}
	l.delivery = delivery{
		function: s.function, host: s.feed.cfg.Host, partial: s.cfg.ReportBatchItemFailures, bisect: s.cfg.BisectBatch,
		maxAttempts: -1, retryMin: s.cfg.RetryMin, retryMax: s.cfg.RetryMax,
		past: func(r record) error { return s.progress.set(key, r.id) },
	}
	if s.cfg.MaximumRetryAttempts != nil {
		l.delivery.maxAttempts = *s.cfg.MaximumRetryAttempts
	}
	if s.cfg.MaximumRecordAge != nil {
		l.delivery.maxAge = *s.cfg.MaximumRecordAge
	}
	return l
}

// feed gives the lane its part of a page that ends with the sequence number scanned.
func (l *lane) feed(part []record, scanned string, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from != "" && scanned != "" {
		// Another lane was behind this one when reading began.
		part = slices.DeleteFunc(part, func(r record) bool { return compareSequences(r.id, l.from) <= 0 })
		if compareSequences(scanned, l.from) < 0 {
			scanned = l.from
		} else {
			l.from = ""
		}
	}
	if scanned == l.scanned && closed == l.closed {
		return
	}
	if len(l.waiting) == 0 {
		l.since = l.stream.feed.cfg.Now()
	}
	l.ahead.add(part)
	l.waiting, l.scanned, l.closed = append(l.waiting, part...), scanned, closed
	select {
	case l.fed <- struct{}{}:
	default:
	}
}

// run delivers until the lane is closed and empty. Its error is errNotFinished when ctx ended first, else one of the
// checkpoints.
func (l *lane) run(ctx context.Context) error {
	for {
		batch, left, closed, err := l.take()
		if err != nil {
			return err
		}
		if len(batch) > 0 {
			if err := l.delivery.deliver(ctx, batch); err != nil {
				return err
			}
			l.ahead.remove(batch)
			continue
		}
		if closed {
			return nil
		}
		if err := l.await(ctx, left); err != nil {
			return err
		}
	}
}

// take returns the next batch when it is full or its window is over, or everything is when the lane is closed; else how
// long its window is still open, 0 when nothing waits. When nothing waits, what was filtered out is past as well.
func (l *lane) take() (batch []record, left time.Duration, closed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		if l.scanned != "" {
			err = l.stream.progress.pass(l.key, l.scanned)
		}
		return nil, 0, l.closed, err
	}
	n := fitting(l.waiting, l.stream.cfg.BatchSize)
	full := n < len(l.waiting) || n == l.stream.cfg.BatchSize
	now := l.stream.feed.cfg.Now()
	if left = l.since.Add(l.stream.cfg.MaximumBatchingWindow).Sub(now); left > 0 && !full && !l.closed {
		return nil, left, false, nil
	}
	batch, l.waiting, l.since = l.waiting[:n:n], l.waiting[n:], now
	if len(l.waiting) == 0 {
		l.waiting = nil
	}
	return batch, 0, false, nil
}

// await returns when the lane was fed, or after d unless that is 0. Its error is errNotFinished when ctx ended.
func (l *lane) await(ctx context.Context, d time.Duration) error {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return errNotFinished
	case <-l.fed:
	case <-over:
	}
	return nil
}

// ahead bounds the bytes of events that were read and are not delivered.
type ahead struct {
	most int
	room chan struct{} // takes one: some were delivered

	mu    sync.Mutex
	bytes int
}

func newAhead(most int) *ahead { return &ahead{most: most, room: make(chan struct{}, 1)} }

func (a *ahead) add(records []record) { a.change(records, 1) }

func (a *ahead) remove(records []record) {
	a.change(records, -1)
	select {
	case a.room <- struct{}{}:
	default:
	}
}

func (a *ahead) change(records []record, sign int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range records {
		a.bytes += sign * r.size
	}
}

func (a *ahead) full() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes > a.most
}

// await returns when there is room, or ctx ends.
func (a *ahead) await(ctx context.Context) {
	for a.full() {
		select {
		case <-ctx.Done():
			return
		case <-a.room:
		}
	}
}
