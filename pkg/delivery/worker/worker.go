// Package worker delivers events to integrators' URLs: it makes one attempt
// for each message of the deliveries queues and writes its outcome, once, however
// often the message comes. A receiver's failure is recorded in the delivery and
// tried again as the schedule says; only a failure of the service itself leaves a
// message to the queue's own retries. The worker counts nothing: counters, circuits
// and lanes follow from the outcomes in the table's stream, see package counter. No
// endpoint gets more than its share of the attempts under way, but for messages that
// come alone to a process. The dispatcher
// makes the deliveries. The sweeper takes care of waits that are longer than the
// queue's, of probes, and of what circuits held.
//
// Handle, in deliver.go, shows the life of a message from top to bottom.
// decide.go holds its decisions, which are pure.
//
// The first message of a new delivery may carry what its attempt needs, and the
// delivery itself, which the worker stores with the outcome, or before the message has
// to wait. What the message carries is good for five seconds and for the first receive.
// After that the worker reads everything from the table, and takes the delivery from
// the message only where the table does not have it. A record of the stream that comes twice within that time, or a message that SQS hands out
// twice, may ask the receiver twice, with the same webhook-id; one of the two
// attempts is recorded.
//
// # What is never lost
//
// A message is deleted only when something else takes care of its delivery:
// the delivery's end, its due mark, or another message. A process that dies
//   - before the attempt or during it leaves the message, which comes again;
//   - between the attempt and its record leaves the message as well: the
//     receiver is asked again, and the attempt that nobody recorded does not
//     count;
//   - between the record and ChangeVisibility leaves the message invisible
//     until the queue's own timeout. The delivery names the message, which
//     then makes the retry;
//   - between sending a replacement and the deletion of the message leaves
//     two messages for the delivery. The one that records an attempt first
//     carries on; the other stays until the delivery's end, and takes over
//     should the first be lost.
//
// The sweeper sends a second message for a delivery that is a minute late, and
// the first may be at work just then. So a late attempt is claimed by a write
// before it is made, see claim, and the receiver is not asked twice.
//
// A delivery that is HELD because its endpoint is PAUSED, DISABLED or
// suspended waits for its owner's recovery. A recovery that runs between the
// read of the endpoint and the hold does not meet the delivery. So the worker
// reads the endpoint again after the hold, and resumes the delivery when the
// reason is gone.
package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/arntarget"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Deliveries reads what attempts need, and keeps their outcomes. PutDelivery fails
// with [fault.ErrChanged] when another writer was faster, and returns what that one
// wrote, nil for an expired delivery.
type Deliveries interface {
	DeliveryInputs(ctx context.Context, refs []webhook.DeliveryRef) ([]webhook.DeliveryInput, error)
	PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (current *webhook.Delivery, err error)
}

// Endpoints disables endpoints. ChangeEndpoint calls change again when another
// writer was faster.
type Endpoints interface {
	ChangeEndpoint(ctx context.Context, org, id value.ID, change func(*webhook.Endpoint) (*webhook.Endpoint, error)) (*webhook.Endpoint, error)
}

// Permits leases an endpoint's few permits to processes. False means that
// others have them all.
type Permits interface {
	TakePermit(ctx context.Context, r webhook.PermitRequest) (bool, error)
}

// Store is what the worker keeps its state in.
type Store interface {
	Deliveries
	Endpoints
	Permits
}

// Queue is the queues of deliveries, one for each lane. Move sends messages
// in the place of others, which are deleted after it. TooManyInFlight says
// that no more messages should wait invisible in a lane.
type Queue interface {
	Lane(m *events.SQSMessage) webhook.Lane
	Move(ctx context.Context, to webhook.Lane, moves ...queue.Move) error
	ChangeVisibility(ctx context.Context, in webhook.Lane, changes ...queue.VisibilityChange) error
	TooManyInFlight(ctx context.Context, in webhook.Lane) bool
}

// Config adapts a worker.
type Config struct {
	Clock  func() time.Time
	Logger *slog.Logger
	Random func() float64 // in [0,1), moves retries within their span; nil is a fair one
	// MaxAttempts is how many attempts of an endpoint may be under way in the main
	// lane.
	MaxAttempts int
	ARNs        *arntarget.Sender // to queues and buses; nil sends to none
}

// Worker handles messages. It is safe for concurrent use.
type Worker struct {
	store   Store
	queue   Queue
	client  *outbound.Client
	secrets *sealed.Box
	permits *permits
	cfg     Config
}

// New returns a worker.
func New(store Store, queue Queue, client *outbound.Client, secrets *sealed.Box, cfg Config) *Worker {
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	most := max(webhook.FirstPermits, cfg.MaxAttempts/webhook.AttemptsPerPermit)
	return &Worker{store: store, queue: queue, client: client, secrets: secrets, cfg: cfg, permits: newPermits(store, most, cfg.Clock)}
}

func (w *Worker) now() value.Time { return value.TimeOf(w.cfg.Clock()) }
