package worker_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/delivery/arntarget"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/webhook"
)

// toQueues is a worker that may send to the queues of the test's own server.
func (h *harness) toQueues(rules webhook.ARNRules) *worker.Worker {
	options := h.Queues().Client.Options()
	return worker.New(h.Table, h.deliveries, outbound.New(outbound.Config{}), h.Box, worker.Config{
		Clock: h.Time, Random: func() float64 { return 0 }, Logger: h.Leaks.Logger(),
		ARNs: arntarget.New(options.Credentials, arntarget.Config{Rules: rules, SQS: *options.BaseEndpoint, Clock: h.Time}),
	})
}

// queue makes a queue and returns its URL.
func (h *harness) queue(t *testing.T, name string) string {
	t.Helper()
	made, err := h.Queues().Client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	return *made.QueueUrl
}

func (h *harness) queued(t *testing.T, url string, want int) []types.Message {
	t.Helper()
	got, err := h.Queues().Client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
	})
	if err != nil || len(got.Messages) != want {
		t.Fatalf("received %+v, %v; want %d messages", got, err, want)
	}
	return got.Messages
}

const localQueues = "arn:aws:sqs:us-east-1:000000000000:"

func TestAQueueGetsSignedEventsOnceItIsThere(t *testing.T) {
	h := newHarness(t)
	w := h.toQueues(webhook.ARNRules{Permitted: true})
	name := "orders-" + h.Org.String()
	e, secret := h.endpoint(t, localQueues+name, 3)
	delivery := h.event(t, e)

	left := h.handle(t, w, h.receive(t)...)
	failed := h.delivery(t, delivery, webhook.DeliveryPending, 1).Attempts[0]
	if *failed.ResponseStatus != http.StatusBadRequest || *failed.ResponseBody != "QueueDoesNotExist" || *failed.Error != "AWS answered 400 QueueDoesNotExist" {
		t.Errorf("without the queue: attempt %+v", failed)
	}

	url := h.queue(t, name)
	h.Pass(5 * time.Second)
	h.handle(t, w, left...)
	delivered := h.delivery(t, delivery, webhook.DeliveryDelivered, 2).Attempts[1]
	if *delivered.ResponseStatus != http.StatusOK || !strings.Contains(*delivered.ResponseBody, `"MessageId":"`) || delivered.Error != nil {
		t.Errorf("attempt %+v", delivered)
	}
	h.counters(t, e, 1, 1)

	message := h.queued(t, url, 1)[0]
	header := http.Header{}
	for name, v := range message.MessageAttributes {
		header.Set(name, *v.StringValue)
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	stored := h.StoredDelivery(t, delivery.ID)
	shown := stored.Shape()
	stored.ShowExchanges(&shown)
	for name := range header {
		if got := shown.Attempts[1].Request; len(got.Headers) != len(header) || got.Headers[name] != header.Get(name) || got.URL != e.URL {
			t.Errorf("shown %+v, sent %v", got, header)
		}
	}
	if err := verifier.Verify([]byte(*message.Body), header); err != nil || header.Get("Webhook-Id") != delivery.EventID.String() {
		t.Errorf("message %s with %v: %v", *message.Body, header, err)
	}
}
