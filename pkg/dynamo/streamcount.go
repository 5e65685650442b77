package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// attrUncounted marks the write of a delivery whose attempt the stream is to
	// count.
	attrUncounted = "uncounted"
	// attrPosition of a counter shard says how far the stream is counted in it.
	attrPosition = "position"
)

// Attempt returns the change of a delivery whose attempt the stream is to count;
// nil for any other change.
func (Stream) Attempt(r *events.DynamoDBEventRecord) (*webhook.StreamAttempt, error) {
	if _, uncounted := r.Change.NewImage[attrUncounted]; !uncounted || StreamType(r) != StreamEvent {
		return nil, nil
	}
	previous, next, err := Stream{}.DeliveryChange(r)
	if err != nil || previous == nil || len(next.Attempts) == 0 || next.AttemptCount != previous.AttemptCount+1 {
		return nil, err
	}
	_, stream, _ := strings.Cut(r.EventSourceArn, "/stream/")
	return &webhook.StreamAttempt{
		DeliveryChange: webhook.DeliveryChange{Previous: previous, Next: next},
		Stream:         stream, Partition: shardOf(next.ID), Sequence: r.Change.SequenceNumber,
	}, nil
}

// PutCounted notes that the stream's records up to the time are counted, those
// of one of its shards at least.
func (t *Table) PutCounted(ctx context.Context, at value.Time) error {
	it := countedKey().newItem(typeCounted)
	it[attrAt] = num(at)
	_, _, err := t.putItem(ctx, "note how far the stream is counted", t.put(it, always))
	return err
}

// Counted is the time that [Table.PutCounted] noted last, eventually
// consistent; 0 before the first.
func (t *Table) Counted(ctx context.Context) (value.Time, error) {
	it, err := t.getItem(ctx, countedKey(), false)
	return getTime(it, attrAt), err
}

// StreamCount reads what the stream has counted of an endpoint, strongly
// consistent: an empty count of revision 0 when it has counted nothing.
func (t *Table) StreamCount(ctx context.Context, org, endpoint value.ID) (*webhook.StreamCount, error) {
	return read(ctx, t, counterShardKey(org, endpoint, webhook.StreamShard), decodeStreamCount)
}

func decodeStreamCount(it item) (c *webhook.StreamCount, err error) {
	c = &webhook.StreamCount{}
	if c.StoredCounterShard, err = decodeCounterShard(it, webhook.StreamShard); err != nil || it == nil {
		return c, err
	}
	if err := json.Unmarshal([]byte(getString(it, attrPosition)), &c.Position); err != nil {
		return nil, fmt.Errorf("how far the stream is counted in %s: %w", getString(it, attrPK), err)
	}
	return c, nil
}

// PutStreamCount stores what [webhook.StreamCount.Count] returned, with the hour
// and the day that it finished. When another writer was faster it returns what
// that one stored. A write that met its own earlier try has succeeded.
func (t *Table) PutStreamCount(ctx context.Context, w *webhook.CounterShardWrite, after webhook.StreamPosition) (current *webhook.StreamCount, done bool, err error) {
	token := newToken()
	put := t.putCounterShard(w, token)
	put.Put.Item[attrPosition] = encodeDoc(after)
	const tried = "count the stream"
	var found item
	if finished := t.putFinished(w); len(finished) == 0 {
		found, done, err = t.putItem(ctx, tried, put)
	} else {
		var refused refusals
		refused, err = t.transactTries(ctx, tried, maxOutcomeTries, append([]write{put}, finished...))
		found, done = refused[0], len(refused) == 0
	}
	if done || err != nil || getUnsigned(found, attrWrite) == token {
		return nil, err == nil, err
	}
	current, err = decodeStreamCount(found)
	return current, false, err
}
