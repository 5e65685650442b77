// Package dispatcher turns the table's stream into deliveries: for every change
// it derives the events, keeps each event's payload once and a row for each
// endpoint that subscribes to it, and sends the rows' messages to the worker.
// Doing a batch again makes the same events and rows and loses nothing,
// whatever step the last try came to: a message may be sent twice, never not
// at all. Endpoints are read again after rows were written HELD, so that none
// is left behind by an owner who activates and recovers meanwhile. What an
// event is, is left to package commerce; attempts are left to the worker.
package dispatcher

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// consumer is how the dispatcher signs what it parks.
const consumer = "dispatcher"

// Endpoints tells who subscribes, and what an endpoint has counted.
type Endpoints interface {
	Directory(ctx context.Context, org value.ID) (*webhook.Directory, error)
	Counters(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID]webhook.Counters, error)
}

// Rows keeps events. What is there already stays; CreateRows returns it by the
// position of its row, nil where the row was created. PutRow fails with
// [fault.ErrChanged] when somebody else was faster.
type Rows interface {
	PutPayloads(ctx context.Context, payloads []webhook.Payload) error
	CreateDeliveries(ctx context.Context, rows []*webhook.Delivery) (existing []*webhook.Delivery, err error)
	PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error)
}

// Store is what a dispatcher keeps its state in.
type Store interface {
	Endpoints
	Rows
}

// Queue sends messages to the worker, in the lane that the endpoints take.
type Queue interface {
	Send(ctx context.Context, lane webhook.Lane, now value.Time, rows ...*webhook.Delivery) error
}

// Parker takes a stream record that cannot be processed, whole.
type Parker interface {
	Park(ctx context.Context, consumer string, record events.DynamoDBEventRecord, cause error) error
}

// Dispatcher handles batches of the stream. It is safe for concurrent use.
type Dispatcher struct {
	store  Store
	queue  Queue
	park   Parker
	clock  func() time.Time
	logger *slog.Logger
}

// New returns a dispatcher.
func New(store Store, q Queue, park Parker, clock func() time.Time, logger *slog.Logger) *Dispatcher {
	return &Dispatcher{store: store, queue: q, park: park, clock: clock, logger: logger}
}

// change is one stream record on its way.
type change struct {
	record *events.DynamoDBEventRecord
	events []addressed
	err    error
}

// Handle dispatches a batch. A passing fault fails the batch from the first
// record that met it, and the stream delivers the rest again; a record that
// cannot be processed is parked and the others go on.
func (d *Dispatcher) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	changes := make([]*change, len(batch.Records))
	for i := range batch.Records {
		changes[i] = &change{record: &batch.Records[i]}
		changes[i].events, changes[i].err = d.derive(ctx, changes[i].record)
	}
	d.address(ctx, changes)
	d.dispatch(ctx, changes)
	for _, c := range changes {
		if c.err == nil || d.parked(ctx, c) {
			continue
		}
		d.logger.ErrorContext(ctx, "stream batch failed", "records", len(changes), "error", c.err)
		return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{
			{ItemIdentifier: c.record.Change.SequenceNumber},
		}}, nil
	}
	return events.DynamoDBEventResponse{}, nil
}

// parked parks a record that failed for a reason of its own, and reports
// whether that is done. A context that has ended is no such reason.
func (d *Dispatcher) parked(ctx context.Context, c *change) bool {
	if fault.Is(c.err, fault.Unavailable) || ctx.Err() != nil {
		return false
	}
	if err := d.park.Park(ctx, consumer, *c.record, c.err); err != nil {
		c.err = fmt.Errorf("park a record: %w", err)
		return false
	}
	d.logger.ErrorContext(ctx, "a stream record was parked", "sequence", c.record.Change.SequenceNumber, "error", c.err)
	return true
}

// derive returns the events that a stream record means.
func (d *Dispatcher) derive(ctx context.Context, r *events.DynamoDBEventRecord) (found []addressed, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	switch dynamo.StreamType(r) {
	case dynamo.StreamRecord:
		c, err := dynamo.DecodeRecordChange(r)
		if err != nil {
			return nil, err
		}
		payloads, err := commerce.Events(c.Old, c.New)
		for _, p := range payloads {
			found = append(found, addressed{WebhookPayload: p})
		}
		return found, err
	case dynamo.StreamEndpoint:
		return d.disabled(ctx, r)
	}
	return nil, nil
}

// disabled returns the event of an endpoint that the service has disabled.
func (d *Dispatcher) disabled(ctx context.Context, r *events.DynamoDBEventRecord) ([]addressed, error) {
	old, next, err := dynamo.DecodeEndpointChange(r)
	if err != nil || old == nil || next == nil || next.Status != webhook.Disabled {
		return nil, err
	}
	counters, err := d.store.Counters(ctx, next.OrganizationID, next.ID)
	if err != nil {
		return nil, err
	}
	payload, err := webhook.DisabledEvent(old, next, counters[next.ID])
	if err != nil || payload == nil {
		return nil, err
	}
	return []addressed{{WebhookPayload: *payload, of: next}}, nil
}
