package eventsource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// StreamClient is the part of *dynamodbstreams.Client that a feed calls.
type StreamClient interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

const (
	defaultMaxCached  = 8 << 20
	defaultMaxBacklog = 64 << 20
)

// FeedConfig names the stream that a feed reads.
type FeedConfig struct {
	Host
	StreamARN string // required
	// PartitionKey names the table's, by whose hash the records of a shard are divided among a source's workers;
	// required for sources with more than one worker.
	PartitionKey string
	// TTLAttribute names the table's TTL attribute. Deletions of items that had expired by it get the userIdentity of
	// DynamoDB's own deletions, which the local table's sweep cannot give them.
	TTLAttribute string
	IdlePoll     time.Duration // longest pause between polls of a quiet stream, default 250 ms, as Lambda's
}

// A Feed reads the stream of a table for all sources of it. They get the same changes, which none may alter, but are
// independent of one another: a source that cannot keep up falls behind and reads by itself.
type Feed struct {
	client StreamClient
	cfg    FeedConfig
	format recordFormat

	maxCached  int // about how many bytes of a shard's newest changes are kept
	maxBacklog int // about how many are read and not yet processed by a source's workers

	mu      sync.Mutex
	caches  map[string]*shardCache // by shard
	filters []filter               // of the sources that wait for every change
}

// NewFeed checks the configuration.
func NewFeed(client StreamClient, cfg FeedConfig) (*Feed, error) {
	if cfg.StreamARN == "" {
		return nil, fmt.Errorf("a feed needs a StreamARN")
	}
	cfg.Host = cfg.Host.withDefaults()
	cfg.IdlePoll = cmp.Or(cfg.IdlePoll, 250*time.Millisecond)
	format := recordFormat{streamARN: cfg.StreamARN, region: cfg.Region, ttlAttribute: cfg.TTLAttribute, partitionKey: cfg.PartitionKey}
	return &Feed{client: client, cfg: cfg, format: format, maxCached: defaultMaxCached, maxBacklog: defaultMaxBacklog, caches: map[string]*shardCache{}}, nil
}

// Nudge makes the feed poll at once instead of after its pause. It never blocks.
func (f *Feed) Nudge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.caches {
		s.nudge()
	}
}

// cache returns the shard's.
func (f *Feed) cache(shard string) *shardCache {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.caches[shard] == nil {
		f.caches[shard] = newShardCache(f, shard)
	}
	return f.caches[shard]
}

// forget releases the cache of a shard that a source has read to its end. A source that is still reading has the cache.
func (f *Feed) forget(shard string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.caches, shard)
}

// await makes changes that pass the filter count as waited for.
func (f *Feed) await(wanted filter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters = append(f.filters, wanted)
}

// awaits reports whether a source waits for the change, rather than for a full batch.
func (f *Feed) awaits(c *change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.filters, func(wanted filter) bool { return wanted.passes(c) })
}

// shards lists the stream's shards.
func (f *Feed) shards(ctx context.Context) ([]types.Shard, error) {
	var listed []types.Shard
	var after *string
	for {
		page, err := f.client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{
			StreamArn: aws.String(f.cfg.StreamARN), ExclusiveStartShardId: after,
		})
		if err != nil {
			return nil, fmt.Errorf("describing stream %s: %w", f.cfg.StreamARN, err)
		}
		listed = append(listed, page.StreamDescription.Shards...)
		if after = page.StreamDescription.LastEvaluatedShardId; after == nil {
			return listed, nil
		}
	}
}
