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

// A reader reads a shard from the table server.
type reader struct {
	feed     *Feed
	shard    string
	iterator *string // nil: to be fetched
	limit    int32   // how many records the next poll asks for
}

// read polls once for the changes behind a position, which has to be the end of the page that it read before. full is
// true when there were as many records as it asked for.
func (r *reader) read(ctx context.Context, at string) (p page, full bool, err error) {
	defer func() {
		if err != nil {
			r.iterator, err = nil, fmt.Errorf("reading shard %s after %q: %w", r.shard, at, err)
		}
	}()
	if r.iterator == nil {
		if r.iterator, err = r.begin(ctx, at); err != nil {
			return page{}, false, err
		}
	}
	out, err := r.feed.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: r.iterator, Limit: aws.Int32(r.limit)})
	if err != nil {
		return page{}, false, err
	}
	p, size := page{end: at}, 0
	for _, from := range out.Records {
		c, err := r.feed.format.change(from)
		if err != nil {
			return page{}, false, err
		}
		size += c.weight
		p.changes, p.end = append(p.changes, c), c.id
	}
	full = len(p.changes) >= int(r.limit)
	r.iterator, r.limit = out.NextShardIterator, nextLimit(r.limit, size, len(p.changes))
	p.closed = r.iterator == nil
	return p, full, nil
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
func (r *reader) begin(ctx context.Context, at string) (iterator *string, err error) {
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
		return nil, err
	}
	return out.ShardIterator, nil
}
