package eventsource

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// firstPause is the pause after a poll that brought what a source waits for; it doubles with every poll that does not,
	// up to the configured one.
	firstPause = 10 * time.Millisecond
	// spacing is the least time between two polls of which the first has read everything: those who write nudge more often
	// than it is worth a poll.
	spacing = 3 * time.Millisecond
)

// A page is what follows a position.
type page struct {
	changes []*change
	end     string // the position behind them
	closed  bool   // nothing will ever follow
}

// A tape is the end of a shard, read once for all sources: its newest changes, until they are too many. Who has seen them
// all reads on, and the others with it; who is further behind reads by itself.
type tape struct {
	feed   *Feed
	turn   chan struct{} // holds one: whoever reads on
	nudged chan struct{} // holds one

	mu      sync.Mutex
	begun   bool
	base    string // the position before what is kept
	kept    []*change
	weight  int           // of what is kept
	end     string        // the position behind it
	closed  bool          // nothing follows that
	further chan struct{} // closed when more is there

	// What follows belongs to whoever reads on.
	reader reader
	quiet  int // polls since the last that brought what a source waits for
	polled time.Time
	due    time.Time
}

func newTape(f *Feed, shard string) *tape {
	return &tape{
		feed: f, turn: make(chan struct{}, 1), nudged: make(chan struct{}, 1), further: make(chan struct{}),
		reader: reader{feed: f, shard: shard, limit: pageMost / 10},
	}
}

// after returns what follows a position, and waits until that is something. ok is false when the tape does not reach back
// so far.
func (t *tape) after(ctx context.Context, at string) (p page, ok bool, err error) {
	for {
		p, further, ok := t.look(at)
		if !ok || p.closed || len(p.changes) > 0 {
			return p, ok, nil
		}
		select {
		case <-ctx.Done():
			return page{}, true, ctx.Err()
		case <-further:
		case t.turn <- struct{}{}:
			err := t.readOn(ctx, at)
			<-t.turn
			if err != nil {
				return page{}, true, err
			}
		}
	}
}

// look returns what is kept behind a position, and what is closed when there is more. A tape begins where the first asks.
func (t *tape) look(at string) (p page, further <-chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		t.begun, t.base, t.end = true, at, at
	}
	if compareSequences(at, t.base) < 0 {
		return page{}, nil, false
	}
	from, found := slices.BinarySearchFunc(t.kept, at, func(c *change, at string) int { return compareSequences(c.id, at) })
	if found {
		from++
	}
	return page{changes: t.kept[from:len(t.kept):len(t.kept)], end: t.end, closed: t.closed}, t.further, true
}

// readOn polls once, when it is time for that, unless somebody else has read beyond the position meanwhile.
func (t *tape) readOn(ctx context.Context, at string) error {
	t.mu.Lock()
	end := t.end
	t.mu.Unlock()
	if compareSequences(end, at) > 0 {
		return nil
	}
	if err := t.pause(ctx); err != nil {
		return err
	}
	changes, full, closed, err := t.reader.read(ctx, end)
	if err != nil {
		return err
	}
	t.polled = time.Now()
	t.quiet++
	if slices.ContainsFunc(changes, t.feed.awaits) {
		t.quiet = 1
	}
	t.due = t.polled.Add(backoff(t.quiet, firstPause, t.feed.cfg.IdlePoll))
	if full {
		t.due = t.polled
	}
	t.keep(changes, closed)
	return nil
}

// pause returns when a poll is due, by the clock or because somebody nudged.
func (t *tape) pause(ctx context.Context) error {
	timer := time.NewTimer(time.Until(t.due))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	case <-t.nudged:
	}
	timer.Reset(min(time.Until(t.polled.Add(spacing)), time.Until(t.due)))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (t *tape) nudge() {
	select {
	case t.nudged <- struct{}{}:
	default:
	}
}

// keep adds what was read, and drops the oldest of what is too much.
func (t *tape) keep(changes []*change, closed bool) {
	if len(changes) == 0 && !closed {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range changes {
		t.weight += c.weight
		t.end = c.id
	}
	t.kept, t.closed = append(t.kept, changes...), closed
	drop := 0
	for ; t.weight > t.feed.keepMost && drop < len(t.kept)-len(changes); drop++ {
		t.weight -= t.kept[drop].weight
		t.base = t.kept[drop].id
	}
	t.kept = t.kept[drop:] // others may still read what it was
	close(t.further)
	t.further = make(chan struct{})
}
