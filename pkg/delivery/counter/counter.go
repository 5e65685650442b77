// Package counter counts the attempts of endpoints, from the outcomes in the
// table's stream, and changes what follows from the counts: the circuits and lanes
// of endpoints, and whether they are disabled. Nothing else counts attempts. One
// write counts all of a batch that are of one endpoint; counts, circuits and lanes
// are as late as the stream.
//
// Each attempt counts once, however often its record comes: the tally stores how
// far each shard of the stream is counted, and the records of a shard come in
// order, also when DynamoDB divides the items of a partition key between two
// shards. So a shard must have one batch at a time, and the event must name it: the
// event source has a tumbling window, which adds the name.
//
// A process that dies between the count and the change of the routing repeats the
// batch, which counts nothing and changes the routing.
package counter

import (
	"context"
	"hash/fnv"
	"log/slog"
	"maps"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/bounded"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// maxParallel is how many endpoints are counted at a time.
	maxParallel = 8
	// maxConflicts bounds the tries to write a tally that others write, too: one for
	// each shard of the stream at a time.
	maxConflicts = 20
	// maxRoutingTries bounds the tries to set a routing that others are setting.
	maxRoutingTries = 4
	// maxRemembered is of how many endpoints a process remembers the tally.
	maxRemembered = 4096
)

// Store keeps tallies and endpoints. PutTally returns the present tally, and is not
// done, when another writer was faster; SetRouting then reports false, PutDelivery
// fails with [fault.ErrChanged], and ChangeEndpoint calls change again.
type Store interface {
	Tally(ctx context.Context, org, endpoint value.ID) (*webhook.Tally, error)
	PutTally(ctx context.Context, d *webhook.Delivery, next *webhook.Tally, finished webhook.Finished) (current *webhook.Tally, done bool, err error)
	Endpoint(ctx context.Context, org, id value.ID) (*webhook.Endpoint, error)
	SetRouting(ctx context.Context, org, endpoint value.ID, previous, next webhook.Routing) (bool, error)
	ChangeEndpoint(ctx context.Context, org, id value.ID, change func(*webhook.Endpoint) (*webhook.Endpoint, error)) (*webhook.Endpoint, error)
	PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error)
}

// Queue sends messages to the worker.
type Queue interface {
	Move(ctx context.Context, to webhook.Lane, moves ...queue.Move) error
}

// Counter handles batches of the stream. It is safe for concurrent use.
type Counter struct {
	store  Store
	queue  Queue
	clock  func() time.Time
	logger *slog.Logger

	tallies *bounded.Map[value.ID, *webhook.Tally] // by endpoint, as last read or written
}

// New returns a counter.
func New(store Store, q Queue, clock func() time.Time, logger *slog.Logger) *Counter {
	return &Counter{store: store, queue: q, clock: clock, logger: logger, tallies: bounded.New[value.ID, *webhook.Tally](maxRemembered)}
}

// Handle counts a batch. When the table fails, the whole batch fails, and what
// of it is counted does not count again. A record that cannot be decoded, and an
// endpoint whose tally cannot, is left out, or it would stop all others.
func (c *Counter) Handle(ctx context.Context, batch events.DynamoDBTimeWindowEvent) (failures []events.DynamoDBBatchItemFailure) {
	outcomes := map[value.ID][]webhook.StreamOutcome{}
	for i := range batch.Records {
		o, err := outcome(&batch.Records[i], batch.ShardID)
		if err != nil {
			c.logger.ErrorContext(ctx, "an attempt was not counted", "sequence", batch.Records[i].Change.SequenceNumber, "error", err)
		}
		if o != nil {
			outcomes[o.Next.EndpointID] = append(outcomes[o.Next.EndpointID], *o)
		}
	}
	err := parallel.UntilError(ctx, maxParallel, maps.All(outcomes), func(ctx context.Context, endpoint value.ID, some []webhook.StreamOutcome) error {
		err := c.endpoint(ctx, some)
		if err == nil || fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			return err
		}
		c.logger.ErrorContext(ctx, "attempts were not counted", "endpointId", endpoint, "attempts", len(some), "error", err)
		return nil
	})
	if err != nil {
		c.logger.ErrorContext(ctx, "stream batch failed", "records", len(batch.Records), "error", err)
		return []events.DynamoDBBatchItemFailure{{ItemIdentifier: batch.Records[0].Change.SequenceNumber}}
	}
	return nil
}

// outcome returns the outcome of an attempt that counts; nil for any other change. A
// panic is an error, or it would block the shard for good.
func outcome(r *events.DynamoDBEventRecord, shard string) (o *webhook.StreamOutcome, err error) {
	defer fault.Recovered(&err)
	if dynamo.StreamType(r) != dynamo.StreamEvent {
		return nil, nil
	}
	previous, next, err := dynamo.Stream{}.DeliveryChange(r)
	if err != nil || previous == nil || next.Test || next.AttemptCount != previous.AttemptCount+1 || len(next.Attempts) == 0 {
		return nil, err
	}
	if shard == "" { // of a mapping without a window
		shard = dynamo.StreamPartition(r)
	}
	return &webhook.StreamOutcome{
		Previous: previous, Next: next, Shard: shardID(r.EventSourceArn, shard),
		Sequence: r.Change.SequenceNumber, At: value.TimeOf(r.Change.ApproximateCreationDateTime.Time),
	}, nil
}

// shardID identifies a shard of a stream in 48 bits.
func shardID(stream, shard string) int64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(stream + shard))
	return int64(hash.Sum64() >> 16) //nolint:gosec // 48 bits
}

// endpoint counts outcomes of one endpoint and changes its routing. The endpoint is
// read only where an outcome may change its routing. A panic is an error, too.
func (c *Counter) endpoint(ctx context.Context, outcomes []webhook.StreamOutcome) (err error) {
	defer fault.Recovered(&err)
	var e *webhook.Endpoint
	since, d := value.Time(0), outcomes[0].Next
	if webhook.Troubled(outcomes) {
		if e, err = c.store.Endpoint(ctx, d.OrganizationID, d.EndpointID); err != nil {
			return err
		}
		if e != nil {
			since = e.HealthStart()
		}
	}
	tally, err := c.count(ctx, outcomes, since)
	if err != nil || e == nil {
		return err
	}
	return c.route(ctx, e, tally, outcomes)
}

// count writes the tally after the outcomes, and returns it.
func (c *Counter) count(ctx context.Context, outcomes []webhook.StreamOutcome, since value.Time) (*webhook.Tally, error) {
	d := outcomes[0].Next
	tally := c.tallies.Get(d.EndpointID)
	if tally == nil {
		var err error
		if tally, err = c.store.Tally(ctx, d.OrganizationID, d.EndpointID); err != nil {
			return nil, err
		}
	}
	err := retry.Contended(ctx, maxConflicts, func() (done bool, err error) {
		next, finished := tally.Count(outcomes, since)
		if next == nil {
			return true, nil
		}
		current, done, err := c.store.PutTally(ctx, d, next, finished)
		switch {
		case done:
			tally = next
		case err == nil:
			tally = current
		}
		return done, err
	})
	if err != nil {
		c.tallies.Set(d.EndpointID, nil) // it may be written
		return nil, err
	}
	c.tallies.Set(d.EndpointID, tally)
	return tally, nil
}

// route changes the endpoint's routing, or disables it, where its health calls
// for that.
func (c *Counter) route(ctx context.Context, e *webhook.Endpoint, tally *webhook.Tally, outcomes []webhook.StreamOutcome) error {
	org, id := e.OrganizationID, e.ID
	return retry.Contended(ctx, maxRoutingTries, func() (done bool, err error) {
		now := value.TimeOf(c.clock())
		next, disable := e.NextRouting(tally.Health(e.HealthStart(), now), outcomes, now)
		switch {
		case disable != "":
			return true, c.disable(ctx, e, disable, now)
		case next.Equal(e.Routing()):
			return true, nil
		}
		if done, err = c.store.SetRouting(ctx, org, id, e.Routing(), next); err != nil {
			return false, err
		}
		if done {
			c.logger.InfoContext(ctx, "routing changed", "endpointId", id,
				"lane", next.Lane, "circuit", next.Circuit.StateName(), "lane.was", e.Lane, "circuit.was", e.Circuit.StateName())
			if next.Circuit.Soon() && !next.Circuit.Equal(e.Circuit) {
				c.probeSoon(ctx, outcomes, next, now)
			}
			return true, nil
		}
		e, err = c.store.Endpoint(ctx, org, id)
		return e == nil, err
	})
}

// disable disables an endpoint unless its owner has changed it meanwhile.
func (c *Counter) disable(ctx context.Context, read *webhook.Endpoint, reason string, now value.Time) error {
	_, err := c.store.ChangeEndpoint(ctx, read.OrganizationID, read.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		if e.UpdatedAt != read.UpdatedAt || e.Status != webhook.Active {
			return e, nil
		}
		return e.Disable(reason, now), nil
	})
	return err
}

// probeSoon makes one of the deliveries that failed the circuit's next probe: the
// sweeper comes once a minute. Where none of them is left, the sweeper makes one of
// what the circuit holds then.
func (c *Counter) probeSoon(ctx context.Context, outcomes []webhook.StreamOutcome, routing webhook.Routing, now value.Time) {
	at := routing.Circuit.ProbeAt
	for _, o := range outcomes {
		d := o.Next
		if !d.Pending() && d.HeldReason != webhook.HeldCircuitOpen {
			continue
		}
		next := d.ProbeNext(at, now)
		if _, err := c.store.PutDelivery(ctx, d, next); err != nil {
			continue
		}
		move := queue.Move{Ref: next.Ref(), MessageID: next.MessageID, Delay: at.Std().Sub(now.Std())}
		if err := c.queue.Move(ctx, routing.Lane, move); err != nil {
			c.logger.WarnContext(ctx, "the next probe is left to the sweeper", "deliveryId", d.ID, "error", err)
		}
		return
	}
}
