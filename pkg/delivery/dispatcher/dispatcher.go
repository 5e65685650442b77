// Package dispatcher turns the table's stream into deliveries and the audit trail. It
// derives the events of each change, keeps each event's payload once, makes a delivery
// for each endpoint that subscribes to it, and sends the messages of the deliveries
// to the worker. A change of what lets clients in makes an entry of the trail.
//
// To repeat a batch makes the same events and deliveries and loses nothing,
// wherever the last try ended: a message may be sent twice, never not at all.
// The endpoints of deliveries that were written HELD are read once more, since
// their owner may have activated them and recovered meanwhile. Package commerce
// says what an event is; the worker makes the attempts.
package dispatcher

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// consumer names the dispatcher in the records that it parks.
const consumer = "dispatcher"

// Store keeps endpoints, payloads, deliveries and the audit trail. Payloads and
// deliveries that exist already stay; CreateDeliveries returns these deliveries by
// position, nil for the created ones, and the events of these payloads. PutDelivery
// fails with [fault.ErrChanged] when another writer was faster.
type Store interface {
	Directory(ctx context.Context, org value.ID) (*webhook.Directory, error)
	Counters(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID]webhook.Counters, error)
	CreateDeliveries(ctx context.Context, deliveries []*webhook.Delivery, payloads ...webhook.Payload) (existing []*webhook.Delivery, known map[value.ID]bool, err error)
	PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error)
	PutAuditEntry(ctx context.Context, org value.ID, entry *account.AuditEntry) error
	AddFiltered(ctx context.Context, org, endpoint value.ID, hour value.Time, events int64) error
}

// Queue sends messages to the worker, in the lane of their endpoints.
type Queue interface {
	Move(ctx context.Context, lane webhook.Lane, messages ...queue.Move) error
}

// Parker keeps a stream record that cannot be processed, whole.
type Parker interface {
	Park(ctx context.Context, consumer string, record events.DynamoDBEventRecord, cause error) error
}

// Dispatcher handles batches of the stream. It is safe for concurrent use.
type Dispatcher struct {
	Topic Topic // gets alerts as well as their endpoints; nil: none

	store  Store
	queue  Queue
	park   Parker
	clock  func() time.Time
	logger *slog.Logger

	filtered filtered
}

// New returns a dispatcher.
func New(store Store, q Queue, park Parker, clock func() time.Time, logger *slog.Logger) *Dispatcher {
	return &Dispatcher{
		store: store, queue: q, park: park, clock: clock, logger: logger,
		filtered: filtered{pending: map[filteredHour]int64{}},
	}
}

// change is one stream record and its events.
type change struct {
	record *events.DynamoDBEventRecord
	events []addressed
	// carries says that the messages carry what the attempts need, as it was at a
	// time; 0: they do not.
	carries value.Time
	err     error // why it is not dispatched
}

// addressed is an event with the endpoints that subscribe to it.
type addressed struct {
	commerce.WebhookPayload
	about *subject // of an alert; nil: another event

	directory  *webhook.Directory
	subscribed []*webhook.Endpoint
	filtered   []*webhook.Endpoint // that subscribe to it, and whose delivery settings keep it from them
}

// fail notes why the change is not dispatched. A fault that passes replaces one
// of the change's own, which would park it.
func (c *change) fail(err error) {
	if err != nil && (c.err == nil || fault.Is(err, fault.Unavailable)) {
		c.err = err
	}
}

// deliveries counts the deliveries of a change.
func (c *change) deliveries() int {
	n := 0
	for i := range c.events {
		n += len(c.events[i].subscribed)
	}
	return n
}

// Handle dispatches a batch. A fault that passes fails the batch from the first
// record that met it, and the stream delivers the rest again. A record that
// cannot be processed is parked, and the others continue.
func (d *Dispatcher) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	begun := value.TimeOf(d.clock())
	changes := make([]*change, len(batch.Records))
	for i := range batch.Records {
		changes[i] = &change{record: &batch.Records[i]}
		changes[i].events, changes[i].err = d.derive(ctx, changes[i].record)
	}
	d.address(ctx, changes)
	d.dispatch(ctx, changes, begun)
	d.publish(ctx, changes)
	for i, c := range changes {
		if c.err == nil || d.parked(ctx, c) {
			continue
		}
		d.writeFiltered(ctx, changes[:i])
		d.logger.ErrorContext(ctx, "stream batch failed", "records", len(changes), "error", c.err)
		return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{
			{ItemIdentifier: c.record.Change.SequenceNumber},
		}}, nil
	}
	d.writeFiltered(ctx, changes)
	return events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}, nil
}

// parked parks a record that failed for a reason of its own, and reports
// whether it did. The end of a context does not count.
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

// derive returns the events of a stream record. A panic is an error: bad data
// parks its record and does not stop the function.
func (d *Dispatcher) derive(ctx context.Context, r *events.DynamoDBEventRecord) (found []addressed, err error) {
	defer fault.Recovered(&err)
	if err := d.writeTrail(ctx, r); err != nil {
		return nil, err
	}
	switch dynamo.StreamType(r) {
	case dynamo.StreamEndpoint:
		return d.announced(ctx, r)
	case dynamo.StreamEvent:
		return failed(r)
	}
	c, err := dynamo.Stream{}.RecordChange(r)
	if err != nil || c == nil {
		return nil, err
	}
	payloads, err := commerce.Events(c.Old, c.New)
	for _, p := range payloads {
		found = append(found, addressed{WebhookPayload: p})
	}
	return found, err
}

// writeTrail writes the entry of the audit trail that a stream record makes, if it
// makes one, and logs it for who restores the table. A repetition writes the same entry.
func (d *Dispatcher) writeTrail(ctx context.Context, r *events.DynamoDBEventRecord) error {
	org, entry, err := dynamo.Stream{}.AuditEntry(r)
	if err != nil || entry == nil {
		return err
	}
	if err := d.store.PutAuditEntry(ctx, org, entry); err != nil {
		return err
	}
	d.logger.InfoContext(ctx, "audit", "id", entry.ID.String(), "action", entry.Action, "organizationId", org.String(),
		slog.Group("actor", "kind", entry.Actor.Kind, "id", entry.Actor.ID), slog.Group("target", "kind", entry.Object.Kind, "id", entry.Object.ID.String()),
		"sourceAddress", entry.Address, "fields", entry.Fields)
	return nil
}

// address finds the endpoints of every event. An organization's endpoints are
// read once, and only for this batch, so that a change of them holds for the
// next one.
func (d *Dispatcher) address(ctx context.Context, changes []*change) {
	type result struct {
		*webhook.Directory
		err error
	}
	directories := map[value.ID]*result{}
	for _, c := range changes {
		if len(c.events) > 0 {
			directories[c.events[0].OrganizationID] = &result{}
		}
	}
	parallel.Each(maxReads, maps.All(directories), func(org value.ID, read *result) {
		read.Directory, read.err = d.store.Directory(ctx, org)
	})
	for _, c := range changes {
		for i := range c.events {
			read := directories[c.events[i].OrganizationID]
			if read.err != nil {
				c.fail(read.err)
				break
			}
			c.fail(c.events[i].address(read.Directory))
		}
	}
}

// maxReads is the organizations whose endpoints are read at a time.
const maxReads = 8

// address finds the endpoints that get an event, and those that subscribe to it
// and filter it.
func (a *addressed) address(directory *webhook.Directory) (err error) {
	defer fault.Recovered(&err)
	a.directory = directory
	candidate := webhook.Candidate{WebhookPayload: &a.WebhookPayload}
	for _, e := range directory.Endpoints {
		_, gone := webhook.MaySend(e, directory.Applications[e.ApplicationID])
		if !gone && a.concerns(e) && commerce.Matches(e.SubscribedEvents, a.Type) {
			reason, err := candidate.Refusal(e)
			switch {
			case err != nil:
				return err
			case reason == "":
				a.subscribed = append(a.subscribed, e)
			default:
				a.filtered = append(a.filtered, e)
			}
		}
	}
	return nil
}
