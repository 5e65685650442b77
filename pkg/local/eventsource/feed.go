package eventsource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"
)

// StreamClient is the part of *dynamodbstreams.Client that a feed calls.
type StreamClient interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

const (
	// pollInterval is the pause between polls of a quiet stream, as Lambda's.
	pollInterval = 250 * time.Millisecond
	// pageRecords is how many records a poll asks for. DynamoDB bounds the bytes of its pages itself, the local table
	// server does not: a thousand large records would be hundreds of megabytes.
	pageRecords = 200
	// maxBacklog is about how many bytes of changes are read and not yet processed.
	maxBacklog = 64 << 20
)

// FeedConfig names the stream that a feed reads.
type FeedConfig struct {
	Host
	StreamARN string
	// PartitionKey names the table's, a text, by whose hash the records are divided among a source's workers.
	PartitionKey string
	// TTLAttribute names the table's TTL attribute. Deletions of items that had expired by it get the userIdentity of
	// DynamoDB's own deletions, which the local table's sweep cannot give them.
	TTLAttribute string
}

// A Feed reads the stream of a table, from the single shard that the local table server has, once for all sources of it.
// A source that fails for long holds up the others when [maxBacklog] waits for it.
type Feed struct {
	client  StreamClient
	cfg     FeedConfig
	sources []*streamSource
	backlog *backlog
	nudged  chan struct{} // takes one

	iterator *string // nil: to be fetched
	scanned  string  // the last sequence number read, at first the lowest checkpoint
}

// NewFeed makes a feed without sources.
func NewFeed(client StreamClient, cfg FeedConfig) *Feed {
	cfg.Host = cfg.Host.withDefaults()
	return &Feed{client: client, cfg: cfg, backlog: newBacklog(maxBacklog), nudged: make(chan struct{}, 1)}
}

// Position returns the sequence number up to which no function will get a change again, even after a restart, or "" while
// there is none.
func (f *Feed) Position() string {
	var positions []string
	for _, s := range f.sources {
		positions = append(positions, s.progress.lowest())
	}
	return lowest(positions...)
}

// Nudge makes the feed poll at once instead of after its pause. It never blocks.
func (f *Feed) Nudge() {
	select {
	case f.nudged <- struct{}{}:
	default:
	}
}

// Run reads the stream until ctx ends and the invocations in progress, within the host's grace, with it. Errors of the
// table server are logged and tried again without end; only a checkpoint that cannot be written ends Run by itself,
// since the function would get everything again.
func (f *Feed) Run(ctx context.Context) error {
	f.scanned = f.Position()
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range f.sources {
		for _, w := range s.workers {
			group.Go(func() error { return w.run(ctx) })
		}
	}
	group.Go(func() error { return f.follow(ctx) })
	err := group.Wait()
	if errors.Is(err, errNotFinished) {
		err = nil
	}
	for _, s := range f.sources {
		err = errors.Join(err, s.progress.close())
	}
	return err
}

// follow feeds the sources until ctx ends. After a full page it polls again at once.
func (f *Feed) follow(ctx context.Context) error {
	for failures := 0; ctx.Err() == nil; {
		wait := pollInterval
		page, err := f.read(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			wait = backoff(failures)
			f.cfg.Logger.WarnContext(ctx, "stream not read, trying again", "error", err)
		}
		if err == nil {
			failures = 0
			f.give(page)
			f.backlog.await(ctx)
		}
		if len(page) < pageRecords {
			f.pause(ctx, wait)
		}
	}
	return errNotFinished
}

// pause returns after d, or earlier because of a nudge or the end.
func (f *Feed) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-f.nudged:
	case <-timer.C:
	}
}

// give gives every source the changes of a page that it wants.
func (f *Feed) give(page []types.Record) {
	if len(page) == 0 {
		return
	}
	changes := make([]*change, len(page))
	for i := range page {
		changes[i] = f.change(page[i])
	}
	f.scanned = changes[len(changes)-1].id
	for _, s := range f.sources {
		s.give(changes)
	}
}

// read polls once for the records behind those that were read.
func (f *Feed) read(ctx context.Context) ([]types.Record, error) {
	if f.iterator == nil {
		if err := f.begin(ctx); err != nil {
			return nil, fmt.Errorf("reading the stream after %q: %w", f.scanned, err)
		}
	}
	out, err := f.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: f.iterator, Limit: aws.Int32(pageRecords)})
	if err != nil {
		f.iterator = nil
		return nil, fmt.Errorf("reading the stream after %q: %w", f.scanned, err)
	}
	f.iterator = out.NextShardIterator
	return out.Records, nil
}

// begin fetches an iterator for the records behind those that were read. Where they were trimmed, reading continues at
// the horizon.
func (f *Feed) begin(ctx context.Context) error {
	shard, err := f.shard(ctx)
	if err != nil {
		return err
	}
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &f.cfg.StreamARN, ShardId: shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	if f.scanned != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &f.scanned
	}
	out, err := f.client.GetShardIterator(ctx, in)
	if trimmed := (*types.TrimmedDataAccessException)(nil); errors.As(err, &trimmed) {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeTrimHorizon, nil
		out, err = f.client.GetShardIterator(ctx, in)
	}
	if err != nil {
		return err
	}
	f.iterator = out.ShardIterator
	return nil
}

// shard finds the single shard of the stream. A stream of DynamoDB has several, which end and split.
func (f *Feed) shard(ctx context.Context) (*string, error) {
	described, err := f.client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: &f.cfg.StreamARN})
	if err != nil {
		return nil, fmt.Errorf("describing the stream: %w", err)
	}
	shards := described.StreamDescription.Shards
	if len(shards) != 1 {
		return nil, fmt.Errorf("the stream has %d shards, only streams of one are read here", len(shards))
	}
	return shards[0].ShardId, nil
}
