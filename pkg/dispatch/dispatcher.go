// Package dispatch turns the table's stream into deliveries: for every change
// it derives the events, keeps each event's payload once and a row for each
// endpoint that subscribes to it, and sends the rows' messages to the worker.
// Doing a batch again makes the same events and rows and loses nothing,
// whatever step the last try came to: a message may be sent twice, never not
// at all. What an event is, is left to package commerce; attempts are left to
// the worker.
package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// consumer is how the dispatcher signs what it parks.
const consumer = "dispatcher"

const (
	eventWriters = 16 // events worked on at a time
	rowWriters   = 8  // rows of each event written at a time
)

// Endpoints tells who subscribes, and what an endpoint has counted.
type Endpoints interface {
	Directory(ctx context.Context, org value.ID) (*webhook.Directory, error)
	Counters(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID]webhook.Counters, error)
}

// Rows keeps events. PutPayload leaves a payload that is there; CreateRow
// returns a row that is there.
type Rows interface {
	PutPayload(ctx context.Context, org, event value.ID, body []byte) error
	CreateRow(ctx context.Context, r *webhook.Row) (existing *webhook.Row, err error)
}

// Store is what a dispatcher keeps its state in.
type Store interface {
	Endpoints
	Rows
}

// Queue sends messages to the worker.
type Queue interface {
	SendRows(ctx context.Context, now value.Time, rows ...*webhook.Row) error
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

	mu   sync.Mutex
	rows []*webhook.Row // to be sent
}

// addressed is an event with whom it may go to.
type addressed struct {
	commerce.WebhookPayload
	// of restricts the event to an application's endpoints but one.
	of *webhook.Endpoint
}

func (a *addressed) reaches(e *webhook.Endpoint) bool {
	if a.of != nil && (e.ApplicationID != a.of.ApplicationID || e.ID == a.of.ID) {
		return false
	}
	return commerce.Matches(e.SubscribedEvents, a.Type)
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
	d.send(ctx, changes)
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

// address writes the payloads and rows of all changes. Each organization's
// endpoints are read once.
func (d *Dispatcher) address(ctx context.Context, changes []*change) {
	directory := func(org value.ID) (*webhook.Directory, error) { return d.store.Directory(ctx, org) }
	known := map[value.ID]func() (*webhook.Directory, error){}
	var group errgroup.Group
	group.SetLimit(eventWriters)
	for _, c := range changes {
		for i := range c.events {
			ev := &c.events[i]
			if known[ev.OrganizationID] == nil {
				known[ev.OrganizationID] = sync.OnceValues(func() (*webhook.Directory, error) { return directory(ev.OrganizationID) })
			}
			read := known[ev.OrganizationID]
			group.Go(func() error {
				found, err := read()
				if err == nil {
					err = d.event(ctx, c, ev, found)
				}
				c.fail(err)
				return nil
			})
		}
	}
	_ = group.Wait() // every error is in its change
}

func (c *change) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && (c.err == nil || fault.Is(err, fault.Unavailable)) {
		c.err = err
	}
}

// event writes one event's payload and then its rows.
func (d *Dispatcher) event(ctx context.Context, c *change, ev *addressed, directory *webhook.Directory) error {
	var subscribed []*webhook.Endpoint
	for _, e := range directory.Endpoints {
		if directory.Applications[e.ApplicationID] != webhook.ApplicationAbsent && ev.reaches(e) {
			subscribed = append(subscribed, e)
		}
	}
	if len(subscribed) == 0 {
		return nil
	}
	body, err := ev.Encode()
	if err != nil {
		return err
	}
	if err := d.store.PutPayload(ctx, ev.OrganizationID, ev.ID, body); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(rowWriters)
	for _, e := range subscribed {
		group.Go(func() error { return d.row(ctx, c, ev, e, directory.Applications[e.ApplicationID]) })
	}
	return group.Wait()
}

// row writes the event's row for an endpoint and adds its message to the
// change's. A row that an earlier try has written is sent again as long as no
// attempt shows that its message arrived.
func (d *Dispatcher) row(ctx context.Context, c *change, ev *addressed, e *webhook.Endpoint, application webhook.ApplicationState) error {
	row := webhook.NewRow(&ev.WebhookPayload, e, e.Hold(application), value.TimeOf(d.clock()))
	existing, err := d.store.CreateRow(ctx, row)
	if err != nil {
		return err
	}
	if existing != nil {
		row = existing
	}
	if row.Unattempted() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.rows = append(c.rows, row)
	}
	return nil
}

// send sends the messages of all changes together, in full batches.
func (d *Dispatcher) send(ctx context.Context, changes []*change) {
	var rows []*webhook.Row
	for _, c := range changes {
		rows = append(rows, c.rows...)
	}
	if len(rows) == 0 {
		return
	}
	err := d.queue.SendRows(ctx, value.TimeOf(d.clock()), rows...)
	for _, c := range changes {
		if len(c.rows) > 0 {
			c.fail(err)
		}
	}
}
