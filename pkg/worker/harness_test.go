package worker_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/outbound"
	"github.com/commerce-integration/service/pkg/sealed"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/sqsqueue/queuetest"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
	"github.com/commerce-integration/service/pkg/worker"
)

// harness is a worker on a real table and real queues, with a clock that the
// test moves and retries at the short end of their span.
type harness struct {
	*worker.Worker
	table      *dynamo.Table
	queues     *queuetest.Queues
	deliveries sqsqueue.Deliveries
	box        *sealed.Box
	org, app   value.ID

	mu  sync.Mutex
	now time.Time
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	client, name := dynamotest.Client(t)
	h := &harness{queues: queuetest.Start(t), org: value.NewID(), now: time.Now()}
	h.table = dynamo.New(client, name, h.clock)
	h.deliveries = h.queues.Deliveries()
	var err error
	if h.box, err = sealed.NewBox(make([]byte, sealed.KeySize)); err != nil {
		t.Fatal(err)
	}
	h.Worker = h.worker(h.table, h.deliveries, true)
	h.app = dynamotest.Application(t, h.table, h.org)
	return h
}

func (h *harness) worker(store worker.Store, q worker.Queue, allowPrivate bool) *worker.Worker {
	return worker.New(store, q, outbound.New(outbound.Config{AllowPrivateTargets: allowPrivate, Clock: h.clock}), h.box, worker.Config{
		Clock: h.clock, Random: func() float64 { return 0 }, Logger: slog.New(slog.DiscardHandler),
	})
}

func (h *harness) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *harness) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// endpoint makes an endpoint of the harness's application and returns its
// secret.
func (h *harness) endpoint(t *testing.T, url string, retries int) (*webhook.Endpoint, string) {
	t.Helper()
	subscribed, timeout := []string{"*"}, 1
	e, secret := webhook.NewEndpoint(h.org, h.app, webhook.CreateWebhookEndpointDto{
		URL: &url, Events: &subscribed, RetryCount: &retries, TimeoutSeconds: &timeout,
	}, h.box.Seal, value.TimeOf(h.clock()))
	if err := h.table.CreateEndpoint(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e, secret
}

// event stores a delivery of a fresh event for the endpoint and sends it.
func (h *harness) event(t *testing.T, e *webhook.Endpoint) *webhook.Delivery {
	t.Helper()
	payload := &commerce.WebhookPayload{
		ID: value.NewID(), Type: "order.created", Timestamp: value.TimeOf(h.clock()), OrganizationID: h.org,
		Data: commerce.WebhookData{Object: []byte(`{"total":12.5,"name":"caf\u00e9 ☕"}`), PreviousAttributes: []byte("null")},
	}
	body, err := payload.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.table.PutPayload(t.Context(), h.org, payload.ID, body); err != nil {
		t.Fatal(err)
	}
	delivery := webhook.NewDelivery(payload, e, "", value.TimeOf(h.clock()))
	h.store(t, delivery)
	return delivery
}

func (h *harness) store(t *testing.T, delivery *webhook.Delivery) {
	t.Helper()
	if existing, err := h.table.CreateDelivery(t.Context(), delivery); existing != nil || err != nil {
		t.Fatalf("CreateRow: %+v, %v", existing, err)
	}
	if err := h.deliveries.Send(t.Context(), webhook.LaneMain, value.TimeOf(h.clock()), delivery); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) receive(t *testing.T) []events.SQSMessage {
	t.Helper()
	return h.queues.Await(t, mainQueue)
}

// handle gives messages to a worker, deletes those that are done as the event
// source does, and returns the others.
func (h *harness) handle(t *testing.T, w *worker.Worker, messages ...events.SQSMessage) []events.SQSMessage {
	t.Helper()
	left := h.crash(t, w, messages...)
	for _, m := range messages {
		if !contains(left, m) {
			h.queues.Delete(t, queueOf(&m), m)
		}
	}
	return left
}

// crash gives messages to a worker that dies before any of them is deleted,
// and returns those that it reports.
func (h *harness) crash(t *testing.T, w *worker.Worker, messages ...events.SQSMessage) []events.SQSMessage {
	t.Helper()
	response, err := w.Handle(t.Context(), events.SQSEvent{Records: messages})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(messages), func(m events.SQSMessage) bool {
		return !slices.Contains(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
	})
}

func contains(messages []events.SQSMessage, m events.SQSMessage) bool {
	return slices.ContainsFunc(messages, func(o events.SQSMessage) bool { return o.MessageId == m.MessageId })
}

// queueOf is the logical id of the queue that a message came from.
func queueOf(m *events.SQSMessage) string {
	if strings.HasSuffix(m.EventSourceARN, "SlowDeliveriesQueue") {
		return slowQueue
	}
	return mainQueue
}

const (
	mainQueue = "DeliveriesQueue"
	slowQueue = "SlowDeliveriesQueue"
)

// delivery reads the delivery and checks its status and number of attempts.
func (h *harness) delivery(t *testing.T, r *webhook.Delivery, status webhook.DeliveryStatus, attempts int) *webhook.Delivery {
	t.Helper()
	got, err := h.table.Delivery(t.Context(), h.org, r.ID)
	if err != nil || got == nil {
		t.Fatalf("delivery %s: %v, %v", r.ID, got, err)
	}
	if got.Status != status || got.AttemptCount != attempts {
		t.Fatalf("delivery is %s after %d attempts, want %s after %d: %+v", got.Status, got.AttemptCount, status, attempts, got)
	}
	return got
}

func (h *harness) counters(t *testing.T, e *webhook.Endpoint, successes, failures int64) webhook.Counters {
	t.Helper()
	found, err := h.table.Counters(context.Background(), h.org, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := found[e.ID]
	if got.SuccessCount != successes || got.FailureCount != failures {
		t.Errorf("counters are %d successes and %d failures, want %d and %d", got.SuccessCount, got.FailureCount, successes, failures)
	}
	return got
}

// received is one request that a receiver got.
type received struct {
	header http.Header
	body   []byte
}

// receiver answers what answer says for each request, by its number from 1.
type receiver struct {
	url string

	mu  sync.Mutex
	got []received
}

func newReceiver(t *testing.T, answer func(n int, w http.ResponseWriter)) *receiver {
	t.Helper()
	rcv := &receiver{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rcv.mu.Lock()
		rcv.got = append(rcv.got, received{r.Header, body})
		n := len(rcv.got)
		rcv.mu.Unlock()
		answer(n, w)
	}))
	t.Cleanup(srv.Close)
	rcv.url = srv.URL + "/hook"
	return rcv
}

// always answers every request with the status.
func always(status int) func(int, http.ResponseWriter) {
	return func(_ int, w http.ResponseWriter) { w.WriteHeader(status) }
}

func (r *receiver) requests(t *testing.T, want int) []received {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) != want {
		t.Errorf("the receiver got %d requests, want %d", len(r.got), want)
	}
	return r.got
}

// setLane sets the endpoint's lane.
func (h *harness) setLane(t *testing.T, e *webhook.Endpoint, lane webhook.Lane) {
	t.Helper()
	h.setRouting(t, e, func(c *webhook.Routing) { c.Lane = lane })
}

// setRouting changes the endpoint's routing.
func (h *harness) setRouting(t *testing.T, e *webhook.Endpoint, change func(*webhook.Routing)) {
	t.Helper()
	next := h.routing(t, e)
	change(&next)
	if set, err := h.table.SetRouting(t.Context(), h.org, e.ID, h.routing(t, e), next); !set || err != nil {
		t.Fatalf("SetRouting(%+v): %t, %v", next, set, err)
	}
}

func (h *harness) routing(t *testing.T, e *webhook.Endpoint) webhook.Routing {
	t.Helper()
	now, err := h.table.Endpoint(t.Context(), h.org, e.ID)
	if err != nil || now == nil {
		t.Fatalf("endpoint %s: %v, %v", e.ID, now, err)
	}
	return now.Routing()
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}
