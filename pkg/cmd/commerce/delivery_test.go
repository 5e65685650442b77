package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
	"github.com/commerce-integration/service/pkg/ops"
)

// receiver is a real receiver of webhooks with the secret of its endpoint.
type receiver struct {
	*listener.Listener
	*httptest.Server
	endpoint string
}

// subscribe makes an endpoint of the service's application for the events.
func (s *service) subscribe(t *testing.T, events string) *receiver {
	t.Helper()
	l, err := listener.New(nil, listener.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{Listener: l, Server: httptest.NewServer(l)}
	t.Cleanup(r.Server.Close)
	body := fmt.Sprintf(`{"url":%q,"events":[%q]}`, r.Server.URL+"/hooks", events)
	resp, answer := s.user(t, http.MethodPost, "/developers/webhooks/endpoints?applicationId="+s.ApplicationID, body)
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("create an endpoint: got %d %s", resp.StatusCode, answer)
	}
	var created map[string]any
	if err := json.Unmarshal(answer, &created); err != nil {
		t.Fatal(err)
	}
	r.endpoint = created["id"].(string)
	if err := l.SetSecrets(created["secret"].(string)); err != nil {
		t.Fatal(err)
	}
	return r
}

// send puts a message on the records queue.
func (s *service) send(t *testing.T, body string) {
	t.Helper()
	s.sendTo(t, s.RecordsQueueURL, body)
}

// sendTo puts a message on a queue.
func (s *service) sendTo(t *testing.T, queueURL, body string) {
	t.Helper()
	if _, err := s.sqs(t).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: aws.String(body)}); err != nil {
		t.Fatal(err)
	}
}

// messages is how many messages a queue has, those in flight included.
func (s *service) messages(t *testing.T, queueURL string) int {
	t.Helper()
	attributes, err := ops.QueueAttributes(t.Context(), s.sqs(t), queueURL)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"} {
		n, err := strconv.Atoi(attributes[name])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

func (s *service) sqs(t *testing.T) *sqs.Client {
	t.Helper()
	client, err := newSQSClient(t.Context(), s.SQSEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (s *service) order(id value.ID, status string) string {
	return fmt.Sprintf(`{"organizationId":%q,"kind":"order","op":"put","record":{"id":%q,"orderNumber":"A-1","currency":"EUR","status":%q,
		"items":[{"name":"Tea","quantity":2,"unitPrice":9.9}]}}`, s.OrganizationID, id, status)
}

func TestAnOrderReachesItsEndpointSignedAndTheHistoryShowsIt(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	r, id := s.subscribe(t, "order.*"), value.NewID()
	sent := time.Now()
	s.send(t, s.order(id, "CONFIRMED"))
	await(t, "order.created and order.confirmed", func() bool { return len(r.Events()) == 2 })
	t.Logf("received %s after the order was sent", time.Since(sent).Round(time.Millisecond))
	types := map[string]bool{}
	for _, e := range r.Events() {
		types[e.Type] = true
		if e.Signature != listener.Verified || e.ObjectID != id.String() {
			t.Errorf("received %s of %s: signature %v; want a verified event of %s", e.Type, e.ObjectID, e.Signature, id)
		}
	}
	if !types["order.created"] || !types["order.confirmed"] {
		t.Errorf("types: got %v, want order.created and order.confirmed", types)
	}

	var history page
	await(t, "two finished deliveries", func() bool {
		time.Sleep(100 * time.Millisecond)
		s.history(t, "/developers/webhooks/events?status=DELIVERED&endpointId="+r.endpoint, &history)
		return history.Meta.Total == 2
	})
	var delivery map[string]any
	s.history(t, "/developers/webhooks/events/"+history.Data[0]["id"].(string), &delivery)
	attempts := delivery["attempts"].([]any)
	if len(attempts) != 1 || attempts[0].(map[string]any)["responseStatus"] != float64(http.StatusNoContent) || delivery["payload"] == nil {
		t.Errorf("delivery: got %v, want one attempt answered 204, and the payload", delivery)
	}
}

func TestAFailedAttemptIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	r := s.subscribe(t, "product.created")
	good := r.Config.Handler
	failures := 0
	r.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if failures++; failures == 1 {
			http.Error(w, "come again", http.StatusServiceUnavailable)
			return
		}
		good.ServeHTTP(w, req)
	})
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":"Tea"}}`, s.OrganizationID, value.NewID()))
	// The first retry comes after 5 s, a fifth more or less.
	await(t, "the second attempt", func() bool { return len(r.Events()) == 1 })
	var endpoint map[string]any
	await(t, "its counters", func() bool {
		time.Sleep(100 * time.Millisecond)
		s.history(t, "/developers/webhooks/endpoints/"+r.endpoint, &endpoint)
		return endpoint["successCount"] == 1.0
	})
	if endpoint["failureCount"] != 1.0 || endpoint["lastFailureReason"] == nil {
		t.Errorf("endpoint: got %v failures for the reason %v, want 1 and a reason", endpoint["failureCount"], endpoint["lastFailureReason"])
	}
}
