package app_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/arntarget"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/delivery/worker"
	"github.com/commerce-integration/service/pkg/webhook"
)

// TestQueueEndpointFailsAndRecoversAsOthersDo deletes the queue of an endpoint:
// its circuit opens, probes fail, and the first that finds the queue sends what
// was held. What was FAILED by then comes by a recovery.
func TestQueueEndpointFailsAndRecoversAsOthersDo(t *testing.T) {
	w := newHarness(t, 0)
	options := w.Queues().Client.Options()
	for i := range w.workers {
		w.workers[i] = worker.New(w.Table, w.mail, outbound.New(outbound.Config{}), w.Box, worker.Config{
			Clock: w.Time, Random: w.nextRandom, Logger: w.Leaks.Logger(),
			ARNs: arntarget.New(options.Credentials, arntarget.Config{Rules: webhook.ARNRules{Permitted: true}, SQS: *options.BaseEndpoint}),
		})
	}
	name, retries := "orders-"+w.Org.String(), 1
	url := "arn:aws:sqs:us-east-1:000000000000:" + name
	e, _ := w.NewEndpoint(t, webhook.CreateWebhookEndpointDto{URL: &url, Events: &[]string{"order.created"}, RetryCount: &retries})

	for i := range 9 {
		w.until(time.Duration(i) * 7 * time.Second)
		w.order("early")
	}
	w.until(10 * time.Minute)
	if c := w.stored(e).Circuit; !c.Open() {
		t.Fatalf("without its queue the endpoint's circuit is %+v", c)
	}
	for range 3 {
		w.order("held")
	}
	w.until(30 * time.Minute)
	status := map[webhook.DeliveryStatus]int{}
	for _, d := range w.deliveries(e) {
		status[d.Status]++
	}
	if status[webhook.DeliveryHeld] < 3 || status[webhook.DeliveryFailed] == 0 || len(status) != 2 {
		t.Fatalf("deliveries %v, want some FAILED and the others HELD", status)
	}

	made, err := w.Queues().Client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	w.until(2 * time.Hour)
	if c := w.stored(e).Circuit; c != nil {
		t.Errorf("with its queue the endpoint's circuit is %+v", c)
	}
	now := w.Now()
	recovery := &webhook.Recovery{
		ID: value.NewID(), EndpointID: e.ID, OrganizationID: w.Org, Status: webhook.RecoveryRunning,
		Since: value.TimeOf(w.start), Until: now, CreatedAt: now, UpdatedAt: now,
	}
	if err := w.Table.CreateRecovery(t.Context(), recovery, now); err != nil {
		t.Fatal(err)
	}
	w.until(2*time.Hour + 5*time.Minute)
	for _, d := range w.deliveries(e) {
		if d.Status != webhook.DeliveryDelivered {
			t.Errorf("the delivery of %s is %s %s", d.CreatedAt, d.Status, d.HeldReason)
		}
	}
	received := map[string]bool{}
	for len(received) < 12 {
		got, err := w.Queues().Client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}})
		if err != nil || len(got.Messages) == 0 {
			t.Fatalf("received %d events, then %+v, %v; want 12", len(received), got, err)
		}
		for _, m := range got.Messages {
			received[*m.MessageAttributes["webhook-id"].StringValue] = true
		}
	}
	w.mail.checkNoneIsDead(t)
}

func TestARNsAreTakenAsTheDeploymentPermits(t *testing.T) {
	const own, foreign = "111111111111", "222222222222"
	for _, tt := range []struct {
		permitted  string
		account    string
		ofOther    bool // organization
		wantStatus int
	}{
		{"", foreign, false, http.StatusBadRequest},
		{"none", foreign, false, http.StatusBadRequest},
		{"other-accounts", foreign, false, http.StatusNotFound}, // accepted, of no application
		{"other-accounts", own, false, http.StatusBadRequest},
		{"all-accounts", own, false, http.StatusNotFound},
		{"all-accounts", foreign, true, http.StatusBadRequest},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			handler := webhooksFunction(t, map[string]string{"ARN_ENDPOINTS": tt.permitted, "ACCOUNT_ID": own})
			request := createEndpoint("")
			org := fmt.Sprint(request.RequestContext.Authorizer["organizationId"])
			if tt.ofOther {
				org = value.NewID().String()
			}
			request.Body = fmt.Sprintf(`{"url":"arn:aws:sqs:eu-central-1:%s:%s","events":["*"]}`, tt.account, org)
			got, err := handler(t.Context(), request)
			if err != nil || got.StatusCode != tt.wantStatus {
				t.Errorf("got %d %s, %v; want %d", got.StatusCode, got.Body, err, tt.wantStatus)
			}
		})
	}
}
