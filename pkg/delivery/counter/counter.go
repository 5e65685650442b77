// Package counter adds to the counters of endpoints, from the table's stream,
// the attempts whose outcome the worker has left to the stream to count. One
// write counts all of a batch that are of one endpoint.
//
// Each attempt counts once, however often its record comes: with the counters
// stands how far the stream is counted, by partition of deliveries, within which
// records come in order. DynamoDB divides the items of one partition key by their
// sort keys where they are more than 10 GB or take more than 1,000 write units a
// second, here a sixteenth of an organization's deliveries of 30 days. Such a
// partition comes in two shards of the stream without a common order, and what one
// brings behind the other is not counted.
//
// The worker decides which attempts are left to the stream, and package webhook
// what counters are.
package counter

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// maxParallel is how many endpoints are counted at a time.
	maxParallel = 8
	// maxConflicts bounds the tries to count for an endpoint of which others
	// count, too: there is one for each shard of the stream at a time.
	maxConflicts = 20
	// maxRemembered is of how many endpoints a process remembers the counters.
	maxRemembered = 4096
)

// Store keeps the counts. PutStreamCount returns the present one, and is not
// done, when another writer was faster.
type Store interface {
	StreamCount(ctx context.Context, org, endpoint value.ID) (*webhook.StreamCount, error)
	PutStreamCount(ctx context.Context, w *webhook.CounterShardWrite, after webhook.StreamPosition) (current *webhook.StreamCount, done bool, err error)
	PutCounted(ctx context.Context, at value.Time) error
}

// Counter handles batches of the stream. It is safe for concurrent use.
type Counter struct {
	store  Store
	logger *slog.Logger

	mu    sync.Mutex
	known map[value.ID]*webhook.StreamCount // by endpoint, as last read or written
	noted value.Time                        // up to which the stream is counted
}

// New returns a counter.
func New(store Store, logger *slog.Logger) *Counter {
	return &Counter{store: store, logger: logger, known: map[value.ID]*webhook.StreamCount{}}
}

// Handle counts a batch. When the table fails, the whole batch fails, and what
// of it is counted does not count again. A record that cannot be decoded is left
// out.
func (c *Counter) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	attempts := map[value.ID][]webhook.StreamAttempt{}
	for i := range batch.Records {
		a, err := decoded(&batch.Records[i])
		if err != nil {
			c.logger.ErrorContext(ctx, "an attempt was not counted", "sequence", batch.Records[i].Change.SequenceNumber, "error", err)
		}
		if a != nil {
			attempts[a.Next.EndpointID] = append(attempts[a.Next.EndpointID], *a)
		}
	}
	err := parallel.UntilError(ctx, maxParallel, maps.All(attempts), func(ctx context.Context, endpoint value.ID, some []webhook.StreamAttempt) error {
		if err := c.count(ctx, endpoint, some); err != nil {
			return fmt.Errorf("count %d attempts of endpoint %s: %w", len(some), endpoint, err)
		}
		return nil
	})
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	if err != nil {
		c.logger.ErrorContext(ctx, "stream batch failed", "records", len(batch.Records), "error", err)
		response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: batch.Records[0].Change.SequenceNumber})
		return response, nil
	}
	if len(batch.Records) > 0 {
		c.note(ctx, value.TimeOf(batch.Records[len(batch.Records)-1].Change.ApproximateCreationDateTime.Time))
	}
	return response, nil
}

// note informs the workers once a minute how far the stream is counted. While they
// do not know that it is, they count by themselves.
func (c *Counter) note(ctx context.Context, at value.Time) {
	c.mu.Lock()
	due := at >= c.noted.Add(webhook.CountedEvery)
	if due {
		c.noted = at
	}
	c.mu.Unlock()
	if !due {
		return
	}
	if err := c.store.PutCounted(ctx, at); err != nil {
		c.logger.WarnContext(ctx, "it was not noted how far the stream is counted", "error", err)
	}
}

// decoded decodes a record. A panic is an error, or it would block the shard for
// good.
func decoded(r *events.DynamoDBEventRecord) (a *webhook.StreamAttempt, err error) {
	defer fault.Recovered(&err)
	return dynamo.Stream{}.Attempt(r)
}

// count counts attempts of one endpoint.
func (c *Counter) count(ctx context.Context, endpoint value.ID, attempts []webhook.StreamAttempt) (err error) {
	count := c.recall(endpoint)
	if count == nil {
		if count, err = c.store.StreamCount(ctx, attempts[0].Next.OrganizationID, endpoint); err != nil {
			return err
		}
	}
	defer func() { c.remember(endpoint, count) }()
	for {
		w, after := count.Count(attempts)
		if w == nil {
			return nil
		}
		err := retry.Contended(ctx, maxConflicts, func() (done bool, err error) {
			current, done, err := c.store.PutStreamCount(ctx, w, after)
			switch {
			case done:
				count = &webhook.StreamCount{StoredCounterShard: webhook.StoredCounterShard{Number: w.Number, Revision: w.Revision + 1, Shard: w.Next}, Position: after}
			case err == nil:
				count = current
				w, after = count.Count(attempts)
			}
			return done || err == nil && w == nil, err
		})
		if err != nil {
			count = nil // it may be written
			return fault.Busy(err)
		}
	}
}

func (c *Counter) recall(endpoint value.ID) *webhook.StreamCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[endpoint]
}

func (c *Counter) remember(endpoint value.ID, count *webhook.StreamCount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxRemembered {
		clear(c.known)
	}
	if delete(c.known, endpoint); count != nil {
		c.known[endpoint] = count
	}
}
