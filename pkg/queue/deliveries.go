package queue

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// MaxInFlight is the number of messages in flight past which no more
	// should wait invisible in a queue for their retry: SQS stops handing out
	// messages at 120,000.
	MaxInFlight = 20_000
	// countFreshness is how long a count of the messages in flight is relied
	// on.
	countFreshness = 2 * time.Second
)

// Deliveries are the queues of the deliveries whose attempt is near, one for
// each lane. The groups of the main lane are organizations, those of the slow one
// endpoints, so that a busy or slow one does not delay the others.
type Deliveries struct{ main, slow *lane }

// lane is one of the queues.
type lane struct {
	*Queue
	inFlight inFlight
}

// NewDeliveries returns the deliveries in the queues of the lanes.
func NewDeliveries(main, slow *Queue) Deliveries {
	return Deliveries{
		&lane{main, inFlight{count: main.InFlight, now: time.Now}},
		&lane{slow, inFlight{count: slow.InFlight, now: time.Now}},
	}
}

func (d Deliveries) lane(l webhook.Lane) *lane {
	if l == webhook.LaneSlow {
		return d.slow
	}
	return d.main
}

// Send sends the deliveries to the worker in the lane, each for its next
// attempt.
func (d Deliveries) Send(ctx context.Context, to webhook.Lane, now value.Time, deliveries ...*webhook.Delivery) error {
	moves := make([]Move, len(deliveries))
	for i, one := range deliveries {
		moves[i] = MoveOf(one, now)
	}
	return d.Move(ctx, to, moves...)
}

// MoveOf is the message for the next attempt of a delivery.
func MoveOf(d *webhook.Delivery, now value.Time) Move {
	return Move{Ref: d.Ref(), Delay: d.NextAttemptAt.Std().Sub(now.Std())}
}

// Lane returns the lane of a received message by its source.
func (d Deliveries) Lane(m *events.SQSMessage) webhook.Lane {
	if d.slow.isSourceOf(m) {
		return webhook.LaneSlow
	}
	return webhook.LaneMain
}

// ChangeVisibility changes the visibility of messages that were received in
// the lane.
func (d Deliveries) ChangeVisibility(ctx context.Context, in webhook.Lane, changes ...VisibilityChange) error {
	return d.lane(in).ChangeVisibility(ctx, changes...)
}

// Move is a new message, also in the place of a received one, which is deleted
// once the new one is sent.
type Move struct {
	Ref       webhook.DeliveryRef
	MessageID string        // the delivery's name for the message that is replaced
	Delay     time.Duration // up to MaxDelay
	Carried   *webhook.Carried
}

// Move sends the messages to the lane. After an error some of them may have
// been sent.
func (d Deliveries) Move(ctx context.Context, to webhook.Lane, moves ...Move) error {
	messages := make([]Message, len(moves))
	for i, m := range moves {
		m.Ref.As = m.MessageID
		body := webhook.DeliveryMessage{DeliveryRef: m.Ref, Carried: m.Carried}.Body()
		messages[i] = Message{Body: body, Group: group(to, m.Ref), Delay: min(max(0, m.Delay), MaxDelay)}
	}
	return d.lane(to).Queue.Send(ctx, messages...)
}

func group(in webhook.Lane, ref webhook.DeliveryRef) string {
	if in == webhook.LaneSlow {
		return ref.EndpointID.String()
	}
	return ref.OrganizationID.String()
}

// TooManyInFlight reports whether the lane has more than [MaxInFlight]
// messages in flight, by a count that may be two seconds old. When the count
// fails the last one holds.
func (d Deliveries) TooManyInFlight(ctx context.Context, in webhook.Lane) bool {
	return d.lane(in).inFlight.tooMany(ctx)
}

// inFlight remembers whether a queue has too many messages in flight.
type inFlight struct {
	count func(context.Context) (int, error)
	now   func() time.Time

	mu    sync.Mutex
	many  bool
	until time.Time
}

func (f *inFlight) tooMany(ctx context.Context) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if now.Before(f.until) {
		return f.many
	}
	// Others go by the last count meanwhile.
	f.until = now.Add(countFreshness)
	f.mu.Unlock()
	n, err := f.count(ctx)
	f.mu.Lock()
	if err == nil {
		f.many = n > MaxInFlight
	}
	return f.many
}
