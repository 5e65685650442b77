package eventsource

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/pause"
)

// A shard is followed by one goroutine and delivered by its lanes: one, or as many as it is split into.
type shard struct {
	id     string
	stream *Stream
	lanes  []*lane
	ahead  *ahead // a lane that is too far behind holds up the others
	tape   *tape
	alone  reader // of what the tape no longer has

	scanned string // the last sequence number read, or what the hindmost lane is past
}

func newShard(s *Stream, id string) *shard {
	one := &shard{id: id, stream: s, ahead: newAhead(s.feed.aheadMost), tape: s.feed.tape(id), alone: reader{feed: s.feed, shard: id, limit: pageMost / 10}}
	positions := s.progress.begin(id, s.cfg.Lanes)
	for i, at := range positions {
		one.lanes = append(one.lanes, newLane(s, laneKey(id, i, s.cfg.Lanes), at, one.ahead))
	}
	one.scanned = Lowest(positions...)
	return one
}

// read reads the shard until it is closed and all of it delivered. Its error is errNotFinished when ctx ended first, else
// one of the checkpoints.
func (s *shard) read(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range s.lanes {
		group.Go(func() error { return l.run(ctx) })
	}
	group.Go(func() error { return s.follow(ctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	s.stream.feed.forget(s.id)
	return s.stream.progress.end(s.id)
}

// follow feeds the lanes until the shard is closed, or ctx ends.
func (s *shard) follow(ctx context.Context) error {
	cfg := s.stream.cfg
	log := s.stream.feed.cfg.Logger.With("function", s.stream.function.Name, "shard", s.id)
	for failures := 0; ctx.Err() == nil; {
		p, err := s.next(ctx)
		if err == nil {
			err = s.feed(p)
		}
		if err != nil {
			failures++
			if ctx.Err() == nil {
				log.WarnContext(ctx, "stream not read, trying again", "error", err)
			}
			_ = s.stream.feed.cfg.Wait(ctx, backoff(failures, cfg.RetryMin, cfg.RetryMax)) // the loop sees why it ended
			continue
		}
		failures = 0
		if p.closed {
			return nil
		}
		s.ahead.await(ctx)
	}
	return errNotFinished
}

// next returns what follows what was read: from the tape, or by a poll of its own for what that no longer has.
func (s *shard) next(ctx context.Context) (page, error) {
	p, ok, err := s.tape.after(ctx, s.scanned)
	if ok || err != nil {
		s.alone.iterator = nil
		return p, err
	}
	changes, _, closed, err := s.alone.read(ctx, s.scanned)
	if err != nil {
		return page{}, err
	}
	p = page{changes: changes, end: s.scanned, closed: closed}
	if len(changes) > 0 {
		p.end = changes[len(changes)-1].id
	} else if !closed {
		err = pause.For(ctx, s.stream.feed.cfg.IdlePoll)
	}
	return p, err
}

// feed gives the lanes what passes the filter.
func (s *shard) feed(p page) error {
	parts := make([][]record, len(s.lanes))
	for _, c := range p.changes {
		if !s.stream.filter.passes(c) {
			continue
		}
		r, err := c.record(s.stream.function.Changes == nil)
		if err != nil {
			return err
		}
		part := s.stream.feed.format.part(c, len(s.lanes))
		parts[part] = append(parts[part], r)
	}
	for i, l := range s.lanes {
		l.feed(parts[i], p.end, p.closed)
	}
	s.scanned = p.end
	return nil
}

// position is what all lanes are past, "" while one is nowhere.
func (s *shard) position() string {
	positions := make([]string, len(s.lanes))
	for i, l := range s.lanes {
		positions[i] = s.stream.progress.at(l.key)
	}
	return Lowest(positions...)
}
