package eventsource

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const (
	// pageTarget is about how many bytes one poll should read. DynamoDB bounds its pages itself, the local table server
	// does not: a thousand large records would be hundreds of megabytes.
	pageTarget = 4 << 20
	// maxPageRecords is DynamoDB's own bound.
	maxPageRecords = 1000
)

// A reader reads the stream from the table server.
type reader struct {
	feed     *Feed
	shard    *string // nil: to be found
	iterator *string // nil: to be fetched
	limit    int32   // how many records the next poll asks for
}

func (f *Feed) newReader() reader { return reader{feed: f, limit: maxPageRecords / 10} }

// read polls once for the changes behind a position, which has to be the end of the page that it read before. full is
// true when there were as many records as it asked for.
func (r *reader) read(ctx context.Context, at string) (changes []*change, full bool, err error) {
	if r.iterator == nil {
		err = r.begin(ctx, at)
	}
	if err == nil {
		changes, full, err = r.poll(ctx)
	}
	if err != nil {
		r.iterator = nil
		return nil, false, fmt.Errorf("reading the stream after %q: %w", at, err)
	}
	return changes, full, nil
}

func (r *reader) poll(ctx context.Context) (changes []*change, full bool, err error) {
	out, err := r.feed.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: r.iterator, Limit: aws.Int32(r.limit)})
	if err != nil {
		return nil, false, err
	}
	size := 0
	for _, from := range out.Records {
		c, err := r.feed.format.change(from)
		if err != nil {
			return nil, false, err
		}
		size += c.weight
		changes = append(changes, c)
	}
	full = len(changes) >= int(r.limit)
	r.iterator, r.limit = out.NextShardIterator, nextLimit(r.limit, size, len(changes))
	if r.iterator == nil {
		r.shard = nil // it ended
	}
	return changes, full, nil
}

// nextLimit adapts the page to the size of the records in the last one, never more than doubling it.
func nextLimit(limit int32, size, records int) int32 {
	if records == 0 {
		return limit
	}
	fit := pageTarget / max(1, size/records)
	return int32(min(fit, 2*int(limit), maxPageRecords))
}

// begin fetches an iterator for the records behind a position. Where they were trimmed, reading continues at the
// horizon.
func (r *reader) begin(ctx context.Context, at string) (err error) {
	if r.shard == nil {
		if r.shard, err = r.feed.shard(ctx); err != nil {
			return err
		}
	}
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: aws.String(r.feed.cfg.StreamARN), ShardId: r.shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	if at != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, aws.String(at)
	}
	out, err := r.feed.client.GetShardIterator(ctx, in)
	if trimmed := (*types.TrimmedDataAccessException)(nil); errors.As(err, &trimmed) {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeTrimHorizon, nil
		out, err = r.feed.client.GetShardIterator(ctx, in)
	}
	if err != nil {
		return err
	}
	r.iterator = out.ShardIterator
	return nil
}

// shard finds the single shard of the stream. A stream of DynamoDB has several, which end and split.
func (f *Feed) shard(ctx context.Context) (*string, error) {
	described, err := f.client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(f.cfg.StreamARN)})
	if err != nil {
		return nil, fmt.Errorf("describing the stream: %w", err)
	}
	shards := described.StreamDescription.Shards
	if len(shards) != 1 {
		return nil, fmt.Errorf("the stream has %d shards, only streams of one are read here", len(shards))
	}
	return shards[0].ShardId, nil
}
