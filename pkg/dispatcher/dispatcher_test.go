package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/sqsqueue/queuetest"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// bench is a dispatcher on a real table and real queues.
type bench struct {
	table  *dynamo.Table
	queues *queuetest.Queues
	org    value.ID
	app    value.ID
	n      int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{table: dynamotest.NewTable(t), queues: queuetest.Start(t), org: value.NewID()}
	b.app = dynamotest.Application(t, b.table, b.org)
	return b
}

func (b *bench) dispatcher(store dispatcher.Store, q dispatcher.Queue) *dispatcher.Dispatcher {
	return dispatcher.New(store, q, sqsqueue.NewPark(b.queues.Queue("ParkQueue")), time.Now, slog.New(slog.DiscardHandler))
}

func (b *bench) queue() sqsqueue.Deliveries {
	return sqsqueue.NewDeliveries(b.queues.Queue("DeliveriesQueue"), b.queues.Queue("SlowDeliveriesQueue"))
}

func (b *bench) handle(t *testing.T, d *dispatcher.Dispatcher, records ...events.DynamoDBEventRecord) events.DynamoDBEventResponse {
	t.Helper()
	response, err := d.Handle(t.Context(), events.DynamoDBEvent{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// stored applies a put to what there was.
func stored(t *testing.T, org value.ID, old *commerce.Stored, record string) *commerce.Stored {
	t.Helper()
	next, err := commerce.Apply(old, commerce.Change{
		Kind: commerce.KindOrder, Op: commerce.OpPut, OrganizationID: org, Record: []byte(record),
	}, value.TimeOf(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func order(id value.ID, status string) string {
	return fmt.Sprintf(`{"id":%q,"orderNumber":"1001","currency":"EUR","status":%q}`, id, status)
}

// record is the stream record of a write of an order.
func (b *bench) record(t *testing.T, old, next *commerce.Stored) events.DynamoDBEventRecord {
	t.Helper()
	image := func(s *commerce.Stored) map[string]events.DynamoDBAttributeValue {
		if s == nil {
			return nil
		}
		out := map[string]events.DynamoDBAttributeValue{
			"PK": events.NewStringAttribute("ORG#" + b.org.String() + "#ORDER#0"), "SK": events.NewStringAttribute(s.ID.String()),
			"t": events.NewStringAttribute("rec"), "k": events.NewStringAttribute("order"),
			"rev": events.NewNumberAttribute(strconv.FormatInt(int64(s.Revision), 10)), "doc": events.NewStringAttribute(string(s.Doc)),
		}
		if s.Silent {
			out["silent"] = events.NewBooleanAttribute(true)
		}
		return out
	}
	return b.streamRecord(image(old), image(next))
}

func (b *bench) streamRecord(old, next map[string]events.DynamoDBAttributeValue) events.DynamoDBEventRecord {
	b.n++
	return events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
		SequenceNumber: strconv.Itoa(b.n), OldImage: old, NewImage: next,
		Keys: map[string]events.DynamoDBAttributeValue{"PK": next["PK"], "SK": next["SK"]},
	}}
}

// created is the stream record of a new order.
func (b *bench) created(t *testing.T) events.DynamoDBEventRecord {
	t.Helper()
	return b.record(t, nil, stored(t, b.org, nil, order(value.NewID(), "PENDING")))
}

// messages takes the messages in the main queue, by row.
func (b *bench) messages(t *testing.T) map[value.ID][]webhook.DeliveryRef {
	t.Helper()
	return b.messagesOf(t, "DeliveriesQueue")
}

func (b *bench) messagesOf(t *testing.T, name string) map[value.ID][]webhook.DeliveryRef {
	t.Helper()
	found := map[value.ID][]webhook.DeliveryRef{}
	for {
		batch := b.queues.Receive(t, name)
		if len(batch) == 0 {
			return found
		}
		for _, m := range batch {
			ref, err := webhook.ParseDeliveryRef(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			if m.Attributes["MessageGroupId"] != ref.EndpointID.String() {
				t.Errorf("the message of endpoint %s is in group %s", ref.EndpointID, m.Attributes["MessageGroupId"])
			}
			found[ref.DeliveryID] = append(found[ref.DeliveryID], ref)
		}
		b.queues.Delete(t, name, batch...)
	}
}

func (b *bench) rows(t *testing.T) []*webhook.Delivery {
	t.Helper()
	var rows []*webhook.Delivery
	if err := b.table.AllDeliveries(t.Context(), b.org, func(r *webhook.Delivery) error {
		rows = append(rows, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestChangeReachesWhoSubscribes(t *testing.T) {
	b := newBench(t)
	everything := dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	orders := dynamotest.Endpoint(t, b.table, b.org, b.app, "order.*")
	confirmed := dynamotest.Endpoint(t, b.table, b.org, b.app, "order.confirmed")
	dynamotest.Endpoint(t, b.table, b.org, b.app, "product.*")
	other := value.NewID()
	dynamotest.Endpoint(t, b.table, other, dynamotest.Application(t, b.table, other), "*")
	id := value.NewID()
	old := stored(t, b.org, nil, order(id, "PENDING"))
	next := stored(t, b.org, old, order(id, "CONFIRMED"))
	if r := b.handle(t, b.dispatcher(b.table, b.queue()), b.record(t, old, next)); len(r.BatchItemFailures) > 0 {
		t.Errorf("failures: %+v", r)
	}
	got := map[string]int{}
	for _, r := range b.rows(t) {
		got[r.EndpointID.String()+" "+r.Type]++
		if r.Status != webhook.DeliveryPending || r.ID != webhook.DeliveryID(r.EventID, r.EndpointID) || r.ApplicationID != b.app {
			t.Errorf("row: %+v", r)
		}
		want := commerce.EventID(commerce.KindOrder, b.org, id, next.Revision, r.Type)
		payload, err := b.table.Payload(t.Context(), b.org, r.EventID)
		if r.EventID != want || err != nil || !bytes.Contains(payload, []byte(`"previousAttributes":{"status":"PENDING"`)) {
			t.Errorf("event %s, want %s; payload %s, %v", r.EventID, want, payload, err)
		}
	}
	want := []string{
		everything.ID.String() + " order.updated", everything.ID.String() + " order.confirmed",
		orders.ID.String() + " order.updated", orders.ID.String() + " order.confirmed", confirmed.ID.String() + " order.confirmed",
	}
	for _, key := range want {
		if got[key] != 1 {
			t.Errorf("%s: %d rows, want 1", key, got[key])
		}
	}
	if len(got) != len(want) || len(b.messages(t)) != len(want) {
		t.Errorf("rows %v, want %v and a message for each", got, want)
	}
}

func TestReplayedBatchMakesNothingNew(t *testing.T) {
	b := newBench(t)
	e := dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	d := b.dispatcher(b.table, b.queue())
	batch := []events.DynamoDBEventRecord{b.created(t), b.created(t), b.created(t)}
	b.handle(t, d, batch...)
	first := b.messages(t)
	attempted := b.rows(t)[0]
	reason := "no"
	if _, err := b.table.PutDelivery(t.Context(), attempted, attempted.Record(webhook.Outcome{
		Attempt: webhook.Attempt{Error: &reason}, Result: webhook.AttemptFailed,
	}, "m", 3, 0, value.TimeOf(time.Now()))); err != nil {
		t.Fatal(err)
	}
	dynamotest.SetStatus(t, b.table, e, webhook.Paused)
	b.handle(t, d, batch...)
	again := b.messages(t)
	if rows := b.rows(t); len(rows) != 3 {
		t.Errorf("%d rows after the replay, want 3", len(rows))
	}
	if len(first) != 3 || len(again) != 2 || again[attempted.ID] != nil {
		t.Errorf("messages %v, then %v; want all, then those that no attempt shows", first, again)
	}
}

func TestEventsOfAnEndpointThatMustNotBeAskedAreHeldWithoutAMessage(t *testing.T) {
	b := newBench(t)
	suspended := dynamotest.Application(t, b.table, b.org)
	want := map[value.ID]webhook.HeldReason{
		dynamotest.Endpoint(t, b.table, b.org, suspended, "*").ID: webhook.HeldSuspended,
	}
	dynamotest.Suspend(t, b.table, b.org, suspended)
	for status, reason := range map[webhook.Status]webhook.HeldReason{webhook.Paused: webhook.HeldPaused, webhook.Disabled: webhook.HeldDisabled} {
		e := dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
		dynamotest.SetStatus(t, b.table, e, status)
		want[e.ID] = reason
	}
	b.handle(t, b.dispatcher(b.table, b.queue()), b.created(t))
	rows := b.rows(t)
	for _, r := range rows {
		if r.Status != webhook.DeliveryHeld || r.HeldReason != want[r.EndpointID] || r.NextAttemptAt != nil {
			t.Errorf("row: %+v, want it HELD %s", r, want[r.EndpointID])
		}
	}
	if messages := b.messages(t); len(rows) != 3 || len(messages) > 0 {
		t.Errorf("%d rows and messages %v, want 3 and none", len(rows), messages)
	}
}

func TestSilentChangesAndForeignItemsMeanNothing(t *testing.T) {
	b := newBench(t)
	dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	silent := stored(t, b.org, nil, order(value.NewID(), "PENDING"))
	silent.Silent = true
	event := b.created(t)
	event.Change.NewImage["t"] = events.NewStringAttribute("evt")
	expired := b.created(t)
	expired.Change.OldImage, expired.Change.NewImage = expired.Change.NewImage, nil
	b.handle(t, b.dispatcher(b.table, b.queue()), b.record(t, nil, silent), event, expired)
	if rows := b.rows(t); len(rows) > 0 {
		t.Errorf("rows: %+v", rows)
	}
}

func TestDisabledEndpointIsToldToTheOthersOfItsApplication(t *testing.T) {
	b := newBench(t)
	gone := dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	told := dynamotest.Endpoint(t, b.table, b.org, b.app, "endpoint.disabled")
	dynamotest.Endpoint(t, b.table, b.org, b.app, "order.*")
	dynamotest.Endpoint(t, b.table, b.org, dynamotest.Application(t, b.table, b.org), "*")
	image := func(e *webhook.Endpoint) map[string]events.DynamoDBAttributeValue {
		doc, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]events.DynamoDBAttributeValue{
			"PK": events.NewStringAttribute("ORG#" + b.org.String() + "#DEV"), "SK": events.NewStringAttribute("ENDPOINT#" + e.ID.String()),
			"t": events.NewStringAttribute("end"), "doc": events.NewStringAttribute(string(doc)),
		}
	}
	disabled := gone.Disable("answered 410 Gone", gone.UpdatedAt+1)
	changed := *disabled
	changed.URL, changed.UpdatedAt = "https://example.com/other", disabled.UpdatedAt+1
	d := b.dispatcher(b.table, b.queue())
	for range 2 {
		b.handle(t, d, b.streamRecord(nil, image(gone)), b.streamRecord(image(gone), image(disabled)), b.streamRecord(image(disabled), image(&changed)))
	}
	rows := b.rows(t)
	if len(rows) != 1 || rows[0].EndpointID != told.ID || rows[0].Type != "endpoint.disabled" {
		t.Fatalf("rows: %+v, want one for %s", rows, told.ID)
	}
	payload, err := b.table.Payload(t.Context(), b.org, rows[0].EventID)
	if err != nil || !bytes.Contains(payload, []byte(`"previousAttributes":{"status":"ACTIVE"}`)) ||
		!bytes.Contains(payload, []byte(`"secret":"whsec_****`)) || bytes.Contains(payload, []byte("sealed")) {
		t.Errorf("payload: %s, %v", payload, err)
	}
}

func TestRecordThatCannotBeReadIsParkedAndTheRestGoesOn(t *testing.T) {
	b := newBench(t)
	dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	broken := b.created(t)
	broken.Change.NewImage["doc"] = events.NewStringAttribute("{broken")
	if r := b.handle(t, b.dispatcher(b.table, b.queue()), b.created(t), broken, b.created(t)); len(r.BatchItemFailures) > 0 {
		t.Errorf("failures: %+v", r)
	}
	if rows := b.rows(t); len(rows) != 2 || len(b.messages(t)) != 2 {
		t.Errorf("%d rows, want those of the neighbours", len(rows))
	}
	parked := b.queues.Await(t, "ParkQueue")
	consumer, record, err := sqsqueue.Unpark(parked[0].Body, nil)
	if err != nil || len(parked) != 1 || record.Change.SequenceNumber != broken.Change.SequenceNumber || record.Change.NewImage["doc"].String() != "{broken" {
		t.Errorf("parked %q %+v, %v", consumer, record, err)
	}
}

// faulty fails a call of each kind by its number.
type faulty struct {
	dispatcher.Store
	dispatcher.Queue

	mu      sync.Mutex
	calls   map[string]int
	failing string
	number  int
}

func (f *faulty) fails(call string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[call]++
	if call == f.failing && f.calls[call] == f.number {
		return fault.Busy(errors.New(call))
	}
	return nil
}

func (f *faulty) Directory(ctx context.Context, org value.ID) (*webhook.Directory, error) {
	if err := f.fails("directory"); err != nil {
		return nil, err
	}
	return f.Store.Directory(ctx, org)
}

func (f *faulty) PutPayloads(ctx context.Context, payloads []webhook.Payload) error {
	if err := f.fails("payloads"); err != nil {
		return err
	}
	return f.Store.PutPayloads(ctx, payloads)
}

func (f *faulty) CreateDeliveries(ctx context.Context, rows []*webhook.Delivery) ([]*webhook.Delivery, error) {
	if err := f.fails("rows"); err != nil {
		return nil, err
	}
	existing, err := f.Store.CreateDeliveries(ctx, rows)
	if failed := f.fails("rows answer"); failed != nil {
		return nil, failed
	}
	return existing, err
}

func (f *faulty) Send(ctx context.Context, lane webhook.Lane, now value.Time, rows ...*webhook.Delivery) error {
	if err := f.fails("send"); err != nil {
		return err
	}
	if err := f.Queue.Send(ctx, lane, now, rows...); err != nil {
		return err
	}
	return f.fails("send answer")
}

// Whatever step a batch dies at, the stream's next try completes it: every
// row is there once and every row's message was sent.
func TestBatchThatDiesAnywhereIsCompletedByItsNextTry(t *testing.T) {
	for _, step := range []string{"directory", "payloads", "rows", "rows answer", "send", "send answer"} {
		t.Run(step, func(t *testing.T) {
			b := newBench(t)
			dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
			dynamotest.Endpoint(t, b.table, b.org, b.app, "order.created")
			batch := []events.DynamoDBEventRecord{b.created(t), b.created(t), b.created(t)}
			f := &faulty{Store: b.table, Queue: b.queue(), calls: map[string]int{}, failing: step, number: 1}
			d := b.dispatcher(f, f)
			r := b.handle(t, d, batch...)
			if len(r.BatchItemFailures) != 1 {
				t.Fatalf("failures: %+v, want one", r)
			}
			from := slices.IndexFunc(batch, func(rec events.DynamoDBEventRecord) bool {
				return rec.Change.SequenceNumber == r.BatchItemFailures[0].ItemIdentifier
			})
			if r := b.handle(t, d, batch[from:]...); len(r.BatchItemFailures) > 0 {
				t.Fatalf("failures of the next try: %+v", r)
			}
			messages := b.messages(t)
			rows := b.rows(t)
			if len(rows) != 6 || len(messages) != 6 {
				t.Errorf("%d rows, %d of them sent; want 6", len(rows), len(messages))
			}
			for _, row := range rows {
				if payload, err := b.table.Payload(t.Context(), b.org, row.EventID); payload == nil || err != nil {
					t.Errorf("row %s has the payload %s, %v", row.ID, payload, err)
				}
			}
		})
	}
}

func TestPayloadIsTheSameForEveryEndpointAndReplay(t *testing.T) {
	b := newBench(t)
	for range 3 {
		dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
	}
	d := b.dispatcher(b.table, b.queue())
	record := b.created(t)
	b.handle(t, d, record)
	event := b.rows(t)[0].EventID
	first, err := b.table.Payload(t.Context(), b.org, event)
	if err != nil {
		t.Fatal(err)
	}
	record.Change.NewImage["doc"] = events.NewStringAttribute(`{"id":"x"}`) // as a later release might write it
	b.handle(t, d, record)
	if again, err := b.table.Payload(t.Context(), b.org, event); err != nil || !bytes.Equal(first, again) {
		t.Errorf("payload %s, %v; want %s", again, err, first)
	}
}
