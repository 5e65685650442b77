package queue_test

import (
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/queuetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	mainQueue = "DeliveriesQueue"
	slowQueue = "SlowDeliveriesQueue"
)

func newRow(at value.Time) *webhook.Delivery {
	return &webhook.Delivery{
		ID: value.NewID(), EventID: value.NewID(), EndpointID: value.NewID(), ApplicationID: value.NewID(), OrganizationID: value.NewID(),
		Status: webhook.DeliveryPending, NextAttemptAt: &at,
	}
}

func TestRowsAreSentInTheLaneAndItsMessagesKnowIt(t *testing.T) {
	q := queuetest.Start(t)
	d := q.Deliveries()
	now := value.TimeOf(time.Now())
	for _, tt := range []struct {
		lane  webhook.Lane
		id    string
		group func(*webhook.Delivery) value.ID
	}{
		{webhook.LaneMain, mainQueue, func(d *webhook.Delivery) value.ID { return d.OrganizationID }},
		{webhook.LaneSlow, slowQueue, func(d *webhook.Delivery) value.ID { return d.EndpointID }},
	} {
		row := newRow(now)
		if err := d.Send(t.Context(), tt.lane, now, row); err != nil {
			t.Fatal(err)
		}
		m := q.Await(t, tt.id)[0]
		ref, err := webhook.ParseDeliveryMessage(m.Body)
		if err != nil || !ref.Names(row) || d.Lane(&m) != tt.lane || m.Attributes["MessageGroupId"] != tt.group(row).String() {
			t.Errorf("lane %q: message %+v, %v; lane %q", tt.lane, m, err, d.Lane(&m))
		}
		q.Delete(t, tt.id, m)
	}
}

func TestMovedMessageTellsWhomItReplacesAndComesAfterItsDelay(t *testing.T) {
	q := queuetest.Start(t)
	row := newRow(0)
	start := time.Now()
	if err := q.Deliveries().Move(t.Context(), webhook.LaneSlow,
		queue.Move{Ref: row.Ref(), MessageID: "old/1", Delay: 900 * time.Millisecond},
		queue.Move{Ref: row.Ref(), Delay: -time.Second},
	); err != nil {
		t.Fatal(err)
	}
	replaced := map[string]bool{}
	for received := 0; received < 2; {
		for _, m := range q.Await(t, slowQueue) {
			ref, err := webhook.ParseDeliveryMessage(m.Body)
			if err != nil || !ref.Names(row) || m.Attributes["MessageGroupId"] != row.EndpointID.String() {
				t.Errorf("message %+v, %v; want one of the row", m, err)
			}
			if took := time.Since(start); ref.As != "" && took < 900*time.Millisecond {
				t.Errorf("the one in the place of %q came after %s", ref.As, took)
			}
			replaced[ref.As] = true
			received++
			q.Delete(t, slowQueue, m)
		}
	}
	if !replaced[""] || !replaced["old/1"] {
		t.Errorf("messages in the places of %v, want one in that of another and one in no place", replaced)
	}
}

func TestVisibilityOfManyMessagesChangesDespiteAGoneOne(t *testing.T) {
	q := queuetest.Start(t)
	d := q.Deliveries()
	var rows []*webhook.Delivery
	for range 12 {
		rows = append(rows, newRow(0))
	}
	if err := d.Send(t.Context(), webhook.LaneMain, 0, rows...); err != nil {
		t.Fatal(err)
	}
	var received []events.SQSMessage
	for len(received) < len(rows) {
		received = append(received, q.Await(t, mainQueue)...)
	}
	q.Delete(t, mainQueue, received[3])
	var hidings []queue.VisibilityChange
	for _, m := range received {
		hidings = append(hidings, queue.VisibilityChange{Receipt: m.ReceiptHandle, For: -time.Second})
	}
	hidings[0].For = 13 * time.Hour
	if err := d.ChangeVisibility(t.Context(), webhook.LaneMain, hidings...); err == nil {
		t.Error("no error for a message that is gone")
	}
	again := map[string]bool{}
	for len(again) < len(rows)-2 {
		for _, m := range q.Await(t, mainQueue) {
			again[m.MessageId] = true
		}
	}
	if again[received[0].MessageId] || again[received[3].MessageId] {
		t.Error("the hidden or the deleted message came again")
	}
}

func TestMessagesInFlightAreThoseWithReadersAndTheHidden(t *testing.T) {
	q := queuetest.Start(t)
	d := q.Deliveries()
	if err := d.Send(t.Context(), webhook.LaneMain, 0, newRow(0), newRow(0), newRow(0)); err != nil {
		t.Fatal(err)
	}
	var received []events.SQSMessage
	for len(received) < 3 {
		received = append(received, q.Await(t, mainQueue)...)
	}
	q.Delete(t, mainQueue, received[0])
	if err := d.ChangeVisibility(t.Context(), webhook.LaneMain, queue.VisibilityChange{Receipt: received[1].ReceiptHandle, For: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if n, err := q.Queue(mainQueue).InFlight(t.Context()); n != 2 || err != nil {
		t.Errorf("%d messages in flight, %v; want 2", n, err)
	}
	if d.TooManyInFlight(t.Context(), webhook.LaneMain) {
		t.Error("two messages are a crowd")
	}
}
