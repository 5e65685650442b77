package eventsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
)

// StreamConfig is an event source mapping on a table's stream, with StartingPosition TRIM_HORIZON. No change is given up,
// whatever its age and its retries.
type StreamConfig struct {
	Checkpoints             string        // required: the file of the positions up to which the function has processed the stream
	BatchSize               int           // 1 to 10,000, default 100
	MaximumBatchingWindow   time.Duration // how long to wait for a full batch, default not at all, at most 5 min
	Filters                 []string      // patterns in Lambda's syntax, of which one must match
	ReportBatchItemFailures bool
	BisectBatch             bool // BisectBatchOnFunctionError

	// ShardWorkers is how many batches of the stream may be under way at a time, default 1: the mapping's
	// ParallelizationFactor, or as many times more as the table's stream had shards in DynamoDB. Records of one partition
	// key go to one worker.
	ShardWorkers int
	RetryMin     time.Duration // pause before the first retry of a failed batch or poll, default 100 ms
	RetryMax     time.Duration // to which the pause doubles, default 10 s
}

// A Stream invokes a function with the changes of a table, in order within a worker, each at least once.
type Stream struct {
	feed     *Feed
	function Function
	cfg      StreamConfig
	filter   filter
	progress *checkpoints
	workers  []*streamWorker
	backlog  *backlog // a worker that is too far behind holds up the others
	own      reader   // of changes that the feed no longer keeps
	scanned  string   // the last sequence number read, at first the lowest checkpoint of the workers
}

// Stream makes a source of the feed. It checks the configuration and opens the checkpoints.
func (f *Feed) Stream(function Function, cfg StreamConfig) (*Stream, error) {
	function, err := function.check()
	if err != nil {
		return nil, err
	}
	cfg.BatchSize, cfg.ShardWorkers = cmp.Or(cfg.BatchSize, 100), cmp.Or(cfg.ShardWorkers, 1)
	cfg.RetryMin, cfg.RetryMax = cmp.Or(cfg.RetryMin, 100*time.Millisecond), cmp.Or(cfg.RetryMax, 10*time.Second)
	s := &Stream{feed: f, function: function, cfg: cfg, backlog: newBacklog(f.maxBacklog), own: f.newReader()}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("the stream source of %s: %w", function.Name, err)
	}
	if cfg.MaximumBatchingWindow == 0 {
		f.await(s.filter)
	}
	for i := range cfg.ShardWorkers {
		s.workers = append(s.workers, newStreamWorker(s, i))
	}
	s.scanned = s.progress.lowest()
	return s, nil
}

func (s *Stream) open() (err error) {
	if err := s.cfg.check(s.feed.cfg.PartitionKey); err != nil {
		return err
	}
	if s.filter, err = parseFilter(s.cfg.Filters); err != nil {
		return err
	}
	s.progress, err = openCheckpoints(s.cfg.Checkpoints, s.feed.cfg.StreamARN, s.cfg.ShardWorkers, s.feed.cfg.Now)
	return err
}

func (c *StreamConfig) check(partitionKey string) error {
	switch {
	case c.Checkpoints == "":
		return errors.New("it needs a Checkpoints file")
	case c.BatchSize < 0 || c.BatchSize > 10_000:
		return fmt.Errorf("BatchSize %d, 1 to 10000 are allowed", c.BatchSize)
	case c.MaximumBatchingWindow < 0 || c.MaximumBatchingWindow > 5*time.Minute:
		return fmt.Errorf("batching window %v, 0 to 5m are allowed", c.MaximumBatchingWindow)
	case c.ShardWorkers < 0 || c.ShardWorkers > 1 && partitionKey == "":
		return fmt.Errorf("%d workers and the partition key %q, more than one need its name", c.ShardWorkers, partitionKey)
	}
	return nil
}

// Position returns the sequence number up to which the function will get no change again, even after a restart, or ""
// while there is none. With several workers it is the lowest of theirs.
func (s *Stream) Position() string { return s.progress.lowest() }

// Run reads the stream until ctx ends and the invocations in progress, within the host's grace, with it. Errors of the
// table server are logged and tried again without end; only a checkpoint that cannot be written ends Run by itself,
// since the function would get everything again.
func (s *Stream) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range s.workers {
		group.Go(func() error { return w.run(ctx) })
	}
	group.Go(func() error { return s.follow(ctx) })
	err := group.Wait()
	if errors.Is(err, errNotFinished) {
		err = nil
	}
	return errors.Join(err, s.progress.close())
}

// follow feeds the workers until ctx ends.
func (s *Stream) follow(ctx context.Context) error {
	for failures := 0; ctx.Err() == nil; {
		changes, err := s.next(ctx)
		if err != nil {
			failures++
			if ctx.Err() == nil {
				s.feed.cfg.Logger.WarnContext(ctx, "stream not read, trying again", "function", s.function.Name, "error", err)
			}
			_ = s.feed.cfg.Wait(ctx, backoff(failures, s.cfg.RetryMin, s.cfg.RetryMax)) // the loop sees why it ended
			continue
		}
		failures = 0
		s.give(changes)
		s.backlog.await(ctx)
	}
	return errNotFinished
}

// next returns the changes behind those that were read: the feed's, or by a poll of its own those that the feed no
// longer keeps.
func (s *Stream) next(ctx context.Context) ([]*change, error) {
	changes, ok, err := s.feed.after(ctx, s.scanned)
	if ok || err != nil {
		s.own.iterator = nil
		return changes, err
	}
	changes, _, err = s.own.read(ctx, s.scanned)
	if err == nil && len(changes) == 0 {
		err = pause.For(ctx, s.feed.cfg.IdlePoll)
	}
	return changes, err
}

// give gives the workers the changes that pass the filter.
func (s *Stream) give(changes []*change) {
	if len(changes) == 0 {
		return
	}
	records := make([][]record, len(s.workers))
	for _, c := range changes {
		if !s.filter.passes(c.from.NewImage) {
			continue
		}
		i := s.feed.format.worker(c, len(s.workers))
		records[i] = append(records[i], c.record())
	}
	s.scanned = changes[len(changes)-1].id
	for i, w := range s.workers {
		w.feed(records[i], s.scanned)
	}
}
