package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// harness makes dispatchers over the shared fixture. Their stream records come
// from the stream of its table.
type harness struct {
	*servicetest.Service

	unstored map[value.ID]*webhook.Delivery // that messages carry
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	return &harness{servicetest.New(t), map[value.ID]*webhook.Delivery{}}
}

// noting notes the deliveries that messages carry.
type noting struct {
	dispatcher.Queue
	h *harness
}

func (n noting) Move(ctx context.Context, lane webhook.Lane, moves ...queue.Move) error {
	for _, m := range moves {
		if m.Carried != nil {
			n.h.unstored[m.Ref.DeliveryID] = m.Carried.Delivery
		}
	}
	return n.Queue.Move(ctx, lane, moves...)
}

// AllDeliveries are the organization's deliveries, also those that only messages have.
func (h *harness) AllDeliveries(t *testing.T) []*webhook.Delivery {
	t.Helper()
	all := maps.Clone(h.unstored)
	for _, d := range h.Service.AllDeliveries(t) {
		all[d.ID] = d
	}
	return slices.Collect(maps.Values(all))
}

func (h *harness) dispatcher(store dispatcher.Store, q dispatcher.Queue) *dispatcher.Dispatcher {
	return dispatcher.New(store, noting{q, h}, queue.NewPark(h.Queues().Queue(servicetest.ParkQueue)), h.Time, h.Leaks.Logger())
}

func (h *harness) handle(t *testing.T, d *dispatcher.Dispatcher, records ...events.DynamoDBEventRecord) events.DynamoDBEventResponse {
	t.Helper()
	response, err := d.Handle(t.Context(), events.DynamoDBEvent{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// dispatch handles records of which none may come again.
func (h *harness) dispatch(t *testing.T, d *dispatcher.Dispatcher, records ...events.DynamoDBEventRecord) {
	t.Helper()
	if r := h.handle(t, d, records...); len(r.BatchItemFailures) > 0 {
		t.Fatalf("failures: %+v", r)
	}
}

// written stores an order after what it was and returns it with the stream
// record of the write.
func (h *harness) written(t *testing.T, old *commerce.Stored, order string, adjust func(*commerce.Stored)) (*commerce.Stored, events.DynamoDBEventRecord) {
	t.Helper()
	next := h.Put(t, commerce.KindOrder, old, order, adjust)
	records := h.StreamRecords(t, dynamo.StreamRecord)
	if len(records) != 1 {
		t.Fatalf("a write has %d stream records", len(records))
	}
	return next, records[0]
}

func order(id value.ID, status string) string {
	return fmt.Sprintf(`{"id":%q,"orderNumber":"1001","currency":"EUR","status":%q}`, id, status)
}

// created is the stream record of a new order.
func (h *harness) created(t *testing.T) events.DynamoDBEventRecord {
	t.Helper()
	_, record := h.written(t, nil, order(value.NewID(), "PENDING"), nil)
	return record
}

// withDocument changes the document in a stream record of an order.
func withDocument(record events.DynamoDBEventRecord, doc string) events.DynamoDBEventRecord {
	record.Change.NewImage = maps.Clone(record.Change.NewImage)
	record.Change.NewImage["doc"] = events.NewStringAttribute(doc)
	return record
}

// messages takes the messages in the main queue, by delivery.
func (h *harness) messages(t *testing.T) map[value.ID][]webhook.DeliveryRef {
	t.Helper()
	return h.messagesOf(t, servicetest.MainQueue)
}

func (h *harness) messagesOf(t *testing.T, name string) map[value.ID][]webhook.DeliveryRef {
	t.Helper()
	found := map[value.ID][]webhook.DeliveryRef{}
	for {
		batch := h.Queues().Receive(t, name)
		if len(batch) == 0 {
			return found
		}
		for _, m := range batch {
			message, err := webhook.ParseDeliveryMessage(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			ref := message.DeliveryRef
			if group := m.Attributes["MessageGroupId"]; group != ref.OrganizationID.String() && group != ref.EndpointID.String() {
				t.Errorf("the message of endpoint %s is in group %s", ref.EndpointID, group)
			}
			found[ref.DeliveryID] = append(found[ref.DeliveryID], ref)
		}
		h.Queues().Delete(t, name, batch...)
	}
}

func TestChangeReachesWhoSubscribes(t *testing.T) {
	h := newHarness(t)
	everything := h.Endpoint(t, "*")
	orders := h.Endpoint(t, "order.*")
	confirmed := h.Endpoint(t, "order.confirmed")
	h.Endpoint(t, "product.*")
	h.Organization(t).Endpoint(t, "*")
	id := value.NewID()
	old, _ := h.written(t, nil, order(id, "PENDING"), nil)
	next, record := h.written(t, old, order(id, "CONFIRMED"), nil)
	h.dispatch(t, h.dispatcher(h.Table, h.Queues().Deliveries()), record)
	got := map[string]int{}
	for _, r := range h.AllDeliveries(t) {
		got[r.EndpointID.String()+" "+r.Type]++
		if r.Status != webhook.DeliveryPending || r.ID != webhook.DeliveryID(r.EventID, r.EndpointID) || r.ApplicationID != h.App || r.ObjectID != id {
			t.Errorf("delivery: %+v", r)
		}
		want := commerce.EventID(commerce.KindOrder, h.Org, id, next.Revision, r.Type)
		payload, err := h.Table.Payload(t.Context(), h.Org, r.EventID)
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
			t.Errorf("%s: %d deliveries, want 1", key, got[key])
		}
	}
	if len(got) != len(want) || len(h.messages(t)) != len(want) {
		t.Errorf("deliveries %v, want %v and a message for each", got, want)
	}
}

func TestReplayedBatchMakesNothingNew(t *testing.T) {
	h := newHarness(t)
	e := h.Endpoint(t, "*")
	d := h.dispatcher(h.Table, h.Queues().Deliveries())
	batch := []events.DynamoDBEventRecord{h.created(t), h.created(t), h.created(t)}
	h.dispatch(t, d, batch...)
	first := h.messages(t)
	made := h.AllDeliveries(t)
	attempted, waiting, unstored := made[0], made[1], made[2]
	reason := "no"
	if _, err := h.Table.PutDelivery(t.Context(), attempted, attempted.Record(webhook.Outcome{
		Attempt: webhook.Attempt{Error: &reason}, Result: webhook.AttemptFailed,
	}, "m", 3, 0, h.Now())); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Table.PutDelivery(t.Context(), waiting, waiting.StoredAt(h.Now())); err != nil {
		t.Fatal(err)
	}
	h.SetStatus(t, e.ID, webhook.Paused)
	h.dispatch(t, d, batch...)
	again := h.messages(t)
	if deliveries := h.AllDeliveries(t); len(deliveries) != 3 {
		t.Errorf("%d deliveries after the replay, want 3", len(deliveries))
	}
	if len(first) != 3 || len(again) != 1 || again[waiting.ID] == nil {
		t.Errorf("messages %v, then %v; want all, then the stored one that no attempt shows", first, again)
	}
	if got := h.StoredDelivery(t, unstored.ID); got.HeldReason != webhook.HeldPaused {
		t.Errorf("the delivery that only a message had is %s after the replay, want it HELD", got.Status)
	}
}

func TestSilentChangesAndForeignItemsMeanNothing(t *testing.T) {
	h := newHarness(t)
	h.Endpoint(t, "*")
	_, silent := h.written(t, nil, order(value.NewID(), "PENDING"), func(s *commerce.Stored) { s.Silent = true })
	other := h.Organization(t)
	other.Deliveries(t, other.Endpoint(t), 1, nil)
	foreign := h.StreamRecords(t, dynamo.StreamEvent)
	expired := h.created(t)
	expired.Change.OldImage, expired.Change.NewImage = expired.Change.NewImage, nil
	h.dispatch(t, h.dispatcher(h.Table, h.Queues().Deliveries()), silent, foreign[0], expired)
	if deliveries := h.AllDeliveries(t); len(deliveries) > 0 {
		t.Errorf("deliveries: %+v", deliveries)
	}
}

func TestAlertsReachTheOthersOfTheirApplication(t *testing.T) {
	h := newHarness(t)
	failing := h.Endpoint(t, "*")
	told := h.Endpoint(t, "endpoint.*", "event.*")
	h.Endpoint(t, "order.*")
	h.OfApplication(h.Application(t)).Endpoint(t, "*")
	before := failing.Routing()
	before.Circuit = &webhook.Circuit{State: webhook.CircuitOpen, OpenedAt: h.At(-2 * time.Hour), ProbeAt: h.Now(), IntervalMs: 1}
	after := before
	after.Alert = webhook.Alert{Type: commerce.EventEndpointFailing, At: h.Now()}
	for _, next := range []webhook.Routing{before, after} {
		h.SetRouting(t, failing.ID, func(r *webhook.Routing) { *r = next })
	}
	h.SetRouting(t, failing.ID, func(r *webhook.Routing) { r.Circuit = r.Circuit.Drain(h.Now()) })
	pending := h.Deliveries(t, failing, 1, nil)[0]
	failed := *pending
	failed.Status, failed.UpdatedAt = webhook.DeliveryFailed, pending.UpdatedAt+1
	if _, err := h.Table.PutDelivery(t.Context(), pending, &failed); err != nil {
		t.Fatal(err)
	}
	unstored := webhook.NewDelivery(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created"}, failing, "", 0)
	refused := unstored.Record(webhook.Outcome{Result: webhook.AttemptRefused}, "", 0, 0, h.Now())
	if _, err := h.Table.PutDelivery(t.Context(), unstored, refused); err != nil {
		t.Fatal(err)
	}
	gone := h.Endpoint(t, "order.*")
	h.ChangeEndpoint(t, gone.ID, func(e *webhook.Endpoint) { *e = *e.Disable("answered 410 Gone", h.Now()) })
	h.ChangeEndpoint(t, gone.ID, func(e *webhook.Endpoint) { e.URL = "https://example.com/other" })
	d := h.dispatcher(h.Table, h.Queues().Deliveries())
	changes := h.StreamRecords(t, dynamo.StreamEndpoint, dynamo.StreamEvent)
	for range 2 {
		h.dispatch(t, d, changes...)
	}
	got := map[string]int{}
	for _, delivery := range h.AllDeliveries(t) {
		switch {
		case delivery.EndpointID == told.ID:
			got[delivery.Type+" "+delivery.ObjectID.String()]++
		case delivery.EndpointID == failing.ID && delivery.ObjectID == gone.ID, delivery.ID == pending.ID, delivery.ID == unstored.ID:
		default:
			t.Errorf("%s went to another endpoint", delivery.Type)
		}
		if delivery.Type != "endpoint.disabled" {
			continue
		}
		payload, err := h.Table.Payload(t.Context(), h.Org, delivery.EventID)
		if err != nil || !bytes.Contains(payload, []byte(`"previousAttributes":{"status":"ACTIVE"}`)) ||
			!bytes.Contains(payload, []byte(`"secret":"whsec_****`)) || bytes.Contains(payload, []byte(gone.Secret.Sealed)) {
			t.Errorf("payload: %s, %v", payload, err)
		}
	}
	want := map[string]int{
		"endpoint.failing " + failing.ID.String(): 1, "endpoint.disabled " + gone.ID.String(): 1,
		"event.failed " + pending.ID.String(): 1, "event.failed " + unstored.ID.String(): 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("alerts %v, want %v", got, want)
	}
}

func TestRecordThatCannotBeReadIsParkedAndTheRestGoesOn(t *testing.T) {
	h := newHarness(t)
	h.Endpoint(t, "*")
	broken := withDocument(h.created(t), "{broken")
	h.dispatch(t, h.dispatcher(h.Table, h.Queues().Deliveries()), h.created(t), broken, h.created(t))
	if deliveries := h.AllDeliveries(t); len(deliveries) != 2 || len(h.messages(t)) != 2 {
		t.Errorf("%d deliveries, want those of the neighbours", len(deliveries))
	}
	parked := h.Queues().Await(t, servicetest.ParkQueue)
	consumer, record, err := queue.Unpark(parked[0].Body, nil)
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

func (f *faulty) PutAuditEntry(ctx context.Context, org value.ID, entry *account.AuditEntry) error {
	if err := f.fails("trail"); err != nil {
		return err
	}
	return f.Store.PutAuditEntry(ctx, org, entry)
}

func (f *faulty) Directory(ctx context.Context, org value.ID) (*webhook.Directory, error) {
	if err := f.fails("directory"); err != nil {
		return nil, err
	}
	return f.Store.Directory(ctx, org)
}

func (f *faulty) CreateDeliveries(ctx context.Context, deliveries []*webhook.Delivery, payloads ...webhook.Payload) ([]*webhook.Delivery, map[value.ID]bool, error) {
	if err := f.fails("payloads"); err != nil {
		_, _, written := f.Store.CreateDeliveries(ctx, nil, payloads...)
		return nil, nil, errors.Join(err, written)
	}
	if err := f.fails("deliveries"); err != nil {
		return nil, nil, err
	}
	existing, known, err := f.Store.CreateDeliveries(ctx, deliveries, payloads...)
	if failed := f.fails("deliveries answer"); failed != nil {
		return nil, nil, failed
	}
	return existing, known, err
}

func (f *faulty) Move(ctx context.Context, lane webhook.Lane, moves ...queue.Move) error {
	if err := f.fails("send"); err != nil {
		return err
	}
	if err := f.Queue.Move(ctx, lane, moves...); err != nil {
		return err
	}
	return f.fails("send answer")
}

func TestAnEntryOfTheAuditTrailThatFailsIsWrittenByTheNextTry(t *testing.T) {
	h := newHarness(t)
	entry := account.NewAuditEntry("application.updated", account.AuditActor{Kind: "operator"}, h.App, account.AuditObject{Kind: "application", ID: h.App}, h.Now())
	if _, err := h.Table.ChangeApplication(t.Context(), h.Org, h.App, func(a *account.Application) (bool, error) {
		a.ChangedBy = entry
		return a.SetRateLimit(7, h.Now())
	}); err != nil {
		t.Fatal(err)
	}
	changed := h.StreamRecords(t, "app")
	f := &faulty{Store: h.Table, calls: map[string]int{}, failing: "trail", number: 1}
	d := h.dispatcher(f, h.Queues().Deliveries())
	if failures := h.handle(t, d, changed...).BatchItemFailures; len(failures) != 1 {
		t.Errorf("the first try: failures %v, want the change's", failures)
	}
	h.dispatch(t, d, changed...)
	found, _, err := h.Table.AuditTrail(t.Context(), h.Org, account.AuditFilter{}, value.ID{}, 10)
	want := *entry
	want.Fields = []string{"rateLimit"}
	if diff := cmp.Diff([]account.AuditEntry{want}, found); err != nil || diff != "" {
		t.Errorf("the trail, %v (-want +got):\n%s", err, diff)
	}
}

// Whatever step a batch dies at, the stream's next try completes it: every
// delivery is there once and every delivery's message was sent.
func TestBatchThatDiesAnywhereIsCompletedByItsNextTry(t *testing.T) {
	for _, step := range []string{"directory", "payloads", "deliveries", "deliveries answer", "send", "send answer"} {
		t.Run(step, func(t *testing.T) {
			h := newHarness(t)
			h.Endpoint(t, "*")
			h.Endpoint(t, "order.created")
			batch := []events.DynamoDBEventRecord{h.created(t), h.created(t), h.created(t)}
			f := &faulty{Store: h.Table, Queue: h.Queues().Deliveries(), calls: map[string]int{}, failing: step, number: 1}
			d := h.dispatcher(f, f)
			r := h.handle(t, d, batch...)
			if len(r.BatchItemFailures) != 1 {
				t.Fatalf("failures: %+v, want one", r)
			}
			from := slices.IndexFunc(batch, func(rec events.DynamoDBEventRecord) bool {
				return rec.Change.SequenceNumber == r.BatchItemFailures[0].ItemIdentifier
			})
			h.dispatch(t, d, batch[from:]...)
			messages := h.messages(t)
			deliveries := h.AllDeliveries(t)
			if len(deliveries) != 6 || len(messages) != 6 {
				t.Errorf("%d deliveries, %d of them sent; want 6", len(deliveries), len(messages))
			}
			for _, delivery := range deliveries {
				if payload, err := h.Table.Payload(t.Context(), h.Org, delivery.EventID); payload == nil || err != nil {
					t.Errorf("delivery %s has the payload %s, %v", delivery.ID, payload, err)
				}
			}
		})
	}
}

func TestPayloadIsTheSameForEveryEndpointAndReplay(t *testing.T) {
	h := newHarness(t)
	for range 3 {
		h.Endpoint(t, "*")
	}
	d := h.dispatcher(h.Table, h.Queues().Deliveries())
	record := h.created(t)
	h.dispatch(t, d, record)
	event := h.AllDeliveries(t)[0].EventID
	first, err := h.Table.Payload(t.Context(), h.Org, event)
	if err != nil {
		t.Fatal(err)
	}
	h.dispatch(t, d, withDocument(record, `{"id":"x"}`)) // as a later release might write it
	if again, err := h.Table.Payload(t.Context(), h.Org, event); err != nil || !bytes.Equal(first, again) {
		t.Errorf("payload %s, %v; want %s", again, err, first)
	}
}
