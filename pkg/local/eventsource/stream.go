package eventsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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

	// ShardWorkers is how many batches of each of the stream's shards may be under way at a time, default 1: the
	// mapping's ParallelizationFactor, or as many times more as the table's stream had shards in DynamoDB, where the
	// local table server has a single one. Records of one partition key go to one worker.
	ShardWorkers int
	RetryMin     time.Duration // pause before the first retry of a failed batch or poll, default 100 ms
	RetryMax     time.Duration // to which the pause doubles, default 10 s
}

// A Stream invokes a function with the changes of a table, in order within a shard worker, each at least once.
type Stream struct {
	feed     *Feed
	function Function
	cfg      StreamConfig
	filter   filter
	progress *checkpoints

	mu     sync.Mutex
	shards map[string]*shard // the shards being read
}

// Stream makes a source of the feed. It checks the configuration and opens the checkpoints.
func (f *Feed) Stream(function Function, cfg StreamConfig) (*Stream, error) {
	function, err := function.check()
	if err != nil {
		return nil, err
	}
	wrong := func(err error) error { return fmt.Errorf("the stream source of %s: %w", function.Name, err) }
	cfg.BatchSize, cfg.ShardWorkers = cmp.Or(cfg.BatchSize, 100), cmp.Or(cfg.ShardWorkers, 1)
	setDefault(&cfg.RetryMin, 100*time.Millisecond)
	setDefault(&cfg.RetryMax, 10*time.Second)
	if err := cfg.check(f.cfg.PartitionKey); err != nil {
		return nil, wrong(err)
	}
	parsed, err := parseFilter(cfg.Filters)
	if err != nil {
		return nil, wrong(err)
	}
	progress, err := openCheckpoints(cfg.Checkpoints, f.cfg.StreamARN, f.cfg.Now)
	if err != nil {
		return nil, wrong(err)
	}
	if cfg.MaximumBatchingWindow == 0 {
		f.await(parsed)
	}
	return &Stream{feed: f, function: function, cfg: cfg, filter: parsed, progress: progress, shards: map[string]*shard{}}, nil
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
		return fmt.Errorf("%d shard workers and the partition key %q, more than one need its name", c.ShardWorkers, partitionKey)
	}
	return nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Position returns the sequence number up to which the function will get no change again, even after a restart, or ""
// while there is none. With several open shards or shard workers it is the lowest of theirs.
func (s *Stream) Position() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var positions []string
	for id, one := range s.shards {
		if s.progress.at(id) != shardEnd {
			positions = append(positions, one.position())
		}
	}
	return Lowest(positions...)
}

// Run reads the stream until ctx ends and the invocation in progress, within the host's grace, with it. Errors of the
// table server are logged and tried again without end; only a checkpoint that cannot be written ends Run by itself,
// since the function would get everything again.
func (s *Stream) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reading sync.WaitGroup
	ended := make(chan error)
	for failures := 0; ; {
		fresh, err := s.discover(ctx)
		pause := s.describePause()
		if err != nil && ctx.Err() == nil {
			failures++
			pause = backoff(failures, s.cfg.RetryMin, s.cfg.RetryMax)
			s.feed.cfg.Logger.WarnContext(ctx, "stream not described, trying again", "function", s.function.Name, "error", err)
		} else {
			failures = 0
		}
		for _, one := range fresh {
			reading.Go(func() {
				err := one.read(ctx)
				if errors.Is(err, errNotFinished) {
					return
				}
				select {
				case ended <- err:
				case <-ctx.Done():
				}
			})
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case err = <-ended:
			if err != nil {
				cancel()
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			reading.Wait()
			return errors.Join(err, s.progress.close())
		}
	}
}

// Pauses between two descriptions of the stream. A shard that ends is followed at once, and nothing else makes shards: but
// to describe a stream takes the local table server the longer, the more the table holds, up to a second.
const (
	findShard  = 10 * time.Second
	checkShard = 10 * time.Minute
)

// describePause is how long the stream may go undescribed.
func (s *Stream) describePause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.shards) == 0 {
		return findShard
	}
	return checkShard
}

// discover returns the shards that can be read from now on: those not yet seen whose parent is gone or read to its end.
func (s *Stream) discover(ctx context.Context) ([]*shard, error) {
	listed, err := s.feed.shards(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[string]bool, len(listed))
	for _, one := range listed {
		there[aws.ToString(one.ShardId)] = true
	}
	var fresh []*shard
	for _, one := range listed {
		id, parent := aws.ToString(one.ShardId), aws.ToString(one.ParentShardId)
		if s.shards[id] != nil || s.progress.at(id) == shardEnd || there[parent] && s.progress.at(parent) != shardEnd {
			continue
		}
		s.shards[id] = newShard(s, id)
		fresh = append(fresh, s.shards[id])
	}
	for id := range s.shards {
		if s.progress.at(id) == shardEnd {
			delete(s.shards, id)
		} else {
			there[id] = true
		}
	}
	return fresh, s.progress.retain(there)
}
