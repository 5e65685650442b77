// Package delivery is the worker: it brings events to integrators' URLs, one
// attempt for each message of the deliveries queue. A receiver's failure is
// written into the event's row and tried again as the schedule says; only
// what the service itself could not do leaves a message to the queue's own
// retries. An attempt counts when its outcome is in the row, once, however
// often its message comes. Which events there are is left to the dispatcher,
// and waits longer than the queue's to the sweeper.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/outbound"
	"github.com/commerce-integration/service/pkg/sealed"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Rows reads what attempts need and keeps their outcomes. PutRow fails with
// [dynamo.ErrChanged] and the row as it is when somebody else was faster.
type Rows interface {
	Deliveries(ctx context.Context, refs []webhook.Ref) ([]webhook.Delivery, error)
	PutRow(ctx context.Context, previous, next *webhook.Row) (current *webhook.Row, err error)
}

// Endpoints counts attempts, and disables endpoints that are gone.
type Endpoints interface {
	AddCounters(ctx context.Context, org, endpoint value.ID, c webhook.Counters) error
	ChangeEndpoint(ctx context.Context, org, id value.ID, change func(*webhook.Endpoint) (*webhook.Endpoint, error)) (*webhook.Endpoint, error)
}

// Queue hides a message for a time.
type Queue interface {
	Hide(ctx context.Context, receipt string, d time.Duration) error
}

// Store is what the worker keeps its state in.
type Store interface {
	Rows
	Endpoints
}

// Config adapts a worker. Its zero value is the service's own.
type Config struct {
	Clock       func() time.Time
	Random      func() float64 // in [0,1), moves retries within their span
	Logger      *slog.Logger
	Concurrency int // attempts under way at a time; 0 is 10
}

// Worker handles messages. It is safe for concurrent use.
type Worker struct {
	store   Store
	queue   Queue
	client  *outbound.Client
	secrets *sealed.Box
	cfg     Config
}

// New returns a worker.
func New(store Store, queue Queue, client *outbound.Client, secrets *sealed.Box, cfg Config) *Worker {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 10
	}
	return &Worker{store: store, queue: queue, client: client, secrets: secrets, cfg: cfg}
}

// task is one message on its way.
type task struct {
	message  *events.SQSMessage
	ref      webhook.Ref
	delivery webhook.Delivery
	attempt  *webhook.Attempt // to be counted
	err      error            // why the message stays in the queue
}

// errLater keeps a message for its next attempt; nothing is wrong with it.
var errLater = errors.New("hidden until its next attempt")

// Handle makes the attempts of a batch of messages. What is reported as
// failed stays in the queue: a message that carries a retry, hidden until
// then, and one that could not be worked on.
func (w *Worker) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	tasks := make([]*task, len(batch.Records))
	for i := range batch.Records {
		t := &task{message: &batch.Records[i]}
		t.ref, t.err = webhook.ParseRef(t.message.Body)
		tasks[i] = t
	}
	w.read(ctx, tasks)
	var group errgroup.Group
	group.SetLimit(w.cfg.Concurrency)
	for _, t := range tasks {
		if t.err == nil {
			group.Go(func() error {
				t.err = w.process(ctx, t)
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return events.SQSEventResponse{}, err
	}
	w.count(ctx, tasks)
	return w.report(ctx, tasks), nil
}

// read fetches what the attempts need, for all messages together. One whose
// items cannot be read does not stop the others.
func (w *Worker) read(ctx context.Context, tasks []*task) {
	var refs []webhook.Ref
	var readable []*task
	for _, t := range tasks {
		if t.err == nil {
			refs, readable = append(refs, t.ref), append(readable, t)
		}
	}
	deliveries, err := w.store.Deliveries(ctx, refs)
	for i, t := range readable {
		switch {
		case err == nil:
			t.delivery = deliveries[i]
		case fault.Is(err, fault.Unavailable) || len(readable) == 1:
			t.err = err
		default:
			w.read(ctx, []*task{t})
		}
	}
}

// count adds the attempts of the batch to their endpoints' counters, one
// addition an endpoint. An addition that fails is lost: attempts are counted
// at most once.
func (w *Worker) count(ctx context.Context, tasks []*task) {
	type endpoint struct{ org, id value.ID }
	sums := map[endpoint]*webhook.Counters{}
	for _, t := range tasks {
		if t.attempt == nil {
			continue
		}
		key := endpoint{t.ref.OrganizationID, t.ref.EndpointID}
		if sums[key] == nil {
			sums[key] = &webhook.Counters{}
		}
		sums[key].Count(*t.attempt)
	}
	for key, sum := range sums {
		if err := w.store.AddCounters(ctx, key.org, key.id, *sum); err != nil {
			w.cfg.Logger.ErrorContext(ctx, "attempts were not counted", "endpointId", key.id,
				"successes", sum.SuccessCount, "failures", sum.FailureCount, "error", err)
		}
	}
}

func (w *Worker) report(ctx context.Context, tasks []*task) events.SQSEventResponse {
	var response events.SQSEventResponse
	for _, t := range tasks {
		if t.err == nil {
			continue
		}
		if !errors.Is(t.err, errLater) {
			w.cfg.Logger.ErrorContext(ctx, "delivery could not be worked on",
				"messageId", t.message.MessageId, "rowId", t.ref.RowID, "error", t.err)
		}
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: t.message.MessageId})
	}
	return response
}

// process brings one message to its end, which is nil, or tells why it stays.
func (w *Worker) process(ctx context.Context, t *task) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	row := t.delivery.Row
	if row == nil || !row.Pending() {
		return nil
	}
	now := value.TimeOf(w.cfg.Clock())
	switch turn, wait := turnOf(row, t.message.MessageId, now); turn {
	case drop:
		return nil
	case wake:
		return w.hide(ctx, t, wait)
	}
	endpoint := t.delivery.Endpoint
	if endpoint == nil || t.delivery.Application == webhook.ApplicationAbsent {
		return w.settle(ctx, row, func(r *webhook.Row) *webhook.Row { return r.Cancel(now) })
	}
	if hold := endpoint.Hold(t.delivery.Application); hold != "" && !row.Test {
		return w.settle(ctx, row, func(r *webhook.Row) *webhook.Row { return r.Hold(hold, now) })
	}
	return w.deliver(ctx, t)
}

func (w *Worker) hide(ctx context.Context, t *task, d time.Duration) error {
	if err := w.queue.Hide(ctx, t.message.ReceiptHandle, d); err != nil {
		return err
	}
	return errLater
}

// settle ends a row without an attempt, unless it has changed meanwhile.
func (w *Worker) settle(ctx context.Context, row *webhook.Row, change func(*webhook.Row) *webhook.Row) error {
	_, err := w.store.PutRow(ctx, row, change(row))
	if errors.Is(err, dynamo.ErrChanged) {
		return nil
	}
	return err
}
