package eventsource

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// minPollPause is the pause after a poll that read a change that a source waits for; it doubles with every poll
	// that does not, up to the configured one.
	minPollPause = 100 * time.Millisecond
	// minPollInterval is the least time between two polls of which the first has read everything: writers nudge more
	// often than polls pay off.
	minPollInterval = 3 * time.Millisecond
)

// A page is the changes that follow a position.
type page struct {
	changes []*change
	end     string // the position behind them
	closed  bool   // nothing will ever follow
}

// A shardCache reads the end of a shard once for all sources. It keeps the newest changes, up to a number of bytes. The
// sources that have seen them all wait while one of them reads the next; a source that is further behind reads by
// itself.
type shardCache struct {
	feed    *Feed
	reading chan struct{} // holds one: the source that reads
	nudged  chan struct{} // holds one

	mu      sync.Mutex
	begun   bool
	base    string // the position before the changes
	changes []*change
	weight  int           // of the changes
	end     string        // the position behind the changes
	closed  bool          // nothing follows them
	more    chan struct{} // closed when changes were added

	// These belong to the source that reads.
	reader    reader
	idlePolls int // polls since the last that read a change that a source waits for
	polled    time.Time
	due       time.Time
}

func newShardCache(f *Feed, shard string) *shardCache {
	return &shardCache{
		feed: f, reading: make(chan struct{}, 1), nudged: make(chan struct{}, 1), more: make(chan struct{}),
		reader: reader{feed: f, shard: shard, limit: maxPageRecords / 10},
	}
}

// after returns the changes behind a position, and waits until there are some. ok is false when the cache does not
// reach back so far.
func (s *shardCache) after(ctx context.Context, at string) (p page, ok bool, err error) {
	for {
		p, more, ok := s.look(at)
		if !ok || p.closed || len(p.changes) > 0 {
			return p, ok, nil
		}
		select {
		case <-ctx.Done():
			return page{}, true, ctx.Err()
		case <-more:
		case s.reading <- struct{}{}:
			err := s.read(ctx, at)
			<-s.reading
			if err != nil {
				return page{}, true, err
			}
		}
	}
}

// look returns the changes behind a position, and a channel that is closed when there are more. The cache begins at the
// first position that is asked for.
func (s *shardCache) look(at string) (p page, more <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun, s.base, s.end = true, at, at
	}
	if compareSequences(at, s.base) < 0 {
		return page{}, nil, false
	}
	from, found := slices.BinarySearchFunc(s.changes, at, func(c *change, at string) int { return compareSequences(c.id, at) })
	if found {
		from++
	}
	return page{changes: s.changes[from:len(s.changes):len(s.changes)], end: s.end, closed: s.closed}, s.more, true
}

// read polls once, when a poll is due, unless another source has read beyond the position meanwhile.
func (s *shardCache) read(ctx context.Context, at string) error {
	s.mu.Lock()
	end := s.end
	s.mu.Unlock()
	if compareSequences(end, at) > 0 {
		return nil
	}
	if err := s.awaitPoll(ctx); err != nil {
		return err
	}
	p, full, err := s.reader.read(ctx, end)
	if err != nil {
		return err
	}
	s.polled = time.Now()
	s.idlePolls++
	if slices.ContainsFunc(p.changes, s.feed.awaits) {
		s.idlePolls = 1
	}
	s.due = s.polled.Add(backoff(s.idlePolls, minPollPause, s.feed.cfg.IdlePoll))
	if full {
		s.due = s.polled
	}
	s.add(p)
	return nil
}

// awaitPoll returns when a poll is due, by the clock or because of a nudge.
func (s *shardCache) awaitPoll(ctx context.Context) error {
	nudged := s.nudged
	timer := time.NewTimer(time.Until(s.due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-nudged:
			nudged = nil // one is enough
			timer.Reset(min(time.Until(s.polled.Add(minPollInterval)), time.Until(s.due)))
		}
	}
}

func (s *shardCache) nudge() {
	select {
	case s.nudged <- struct{}{}:
	default:
	}
}

// add adds a page, and drops the oldest changes of too many bytes.
func (s *shardCache) add(p page) {
	if len(p.changes) == 0 && !p.closed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range p.changes {
		s.weight += c.weight
	}
	s.changes, s.end, s.closed = append(s.changes, p.changes...), p.end, p.closed
	drop := 0
	for ; s.weight > s.feed.maxCached && drop < len(s.changes)-len(p.changes); drop++ {
		s.weight -= s.changes[drop].weight
		s.base = s.changes[drop].id
	}
	s.changes = s.changes[drop:] // others may still read the dropped ones
	close(s.more)
	s.more = make(chan struct{})
}
