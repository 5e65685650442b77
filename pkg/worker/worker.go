// Package worker is the worker: it brings events to integrators' URLs, one
// attempt for each message of the deliveries queues. A receiver's failure is
// written into the event's row and tried again as the schedule says; only
// what the service itself could not do leaves a message to the queue's own
// retries. An attempt counts when its outcome is in the row, once, however
// often its message comes, and no endpoint takes more than its share of the
// attempts under way. Which events there are is left to the dispatcher, and
// waits longer than the queue's, probes and what circuits held to the
// sweeper.
//
// # What is never lost
//
// A message is deleted only when something else stands for what it brings:
// the row's end, its due mark, or another message. A process that dies
//   - before the attempt or during it leaves the message, which comes again;
//   - between the attempt and its record too: the receiver is asked again and
//     the attempt that nobody recorded is not counted;
//   - between the record and hiding the message leaves it until the queue's
//     own timeout, and as the row's carrier it makes the retry then;
//   - between sending a message in its place and its deletion leaves two that
//     may carry the row. Whichever records an attempt first carries on; the
//     other stays until the row's end, and takes over should that one be lost.
//
// A row that is HELD because its endpoint is PAUSED, DISABLED or suspended
// waits for its owner's recovery. The endpoint is read again after the row is
// HELD, and the row goes on when that is no longer so: a recovery that was
// faster has not met it.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/outbound"
	"github.com/commerce-integration/service/pkg/sealed"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Rows reads what attempts need, and ends rows without an attempt. PutRow
// fails with [fault.ErrChanged] when somebody else was faster.
type Rows interface {
	DeliveryInputs(ctx context.Context, refs []webhook.DeliveryRef) ([]webhook.DeliveryInput, error)
	PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error)
}

// Outcomes keeps the outcomes of attempts and the tallies that count them,
// all of a call or nothing.
type Outcomes interface {
	RecordOutcomes(ctx context.Context, outcomes []webhook.DeliveryChange, tallies []webhook.CounterShardWrite) (*webhook.WriteConflict, error)
	CounterShard(ctx context.Context, org, endpoint value.ID, shard int) (webhook.StoredCounterShard, error)
}

// Conditions keeps how endpoints do. SetRouting reports false, and
// ChangeEndpoint calls change again, when somebody else was faster.
type Conditions interface {
	Health(ctx context.Context, org, endpoint value.ID, since, now value.Time) (webhook.Health, error)
	Endpoint(ctx context.Context, org, id value.ID) (*webhook.Endpoint, error)
	SetRouting(ctx context.Context, org, endpoint value.ID, previous, next webhook.Routing) (bool, error)
	ChangeEndpoint(ctx context.Context, org, id value.ID, change func(*webhook.Endpoint) (*webhook.Endpoint, error)) (*webhook.Endpoint, error)
}

// Slots gives an endpoint's few slots to instances of the worker. False means
// that others have them all.
type Slots interface {
	TakePermit(ctx context.Context, org, endpoint value.ID, holder string, now, until value.Time) (bool, error)
}

// Store is what the worker keeps its state in.
type Store interface {
	Rows
	Outcomes
	Conditions
	Slots
}

// Lanes are the queues of deliveries. Move sends messages in the place of
// others, which are deleted after it.
type Lanes interface {
	Lane(m *events.SQSMessage) webhook.Lane
	Move(ctx context.Context, to webhook.Lane, moves ...sqsqueue.Move) error
}

// Waits keeps messages from their readers, as long as a lane is not crowded
// with those that wait.
type Waits interface {
	ChangeVisibility(ctx context.Context, in webhook.Lane, hidings ...sqsqueue.VisibilityChange) error
	TooManyInFlight(ctx context.Context, in webhook.Lane) bool
}

// Queue is where messages come from.
type Queue interface {
	Lanes
	Waits
}

// Config adapts a worker. Its zero value is the service's own.
type Config struct {
	Clock  func() time.Time
	Random func() float64 // in [0,1), moves retries within their span
	Logger *slog.Logger
}

// Worker handles messages. It is safe for concurrent use.
type Worker struct {
	store   Store
	queue   Queue
	client  *outbound.Client
	signer  *signer
	slots   *slots
	tallies *tallies
	pulses  *pulses
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
	return &Worker{
		store: store, queue: queue, client: client, cfg: cfg,
		signer: newSigner(secrets), slots: newSlots(store, cfg.Clock), tallies: newTallies(store), pulses: newPulses(),
	}
}

func (w *Worker) now() value.Time { return value.TimeOf(w.cfg.Clock()) }

// Handle makes the attempts of a batch of messages. What is reported as
// failed stays in the queue: a message that carries a retry, hidden until
// then, and one that could not be worked on, hidden longer each time.
func (w *Worker) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	tasks := make([]*task, len(batch.Records))
	for i := range batch.Records {
		m := &batch.Records[i]
		t := &task{message: m, lane: w.queue.Lane(m)}
		t.ref, t.err = webhook.ParseDeliveryRef(m.Body)
		tasks[i] = t
	}
	w.read(ctx, tasks)
	w.work(ctx, deal(tasks, w.now()))
	w.reconsider(ctx, tasks)
	w.postpone(ctx, tasks)
	return w.report(ctx, tasks), nil
}

// postpone hides the messages that could not be worked on, longer each time.
func (w *Worker) postpone(ctx context.Context, tasks []*task) {
	ctx, cancel := finishing(ctx)
	defer cancel()
	hidings := map[webhook.Lane][]sqsqueue.VisibilityChange{}
	for _, t := range tasks {
		if t.failed() {
			hidings[t.lane] = append(hidings[t.lane], sqsqueue.RetryLater(t.message))
		}
	}
	for lane, some := range hidings {
		if err := w.queue.ChangeVisibility(ctx, lane, some...); err != nil {
			w.cfg.Logger.WarnContext(ctx, "messages keep the queue's own timeout", "messages", len(some), "error", err)
		}
	}
}

func (w *Worker) report(ctx context.Context, tasks []*task) events.SQSEventResponse {
	var response events.SQSEventResponse
	for _, t := range tasks {
		if !t.stays() {
			continue
		}
		if t.failed() {
			w.cfg.Logger.ErrorContext(ctx, "delivery could not be worked on",
				"messageId", t.message.MessageId, "rowId", t.ref.DeliveryID, "receives", sqsqueue.Receives(t.message), "error", t.err)
		}
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: t.message.MessageId})
	}
	return response
}

// errLater keeps a message for its next attempt; nothing is wrong with it.
var errLater = errors.New("hidden until its next attempt")
