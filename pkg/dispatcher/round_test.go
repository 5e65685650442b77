package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestBatchOfOneOrganizationIsReadWrittenAndSentTogether(t *testing.T) {
	b := newBench(t)
	for range 3 {
		dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	}
	batch := make([]events.DynamoDBEventRecord, 100)
	for i := range batch {
		batch[i] = b.created(t)
	}
	f := &faulty{Store: b.table, Queue: b.queue(), calls: map[string]int{}}
	if r := b.handle(t, b.dispatcher(f, f), batch...); len(r.BatchItemFailures) > 0 {
		t.Fatalf("failures: %+v", r)
	}
	for _, call := range []string{"directory", "payloads", "rows", "send"} {
		if f.calls[call] != 1 {
			t.Errorf("%s: %d calls for a batch, want 1", call, f.calls[call])
		}
	}
	if rows, messages := b.rows(t), b.messages(t); len(rows) != 300 || len(messages) != 300 {
		t.Errorf("%d rows and %d messages, want 300", len(rows), len(messages))
	}
}

func TestEndpointsAreReadAnewForEveryBatch(t *testing.T) {
	b := newBench(t)
	e := dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	d := b.dispatcher(b.table, b.queue())
	b.handle(t, d, b.created(t))
	dynamotest.SetStatus(t, b.table, e, webhook.Paused)
	b.handle(t, d, b.created(t))
	var got []webhook.DeliveryStatus
	for _, row := range b.rows(t) {
		got = append(got, row.Status)
	}
	slices.Sort(got)
	if want := []webhook.DeliveryStatus{webhook.DeliveryHeld, webhook.DeliveryPending}; !slices.Equal(got, want) {
		t.Errorf("rows before and after the endpoint was paused: %v, want %v", got, want)
	}
}

func TestEventsTakeTheLaneOfTheirEndpointAndWaitForAnOpenCircuit(t *testing.T) {
	b := newBench(t)
	now := value.TimeOf(time.Now())
	quick := dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	slow := dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	open := dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	draining := dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	circuit := &webhook.Circuit{State: webhook.CircuitOpen, OpenedAt: now, ProbeAt: now.Add(time.Minute), IntervalMs: time.Minute.Milliseconds()}
	for _, c := range []struct {
		e    *webhook.Endpoint
		next webhook.Routing
	}{
		{slow, webhook.Routing{Lane: webhook.LaneSlow}},
		{open, webhook.Routing{Circuit: circuit, Lane: webhook.LaneSlow}},
		{draining, webhook.Routing{Circuit: circuit.Drain(now)}},
	} {
		if ok, err := b.table.SetRouting(t.Context(), b.org, c.e.ID, c.e.Routing(), c.next); !ok || err != nil {
			t.Fatalf("SetRouting: %t, %v", ok, err)
		}
	}
	b.handle(t, b.dispatcher(b.table, b.queue()), b.created(t), b.created(t))
	want := map[value.ID]webhook.HeldReason{quick.ID: "", slow.ID: "", open.ID: webhook.HeldCircuitOpen, draining.ID: ""}
	for _, r := range b.rows(t) {
		if r.HeldReason != want[r.EndpointID] || (r.Status == webhook.DeliveryHeld) != (r.EndpointID == open.ID) {
			t.Errorf("row: %+v, want it held for %q", r, want[r.EndpointID])
		}
	}
	for name, want := range map[string][]value.ID{"DeliveriesQueue": {quick.ID, draining.ID}, "SlowDeliveriesQueue": {slow.ID}} {
		got := map[value.ID]int{}
		for _, refs := range b.messagesOf(t, name) {
			got[refs[0].EndpointID]++
		}
		for _, id := range want {
			if got[id] != 2 {
				t.Errorf("%s: %d messages of endpoint %s, want 2", name, got[id], id)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: messages of %v, want those of %v", name, got, want)
		}
	}
}

// picky refuses one event for what it is.
type picky struct {
	dispatcher.Store
	refused value.ID
}

func (p *picky) PutPayloads(ctx context.Context, payloads []webhook.Payload) error {
	if slices.ContainsFunc(payloads, func(one webhook.Payload) bool { return one.EventID == p.refused }) {
		return errors.New("the item is too large")
	}
	return p.Store.PutPayloads(ctx, payloads)
}

func TestChangeWhoseEventsTheTableRefusesIsParkedAndTheRestGoesOn(t *testing.T) {
	b := newBench(t)
	dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	bad := b.created(t)
	b.handle(t, b.dispatcher(b.table, b.queue()), bad)
	refused := b.rows(t)[0].EventID
	b.messages(t)
	d := b.dispatcher(&picky{Store: b.table, refused: refused}, b.queue())
	if r := b.handle(t, d, b.created(t), bad, b.created(t)); len(r.BatchItemFailures) > 0 {
		t.Errorf("failures: %+v", r)
	}
	if rows, messages := b.rows(t), b.messages(t); len(rows) != 3 || len(messages) != 2 || messages[webhook.DeliveryID(refused, rows[0].EndpointID)] != nil {
		t.Errorf("%d rows and the messages %v, want those of the neighbours", len(rows), messages)
	}
	parked := b.queues.Await(t, "ParkQueue")
	if _, record, err := sqsqueue.Unpark(parked[0].Body, nil); err != nil || len(parked) != 1 || record.Change.SequenceNumber != bad.Change.SequenceNumber {
		t.Errorf("parked %d: %+v, %v", len(parked), record, err)
	}
}

// sized notes how many rows come together.
type sized struct {
	dispatcher.Store
	rows []int
}

func (s *sized) CreateDeliveries(ctx context.Context, rows []*webhook.Delivery) ([]*webhook.Delivery, error) {
	s.rows = append(s.rows, len(rows))
	return s.Store.CreateDeliveries(ctx, rows)
}

// Whatever the endpoints of an organization make of a batch, it is written in
// pieces, and what time does not suffice for is left to the next try.
func TestLargeBatchGoesInRoundsAsFarAsTimeAllows(t *testing.T) {
	b := newBench(t)
	for range 30 {
		dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	}
	batch := make([]events.DynamoDBEventRecord, 50)
	for i := range batch {
		batch[i] = b.created(t)
	}
	s := &sized{Store: b.table}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // less than another round asks for
	defer cancel()
	d := b.dispatcher(s, b.queue())
	r, err := d.Handle(ctx, events.DynamoDBEvent{Records: batch})
	if err != nil || len(r.BatchItemFailures) != 1 || r.BatchItemFailures[0].ItemIdentifier != batch[33].Change.SequenceNumber {
		t.Fatalf("failures: %+v, %v; want the first record of the second round, %s", r, err, batch[33].Change.SequenceNumber)
	}
	if r := b.handle(t, d, batch[33:]...); len(r.BatchItemFailures) > 0 {
		t.Errorf("failures of the next try: %+v", r)
	}
	if want := []int{990, 510}; !slices.Equal(s.rows, want) {
		t.Errorf("rows written together: %v, want %v", s.rows, want)
	}
	if rows, messages := b.rows(t), b.messages(t); len(rows) != 1500 || len(messages) != 1500 {
		t.Errorf("%d rows and %d messages, want 1,500", len(rows), len(messages))
	}
}
