package worker_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// harness is a worker over the shared fixture, with retries at the short end
// of their span.
type harness struct {
	*servicetest.Service
	*worker.Worker
	deliveries queue.Deliveries
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{Service: servicetest.New(t)}
	h.deliveries = h.Queues().Deliveries()
	h.Worker = h.worker(h.Table, h.deliveries, true)
	return h
}

func (h *harness) worker(store worker.Store, q worker.Queue, allowPrivate bool) *worker.Worker {
	return worker.New(store, q, outbound.New(outbound.Config{AllowPrivateTargets: allowPrivate, Clock: h.Time}), h.Box, worker.Config{
		Clock: h.Time, Random: func() float64 { return 0 }, Logger: h.Leaks.Logger(), MaxAttempts: 200,
	})
}

// endpoint makes an endpoint of the harness's application and returns its
// secret.
func (h *harness) endpoint(t *testing.T, url string, retries int) (*webhook.Endpoint, string) {
	t.Helper()
	subscribed, timeout := []string{"*"}, 1
	return h.NewEndpoint(t, webhook.CreateWebhookEndpointDto{
		URL: &url, Events: &subscribed, RetryCount: &retries, TimeoutSeconds: &timeout,
	})
}

// event stores a delivery of a fresh event for the endpoint and sends it.
func (h *harness) event(t *testing.T, e *webhook.Endpoint) *webhook.Delivery {
	t.Helper()
	delivery := webhook.NewDelivery(h.Event(t, `{"total":12.5,"name":"caf\u00e9 ☕"}`), e, "", h.Now())
	h.store(t, delivery)
	return delivery
}

func (h *harness) store(t *testing.T, delivery *webhook.Delivery) {
	t.Helper()
	if _, err := h.Table.PutDelivery(t.Context(), delivery.StoredAt(0), delivery); err != nil {
		t.Fatal(err)
	}
	if err := h.deliveries.Send(t.Context(), webhook.LaneMain, h.Now(), delivery); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) receive(t *testing.T) []events.SQSMessage {
	t.Helper()
	return h.Queues().Await(t, servicetest.MainQueue)
}

// handle gives messages to a worker, deletes those that are done as the event
// source does, and returns the others.
func (h *harness) handle(t *testing.T, w *worker.Worker, messages ...events.SQSMessage) []events.SQSMessage {
	t.Helper()
	left := h.crash(t, w, messages...)
	for _, m := range messages {
		if !contains(left, m) {
			h.Queues().Delete(t, queueOf(&m), m)
		}
	}
	return left
}

// leaves handles messages of which so many must stay in the queue.
func (h *harness) leaves(t *testing.T, want int, w *worker.Worker, messages ...events.SQSMessage) {
	t.Helper()
	if left := h.handle(t, w, messages...); len(left) != want {
		t.Fatalf("%d messages are left, want %d: %+v", len(left), want, left)
	}
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
		return servicetest.SlowQueue
	}
	return servicetest.MainQueue
}

// delivery reads the delivery and checks its status and number of attempts.
func (h *harness) delivery(t *testing.T, r *webhook.Delivery, status webhook.DeliveryStatus, attempts int) *webhook.Delivery {
	t.Helper()
	got := h.StoredDelivery(t, r.ID)
	if got.Status != status || got.AttemptCount != attempts {
		t.Fatalf("delivery is %s after %d attempts, want %s after %d: %+v", got.Status, got.AttemptCount, status, attempts, got)
	}
	return got
}

func (h *harness) counters(t *testing.T, e *webhook.Endpoint, successes, failures int64) webhook.Counters {
	t.Helper()
	h.CountStream(t)
	found, err := h.Table.Counters(context.Background(), h.Org, e.ID)
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
	h.SetRouting(t, e.ID, func(r *webhook.Routing) { r.Lane = lane })
}

// routing is the endpoint's once the stream is counted.
func (h *harness) routing(t *testing.T, e *webhook.Endpoint) webhook.Routing {
	t.Helper()
	h.CountStream(t)
	return h.StoredEndpoint(t, e.ID).Routing()
}
