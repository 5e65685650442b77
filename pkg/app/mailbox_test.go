package app_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// mailbox is the deliveries queues on a clock of the test's own: messages wait
// for their delay, are hidden while somebody works on them, come again unless
// they are deleted, and end in dead when they have come too often. As with
// SQS, delays and hidings are whole seconds.
type mailbox struct {
	clock  func() time.Time
	deaths *deaths // of the processes that send

	mu       sync.Mutex
	messages []*letter // in the order in which they were sent
	dead     []*letter
	n        int
}

// letter is one message.
type letter struct {
	id       string
	lane     webhook.Lane
	body     string
	visible  time.Time
	receives int
}

// As the template has them.
const (
	visibility  = 360 * time.Second
	maxReceives = 50
	maxDelay    = 15 * time.Minute
	maxHide     = 12 * time.Hour
)

func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(d.Seconds())) * time.Second
}

// post adds a message. The lock must be held.
func (m *mailbox) post(lane webhook.Lane, move queue.Move) error {
	delay := wholeSeconds(max(0, move.Delay))
	if delay > maxDelay {
		return fmt.Errorf("a delay of %s", delay)
	}
	m.n++
	move.Ref.As = move.MessageID
	body := webhook.DeliveryMessage{DeliveryRef: move.Ref, Carried: move.Carried}.Body()
	m.messages = append(m.messages, &letter{id: "m" + strconv.Itoa(m.n), lane: lane, body: body, visible: m.clock().Add(delay)})
	return nil
}

// Send is what the sweeper sends by.
func (m *mailbox) Send(ctx context.Context, lane webhook.Lane, now value.Time, deliveries ...*webhook.Delivery) error {
	moves := make([]queue.Move, len(deliveries))
	for i, d := range deliveries {
		moves[i] = queue.MoveOf(d, now)
	}
	return m.Move(ctx, lane, moves...)
}

// Move is what the others send by.
func (m *mailbox) Move(_ context.Context, to webhook.Lane, moves ...queue.Move) error {
	if !m.deaths.act() {
		return errDead
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, move := range moves {
		if err := m.post(to, move); err != nil {
			return err
		}
	}
	return nil
}

// Lane tells which queue a message came from.
func (m *mailbox) Lane(message *events.SQSMessage) webhook.Lane {
	return webhook.Lane(message.EventSourceARN)
}

// ChangeVisibility keeps messages from their readers for a while.
func (m *mailbox) ChangeVisibility(_ context.Context, _ webhook.Lane, hidings ...queue.VisibilityChange) error {
	if !m.deaths.act() {
		return errDead
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range hidings {
		i := slices.IndexFunc(m.messages, func(l *letter) bool { return l.receipt() == h.Receipt })
		if i < 0 || h.For > maxHide {
			return fmt.Errorf("hide %s for %s: no such message or too long", h.Receipt, h.For)
		}
		m.messages[i].visible = m.clock().Add(wholeSeconds(max(0, h.For)))
	}
	return nil
}

// TooManyInFlight reports that there is room.
func (m *mailbox) TooManyInFlight(context.Context, webhook.Lane) bool { return false }

func (l *letter) receipt() string { return l.id + "/" + strconv.Itoa(l.receives) }

// receive takes up to so many messages that are visible, and hides them.
func (m *mailbox) receive(lane webhook.Lane, most int) []events.SQSMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock()
	var batch []events.SQSMessage
	m.messages = slices.DeleteFunc(m.messages, func(l *letter) bool {
		if l.lane != lane || l.visible.After(now) || len(batch) == most {
			return false
		}
		l.receives++
		if l.receives > maxReceives {
			m.dead = append(m.dead, l)
			return true
		}
		l.visible = now.Add(visibility)
		batch = append(batch, events.SQSMessage{
			MessageId: l.id, ReceiptHandle: l.receipt(), Body: l.body, EventSourceARN: string(l.lane),
			Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(l.receives)},
		})
		return false
	})
	return batch
}

// remove deletes messages that are done.
func (m *mailbox) remove(done func(id string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = slices.DeleteFunc(m.messages, func(l *letter) bool { return done(l.id) })
}

// next is when a message becomes visible; false when there is none.
func (m *mailbox) next() (time.Time, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.messages) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(m.messages, func(a, b *letter) int { return a.visible.Compare(b.visible) }).visible, true
}

func (m *mailbox) checkNoneIsDead(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.dead) > 0 {
		t.Errorf("%d messages came too often, the first %s", len(m.dead), m.dead[0].body)
	}
}
