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
	// pageTarget is about how many bytes one poll should bring. DynamoDB bounds its pages itself, the local table server
	// does not: a thousand large records would be hundreds of megabytes.
	pageTarget = 4 << 20
	// pageMost is DynamoDB's own bound of the records in a page.
	pageMost = 1000
)

// A reader reads a shard from the table server.
type reader struct {
	feed     *Feed
	shard    string
	iterator *string // nil: to be fetched
	limit    int32   // how many records the next poll asks for
}

// read polls once for what follows a position, which has to be the end of what it read last. It reports whether there
// were as many records as it asked for, and whether they were the shard's last.
func (r *reader) read(ctx context.Context, at string) (changes []*change, full, closed bool, err error) {
	if r.iterator == nil {
		if err := r.begin(ctx, at); err != nil {
			return nil, false, false, err
		}
	}
	out, err := r.feed.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: r.iterator, Limit: aws.Int32(r.limit)})
	if err != nil {
		r.iterator = nil
		return nil, false, false, fmt.Errorf("reading shard %s: %w", r.shard, err)
	}
	size := 0
	for _, from := range out.Records {
		c, err := r.feed.format.change(from)
		if err != nil {
			r.iterator = nil
			return nil, false, false, fmt.Errorf("reading shard %s: %w", r.shard, err)
		}
		size += c.weight
		changes = append(changes, c)
	}
	full = len(changes) >= int(r.limit)
	r.iterator, r.limit = out.NextShardIterator, nextLimit(r.limit, size, len(changes))
	return changes, full, r.iterator == nil, nil
}

// nextLimit adapts the page to the size of the records in the last one, never more than doubling it.
func nextLimit(limit int32, size, records int) int32 {
	if records == 0 {
		return limit
	}
	fit := pageTarget / max(1, size/records)
	return int32(min(fit, 2*int(limit), pageMost))
}

// begin fetches an iterator for what comes after a position. Where that was trimmed away, reading goes on at the horizon.
func (r *reader) begin(ctx context.Context, at string) error {
	in := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: aws.String(r.feed.cfg.StreamARN), ShardId: aws.String(r.shard), ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
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
		return fmt.Errorf("beginning to read shard %s after %q: %w", r.shard, at, err)
	}
	r.iterator = out.ShardIterator
	return nil
}
