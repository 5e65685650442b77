package worker_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// carried returns a delivery of a fresh event and the messages that carry it with its
// input, as many as asked for. Nothing else has the delivery.
func (h *harness) carried(t *testing.T, e *webhook.Endpoint, messages int) (d *webhook.Delivery, got []events.SQSMessage) {
	t.Helper()
	const object = `{"total":12.5,"name":"caf\u00e9 ☕"}`
	ev := h.Event(t, object)
	body, err := ev.Encode()
	if err != nil {
		t.Fatal(err)
	}
	d = webhook.NewDelivery(ev, e, "", h.Now())
	move := queue.MoveOf(d, h.Now())
	move.Carried = webhook.Carry(d, e, webhook.ApplicationActive, body, h.Now())
	for range messages {
		if err := h.deliveries.Move(t.Context(), webhook.LaneMain, move); err != nil {
			t.Fatal(err)
		}
	}
	for len(got) < messages {
		got = append(got, h.receive(t)...)
	}
	return d, got
}

func TestAFirstAttemptIsMadeWithoutARead(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, secret := h.endpoint(t, rcv.url, 3)
	d, messages := h.carried(t, e, 1)
	if strings.Contains(messages[0].Body, strings.TrimPrefix(secret, "whsec_")) {
		t.Error("the message has the endpoint's secret in clear")
	}
	h.leaves(t, 0, h.failing("DeliveryInputs", always1000, errBusy, nil), messages...)
	h.delivery(t, d, webhook.DeliveryDelivered, 1)
	h.counters(t, e, 1, 0)
	read := h.event(t, e)
	h.leaves(t, 0, h.Worker, h.receive(t)...)
	h.delivery(t, read, webhook.DeliveryDelivered, 1)
	requests := rcv.requests(t, 2)
	if first, second := requests[0], requests[1]; len(first.body) != len(second.body) || first.header.Get("Webhook-Id") != d.EventID.String() {
		t.Errorf("got %s and %s, want the same but for times and ids", first.body, second.body)
	}
}

// What a message carries is good for five seconds and for its first receive.
func TestAChangeOfTheEndpointActsWithinFiveSeconds(t *testing.T) {
	for name, tt := range map[string]struct {
		after    time.Duration
		receives string
		want     webhook.DeliveryStatus
	}{
		"at once":                {0, "1", webhook.DeliveryDelivered},
		"just before":            {webhook.CarriedFor - time.Millisecond, "1", webhook.DeliveryDelivered},
		"after five seconds":     {webhook.CarriedFor, "1", webhook.DeliveryHeld},
		"when it came once more": {0, "2", webhook.DeliveryHeld},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			e, _ := h.endpoint(t, newReceiver(t, always(http.StatusOK)).url, 3)
			d, messages := h.carried(t, e, 1)
			h.SetStatus(t, e.ID, webhook.Paused)
			h.Pass(tt.after)
			messages[0].Attributes["ApproximateReceiveCount"] = tt.receives
			h.leaves(t, 0, h.Worker, messages...)
			if got := h.StoredDelivery(t, d.ID); got.Status != tt.want {
				t.Errorf("the delivery is %s, want %s", got.Status, tt.want)
			}
		})
	}
}

// A batch of the stream that comes twice sends two messages. The receiver may be
// asked twice; one attempt is recorded and counted, and the other one is logged. An
// outcome that is written again, as the first answer was lost, is not another.
func TestAMessageThatIsSentTwiceCountsOnce(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	d, messages := h.carried(t, e, 2)
	for n, w := range []*worker.Worker{h.failing("PutDelivery", 1, nil, errBusy), h.Worker} {
		h.leaves(t, 0, w, messages[n])
		if got := strings.Count(h.Leaks.Log(), `"msg":"another attempt was recorded"`); got != n {
			t.Errorf("after %d messages: %d logged, want %d", n+1, got, n)
		}
		h.Pass(time.Millisecond)
	}
	h.delivery(t, d, webhook.DeliveryDelivered, 1)
	h.counters(t, e, 1, 0)
	requests := rcv.requests(t, 2)
	if first, second := requests[0].header.Get("Webhook-Id"), requests[1].header.Get("Webhook-Id"); first != second {
		t.Errorf("webhook-id %s and %s, want the same", first, second)
	}
}

// A payload waits in the queue only until its message is received: the retry is
// another message.
func TestARetryCarriesNoPayload(t *testing.T) {
	h := newHarness(t)
	e, _ := h.endpoint(t, newReceiver(t, always(http.StatusInternalServerError)).url, 3)
	d, messages := h.carried(t, e, 1)
	q := &full{Queue: h.deliveries}
	h.leaves(t, 0, h.worker(h.Table, q, true), messages...)
	if got := h.delivery(t, d, webhook.DeliveryPending, 1); len(q.moves) != 1 || q.moves[0].MessageID != got.MessageID || q.moves[0].Carried != nil {
		t.Errorf("moved %+v, want one message that the delivery names", q.moves)
	}
	h.Pass(5 * time.Second)
	h.leaves(t, 1, h.Worker, h.receive(t)...)
	h.delivery(t, d, webhook.DeliveryPending, 2)
}

// A message that was sent twice leaves a spare, which waits for longer than the
// message that makes the retry: it is not the retry's, also when its wait is cut short.
func TestTheSpareOfAMessageDoesNotMakeItsRetry(t *testing.T) {
	h := newHarness(t)
	e, _ := h.endpoint(t, newReceiver(t, func(_ int, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "900")
		w.WriteHeader(http.StatusServiceUnavailable)
	}).url, 3)
	d, messages := h.carried(t, e, 2)
	q := &full{Queue: h.deliveries}
	for _, m := range messages {
		h.leaves(t, 0, h.worker(h.Table, q, true), m)
	}
	if got := h.delivery(t, d, webhook.DeliveryPending, 1); q.moves[0].MessageID != got.MessageID || q.moves[1].MessageID != "" || q.moves[1].Carried != nil {
		t.Errorf("moved %+v, want a message that the delivery names and one that it does not", q.moves)
	}
}

// slowTable takes long to read.
type slowTable struct {
	worker.Store
	wait func()
}

func (s slowTable) DeliveryInputs(ctx context.Context, refs []webhook.DeliveryRef) ([]webhook.DeliveryInput, error) {
	s.wait()
	return s.Store.DeliveryInputs(ctx, refs)
}

// A message that carries its input comes in a batch with one whose input must be
// read, while the table answers slowly. The endpoint was PAUSED ten seconds ago.
func TestCarriedInputIsGoodAtTheAttempt(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	other, _ := h.endpoint(t, newReceiver(t, always(http.StatusOK)).url, 3)
	d, messages := h.carried(t, e, 1)
	_, more := h.carried(t, other, 1)
	more[0].Attributes["ApproximateReceiveCount"] = "2"
	h.SetStatus(t, e.ID, webhook.Paused)
	w := h.worker(slowTable{h.Table, func() { h.Pass(10 * time.Second) }}, h.deliveries, true)
	if _, err := w.Handle(t.Context(), events.SQSEvent{Records: append(messages, more...)}); err != nil {
		t.Fatal(err)
	}
	if got := h.StoredDelivery(t, d.ID); got.Status == webhook.DeliveryDelivered {
		t.Errorf("an endpoint that was PAUSED 10 s ago was asked by what a message carried")
	}
}

func TestAMessageThatCarriesAPartIsRead(t *testing.T) {
	h := newHarness(t)
	e, _ := h.endpoint(t, newReceiver(t, always(http.StatusOK)).url, 3)
	d, messages := h.carried(t, e, 1)
	m := messages[0]
	body, err := webhook.ParseDeliveryMessage(m.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Table.PutDelivery(t.Context(), d.StoredAt(0), d); err != nil {
		t.Fatal(err)
	}
	body.Carried.Delivery = nil
	m.Body = body.Body()
	h.leaves(t, 0, h.Worker, m)
	h.delivery(t, d, webhook.DeliveryDelivered, 1)
}

// A delivery that only its message has is stored before the message waits, and the
// message then carries nothing.
func TestADeliveryThatOnlyItsMessageHasIsStoredBeforeItWaits(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	d, messages := h.carried(t, e, 1)
	h.setLane(t, e, webhook.LaneSlow)
	messages[0].Attributes["ApproximateReceiveCount"] = "2"
	if left := h.handle(t, h.failing("PutDelivery", 1, errBusy, nil), messages...); len(left) != 1 {
		t.Fatalf("%d messages are left of one whose delivery was not stored", len(left))
	}
	h.leaves(t, 0, h.Worker, messages...)
	if got := h.delivery(t, d, webhook.DeliveryPending, 0); !got.Stored() {
		t.Errorf("the delivery is %+v", got)
	}
	moved := h.Queues().Await(t, servicetest.SlowQueue)
	if body, err := webhook.ParseDeliveryMessage(moved[0].Body); err != nil || body.Carried != nil {
		t.Errorf("the moved message carries %+v, %v", body.Carried, err)
	}
	h.leaves(t, 0, h.Worker, moved...)
	h.delivery(t, d, webhook.DeliveryDelivered, 1)
	rcv.requests(t, 1)
}

// A process dies after the attempt and before its record: the message comes again, and
// its delivery is made of it.
func TestADeliveryThatOnlyItsMessageHasSurvivesACrash(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	d, messages := h.carried(t, e, 1)
	if left := h.handle(t, h.failing("PutDelivery", always1000, context.Canceled, nil), messages...); len(left) != 1 {
		t.Fatalf("%d messages are left of one whose outcome was not stored", len(left))
	}
	messages[0].Attributes["ApproximateReceiveCount"] = "2"
	h.leaves(t, 0, h.Worker, messages...)
	h.delivery(t, d, webhook.DeliveryDelivered, 1)
	h.counters(t, e, 1, 0)
	rcv.requests(t, 2)
}

// An erasure has taken the payload: nothing is sent, and no delivery is made.
func TestADeliveryWhosePayloadIsErasedIsNotMade(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	d, messages := h.carried(t, e, 1)
	if err := h.Table.EachItem(t.Context(), h.Org, func(i *dynamo.OwnedItem) error {
		content, err := i.Content()
		if _, is := content.(*webhook.Payload); is && err == nil {
			err = h.Table.RemoveItems(t.Context(), []dynamo.ItemRef{i.Ref()})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	messages[0].Attributes["ApproximateReceiveCount"] = "2"
	h.leaves(t, 0, h.Worker, messages...)
	if got, err := h.Table.Delivery(t.Context(), h.Org, d.ID); got != nil || err != nil {
		t.Errorf("the table has %+v, %v", got, err)
	}
	rcv.requests(t, 0)
}
