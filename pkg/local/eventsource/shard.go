package eventsource

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
)

// A shard has one goroutine that reads it, and one or more workers that process its records.
type shard struct {
	id      string
	stream  *Stream
	workers []*shardWorker
	backlog *backlog // a worker that is too far behind holds up the others
	cache   *shardCache
	own     reader // of records that the cache no longer has

	scanned string // the last sequence number read, at first the lowest checkpoint of the workers
}

func newShard(s *Stream, id string) *shard {
	one := &shard{
		id: id, stream: s, backlog: newBacklog(s.feed.maxBacklog), cache: s.feed.cache(id),
		own: reader{feed: s.feed, shard: id, limit: maxPageRecords / 10},
	}
	positions := s.progress.begin(id, s.cfg.ShardWorkers)
	for i, at := range positions {
		one.workers = append(one.workers, newShardWorker(s, workerKey(id, i, s.cfg.ShardWorkers), at, one.backlog))
	}
	one.scanned = Lowest(positions...)
	return one
}

// read reads the shard until it is closed and all of it processed. Its error is errNotFinished when ctx ended first,
// else one of the checkpoints.
func (s *shard) read(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range s.workers {
		group.Go(func() error { return w.run(ctx) })
	}
	group.Go(func() error { return s.follow(ctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	s.stream.feed.forget(s.id)
	return s.stream.progress.end(s.id)
}

// follow feeds the workers until the shard is closed, or ctx ends.
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
		s.backlog.await(ctx)
	}
	return errNotFinished
}

// next returns the changes behind those that were read: from the cache, or by a poll of its own for those that the
// cache no longer has.
func (s *shard) next(ctx context.Context) (page, error) {
	p, ok, err := s.cache.after(ctx, s.scanned)
	if ok || err != nil {
		s.own.iterator = nil
		return p, err
	}
	p, _, err = s.own.read(ctx, s.scanned)
	if err == nil && len(p.changes) == 0 && !p.closed {
		err = pause.For(ctx, s.stream.feed.cfg.IdlePoll)
	}
	return p, err
}

// feed gives the workers the changes that pass the filter.
func (s *shard) feed(p page) error {
	records := make([][]record, len(s.workers))
	for _, c := range p.changes {
		if !s.stream.filter.passes(c) {
			continue
		}
		r, err := c.record(s.stream.function.Changes == nil)
		if err != nil {
			return err
		}
		i := s.stream.feed.format.worker(c, len(s.workers))
		records[i] = append(records[i], r)
	}
	for i, w := range s.workers {
		w.feed(records[i], p.end, p.closed)
	}
	s.scanned = p.end
	return nil
}

// position returns the lowest checkpoint of the workers, "" while one has none.
func (s *shard) position() string {
	positions := make([]string, len(s.workers))
	for i, w := range s.workers {
		positions[i] = s.stream.progress.at(w.key)
	}
	return Lowest(positions...)
}
