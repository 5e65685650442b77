package eventsource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// StreamClient is what a stream source needs of *dynamodbstreams.Client.
type StreamClient interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// StreamConfig is an event source mapping on a table's stream, with StartingPosition TRIM_HORIZON and
// ParallelizationFactor 1. The two maxima are pointers because Lambda's default, no bound, is not their zero.
type StreamConfig struct {
	Host
	StreamARN               string        // required
	Checkpoints             string        // required: the file that remembers what the function is past
	BatchSize               int           // 1 to 10,000, default 100
	MaximumBatchingWindow   time.Duration // how long to wait for a full batch, default not at all, at most 5 min
	Filters                 []string      // patterns in Lambda's syntax, of which one must match
	ReportBatchItemFailures bool
	BisectBatch             bool           // BisectBatchOnFunctionError
	MaximumRetryAttempts    *int           // nil or negative: endless
	MaximumRecordAge        *time.Duration // nil or not positive: endless

	// Shards is as how many each of the stream's shards is read, by hash of the records' partition keys, default 1: the
	// local table server has a single one, where DynamoDB has more the more there is to do. PartitionKey names the
	// attribute, required with more than one.
	Shards       int
	PartitionKey string

	// TTLAttribute names the table's TTL attribute. Deletions of items that it says were expired get the userIdentity
	// of DynamoDB's own deletions, which the local table's sweep cannot give them.
	TTLAttribute string
	IdlePoll     time.Duration // longest pause between polls of a quiet stream, default 40 ms
	RetryMin     time.Duration // pause before the first retry of a failed batch, default 100 ms
	RetryMax     time.Duration // to which the pause doubles, default 10 s
}

// A Stream invokes a function with the changes of a table, in order within a shard, each at least once.
type Stream struct {
	client   StreamClient
	function Function
	cfg      StreamConfig
	format   recordFormat
	progress *checkpoints

	mu     sync.Mutex
	shards map[string]*shard // the shards being read
}

// NewStream checks the configuration and opens the checkpoints.
func NewStream(client StreamClient, function Function, cfg StreamConfig) (*Stream, error) {
	function, err := function.check()
	if err != nil {
		return nil, err
	}
	if cfg.StreamARN == "" || cfg.Checkpoints == "" {
		return nil, fmt.Errorf("the stream source of %s needs a StreamARN and a Checkpoints file", function.Name)
	}
	if cfg.BatchSize == 0 {
		cfg.BatchSize = 100
	}
	if cfg.BatchSize < 0 || cfg.BatchSize > 10_000 {
		return nil, fmt.Errorf("the stream source of %s has BatchSize %d, 1 to 10000 are allowed", function.Name, cfg.BatchSize)
	}
	if cfg.MaximumBatchingWindow < 0 || cfg.MaximumBatchingWindow > 5*time.Minute {
		return nil, fmt.Errorf("the stream source of %s has a batching window of %v, 0 to 5m are allowed", function.Name, cfg.MaximumBatchingWindow)
	}
	if cfg.Shards == 0 {
		cfg.Shards = 1
	}
	if cfg.Shards < 0 || cfg.Shards > 1 && cfg.PartitionKey == "" {
		return nil, fmt.Errorf("the stream source of %s has %d shards and the partition key %q, more than one need its name", function.Name, cfg.Shards, cfg.PartitionKey)
	}
	parsed, err := parseFilter(cfg.Filters)
	if err != nil {
		return nil, fmt.Errorf("the stream source of %s: %w", function.Name, err)
	}
	cfg.Host = cfg.Host.withDefaults()
	progress, err := openCheckpoints(cfg.Checkpoints, cfg.StreamARN, cfg.Now)
	if err != nil {
		return nil, fmt.Errorf("the stream source of %s: %w", function.Name, err)
	}
	setDefault(&cfg.IdlePoll, 40*time.Millisecond)
	setDefault(&cfg.RetryMin, 100*time.Millisecond)
	setDefault(&cfg.RetryMax, 10*time.Second)
	return &Stream{
		client: client, function: function, cfg: cfg, progress: progress, shards: map[string]*shard{},
		format: recordFormat{streamARN: cfg.StreamARN, region: cfg.Region, ttlAttribute: cfg.TTLAttribute, partitionKey: cfg.PartitionKey, filter: parsed},
	}, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Nudge makes the source poll at once instead of after its pause. It never blocks.
func (s *Stream) Nudge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.shards {
		select {
		case one.nudged <- struct{}{}:
		default:
		}
	}
}

// Position returns the highest sequence number that the function is past for good, a restart included, or "" while
// nothing is known. With several open shards, or one read as several, it is the lowest of them.
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
		pause := 10 * time.Second
		if err != nil && ctx.Err() == nil {
			failures++
			pause = backoff(failures, s.cfg.RetryMin, s.cfg.RetryMax)
			s.cfg.Logger.WarnContext(ctx, "stream not described, trying again", "function", s.function.Name, "error", err)
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
			return errors.Join(err, s.progress.flush())
		}
	}
}

// discover returns the shards that can be read from now on: those not yet seen whose parent is gone or read to its end.
func (s *Stream) discover(ctx context.Context) ([]*shard, error) {
	listed, err := s.describe(ctx)
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
	return fresh, s.progress.keep(there)
}

func (s *Stream) describe(ctx context.Context) ([]types.Shard, error) {
	var listed []types.Shard
	var after *string
	for {
		page, err := s.client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{
			StreamArn: aws.String(s.cfg.StreamARN), ExclusiveStartShardId: after,
		})
		if err != nil {
			return nil, fmt.Errorf("describing stream %s: %w", s.cfg.StreamARN, err)
		}
		listed = append(listed, page.StreamDescription.Shards...)
		if after = page.StreamDescription.LastEvaluatedShardId; after == nil {
			return listed, nil
		}
	}
}
