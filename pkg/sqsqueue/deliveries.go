package sqsqueue

import (
	"context"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// Crowd is the number of messages in flight past which a queue holds no
	// more of those that wait for a retry: SQS stops handing out messages at
	// 120,000.
	MaxInFlight = 20_000
	// counted is how long a count of the messages in flight is relied on.
	counted = 2 * time.Second
)

// Deliveries are the queues of the rows whose attempt is near, one for each
// lane. Each endpoint is a group, so that a busy or slow one does not stand
// before the others.
type Deliveries struct{ main, slow *lane }

// lane is one of the queues.
type lane struct {
	*Queue
	suffix string // of its ARN
	crowd  crowd
}

// NewDeliveries returns the deliveries in the queues of the lanes.
func NewDeliveries(main, slow *Queue) Deliveries {
	return Deliveries{newLane(main), newLane(slow)}
}

func newLane(q *Queue) *lane {
	l := &lane{Queue: q, suffix: ":" + path.Base(q.url)}
	l.crowd.count, l.crowd.now = q.InFlight, time.Now
	return l
}

func (d Deliveries) lane(l webhook.Lane) *lane {
	if l == webhook.LaneSlow {
		return d.slow
	}
	return d.main
}

// SendRows sends the rows to the worker in the main lane, each for its next
// attempt.
func (d Deliveries) SendMain(ctx context.Context, now value.Time, rows ...*webhook.Delivery) error {
	return d.Send(ctx, webhook.LaneMain, now, rows...)
}

// SendTo sends the rows to the worker in the lane, each for its next attempt.
func (d Deliveries) Send(ctx context.Context, to webhook.Lane, now value.Time, rows ...*webhook.Delivery) error {
	messages := make([]Message, len(rows))
	for i, r := range rows {
		messages[i] = Message{
			Body: r.Ref().Body(), Group: r.EndpointID.String(),
			Delay: max(0, r.NextAttemptAt.Std().Sub(now.Std())),
		}
	}
	return d.lane(to).Send(ctx, messages...)
}

// Lane tells by its source which lane a received message came in.
func (d Deliveries) Lane(m *events.SQSMessage) webhook.Lane {
	if strings.HasSuffix(m.EventSourceARN, d.slow.suffix) {
		return webhook.LaneSlow
	}
	return webhook.LaneMain
}

// Hide hides messages that were received in the lane.
func (d Deliveries) ChangeVisibility(ctx context.Context, in webhook.Lane, hidings ...VisibilityChange) error {
	return d.lane(in).ChangeVisibility(ctx, hidings...)
}

// Move is a new message in the place of a received one, which is deleted
// once the new one is sent.
type Move struct {
	Ref       webhook.DeliveryRef
	MessageID string        // the id by which the row knows the message that is replaced
	Delay     time.Duration // up to MaxDelay
}

// Move sends the messages to the lane. After an error some of them may have
// been sent.
func (d Deliveries) Move(ctx context.Context, to webhook.Lane, moves ...Move) error {
	messages := make([]Message, len(moves))
	for i, m := range moves {
		m.Ref.As = m.MessageID
		messages[i] = Message{Body: m.Ref.Body(), Group: m.Ref.EndpointID.String(), Delay: min(max(0, m.Delay), MaxDelay)}
	}
	return d.lane(to).Send(ctx, messages...)
}

// Crowded reports whether the lane has more than [Crowd] messages in flight,
// by a count that may be two seconds old. A queue that cannot be counted is
// what it was.
func (d Deliveries) TooManyInFlight(ctx context.Context, in webhook.Lane) bool {
	return d.lane(in).crowd.is(ctx)
}

// crowd knows whether a queue is crowded.
type crowd struct {
	count func(context.Context) (int, error)
	now   func() time.Time

	mu      sync.Mutex
	crowded bool
	until   time.Time
}

func (c *crowd) is(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Before(c.until) {
		return c.crowded
	}
	// Others go by the last count meanwhile.
	c.until = now.Add(counted)
	c.mu.Unlock()
	n, err := c.count(ctx)
	c.mu.Lock()
	if err == nil {
		c.crowded = n > MaxInFlight
	}
	return c.crowded
}
