package eventsource

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// StreamClient is what a feed needs of *dynamodbstreams.Client.
type StreamClient interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

const (
	keepMost  = 8 << 20
	aheadMost = 64 << 20
)

// FeedConfig says what a feed reads.
type FeedConfig struct {
	Host
	StreamARN string // required
	// PartitionKey names the table's, by whose hash records fall to the lanes of a source; required for sources with more
	// than one.
	PartitionKey string
	// TTLAttribute names the table's TTL attribute. Deletions of items that it says were expired get the userIdentity
	// of DynamoDB's own deletions, which the local table's sweep cannot give them.
	TTLAttribute string
	IdlePoll     time.Duration // longest pause between polls of a quiet stream, default 250 ms, as Lambda's
}

// A Feed reads the stream of a table for all sources of it. They get the same changes, which nobody may alter, but are
// independent of one another: who cannot follow is left behind and reads by itself.
type Feed struct {
	client StreamClient
	cfg    FeedConfig
	format recordFormat

	keepMost  int // about how many bytes of a shard's newest changes are kept
	aheadMost int // about how many are read ahead of a source's lanes

	mu      sync.Mutex
	tapes   map[string]*tape // by shard
	filters []filter         // of the sources that wait for every change
}

// NewFeed checks the configuration.
func NewFeed(client StreamClient, cfg FeedConfig) (*Feed, error) {
	if cfg.StreamARN == "" {
		return nil, fmt.Errorf("a feed needs a StreamARN")
	}
	cfg.Host = cfg.Host.withDefaults()
	cfg.IdlePoll = cmp.Or(cfg.IdlePoll, 250*time.Millisecond)
	format := recordFormat{streamARN: cfg.StreamARN, region: cfg.Region, ttlAttribute: cfg.TTLAttribute, partitionKey: cfg.PartitionKey}
	return &Feed{client: client, cfg: cfg, format: format, keepMost: keepMost, aheadMost: aheadMost, tapes: map[string]*tape{}}, nil
}

// Nudge makes the feed poll at once instead of after its pause. It never blocks.
func (f *Feed) Nudge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tapes {
		t.nudge()
	}
}

// tape returns the shard's.
func (f *Feed) tape(shard string) *tape {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tapes[shard] == nil {
		f.tapes[shard] = newTape(f, shard)
	}
	return f.tapes[shard]
}

// forget lets go of a shard that a source has read to its end. Another that has not yet holds the tape.
func (f *Feed) forget(shard string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tapes, shard)
}

// await makes changes that pass the filter count as waited for.
func (f *Feed) await(wanted filter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filters = append(f.filters, wanted)
}

// awaits says whether a source waits for the change, and does not gather more first.
func (f *Feed) awaits(c *change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, wanted := range f.filters {
		if wanted.passes(c) {
			return true
		}
	}
	return false
}

// shards lists the stream's.
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
