package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
	"github.com/commerce-integration/service/pkg/ops"
)

// collector is a listener that keeps what it received.
type collector struct {
	*listener.Listener
	mu     sync.Mutex
	events []listener.Event
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	var err error
	if c.Listener, err = listener.New(nil, listener.Config{OnEvent: func(e listener.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, e)
	}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Events are the webhooks in the order in which they came.
func (c *collector) Events() []listener.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// receiver is a real receiver of webhooks with the secret of its endpoint.
type receiver struct {
	*collector
	*httptest.Server
	endpoint string
}

// subscribe makes an endpoint of the service's application for the events.
func (s *service) subscribe(t *testing.T, events string) *receiver {
	t.Helper()
	l := newCollector(t)
	r := &receiver{collector: l, Server: httptest.NewServer(l)}
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
