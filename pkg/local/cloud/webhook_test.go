//go:build cloud

package cloud_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/base/value"
)

// receiver keeps the deliveries that it gets, and fails the first.
type receiver struct {
	server *httptest.Server

	mu       sync.Mutex
	got      []delivery
	endpoint struct{ ID, Secret string }
}

type delivery struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body) // what is cut short fails its signature
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, delivery{request.Header, body})
	if len(r.got) == 1 {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// await returns the n-th delivery.
func (r *receiver) await(t *testing.T, n int) delivery {
	t.Helper()
	var d delivery
	await(t, fmt.Sprintf("delivery %d", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.got) < n {
			return false
		}
		d = r.got[n-1]
		return true
	})
	return d
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// verify checks a delivery's signature.
func (d delivery) verify(t *testing.T, secret string) {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(d.body, d.header); err != nil {
		t.Errorf("the signature is wrong: %v in %v", err, d.header)
	}
}

func (s *scenario) endpointPath(rest string) string {
	return "/developers/webhooks/endpoints/" + s.receiver.endpoint.ID + rest
}

func (s *scenario) webhook(t *testing.T) {
	body := fmt.Sprintf(`{"url":%q,"events":["order.created","order.updated"],"retryCount":3}`, s.receiver.server.URL)
	s.user.want(t, http.StatusCreated, http.MethodPost, "/developers/webhooks/endpoints?applicationId="+s.application.ID, body, &s.receiver.endpoint)
	s.put(t, "order", orderOf("PENDING"))
	first, second := s.receiver.await(t, 1), s.receiver.await(t, 2)
	second.verify(t, s.receiver.endpoint.Secret)
	if one, two := first.header.Get("webhook-id"), second.header.Get("webhook-id"); one != two || string(first.body) != string(second.body) {
		t.Errorf("the retry sends %s %s, want %s %s", two, second.body, one, first.body)
	}
	await(t, "the delivery in the history", func() bool {
		p := s.events(t, "order.created")
		return p.Meta.Total == 1 && p.Data[0].Status == "DELIVERED" && p.Data[0].Count == 2
	})
}

// events lists the deliveries of events of a type.
func (s *scenario) events(t *testing.T, kind string) page {
	t.Helper()
	var p page
	s.user.want(t, http.StatusOK, http.MethodGet, "/developers/webhooks/events?type="+kind, "", &p)
	return p
}

func (s *scenario) pauseAndRecover(t *testing.T) {
	s.user.want(t, http.StatusOK, http.MethodPatch, s.endpointPath(""), `{"status":"PAUSED"}`, nil)
	before := s.receiver.count()
	s.put(t, "order", orderOf("CONFIRMED"))
	await(t, "the held delivery", func() bool { return s.held(t) == 1 })
	if n := s.receiver.count(); n != before {
		t.Errorf("%d deliveries arrived while the endpoint was paused", n-before)
	}
	s.user.want(t, http.StatusOK, http.MethodPatch, s.endpointPath(""), `{"status":"ACTIVE"}`, nil)
	var recovery struct{ ID, Status string }
	s.user.want(t, http.StatusAccepted, http.MethodPost, s.endpointPath("/recover"), "", &recovery)
	s.receiver.await(t, before+1).verify(t, s.receiver.endpoint.Secret)
	await(t, "the end of the recovery", func() bool {
		s.user.want(t, http.StatusOK, http.MethodGet, s.endpointPath("/recoveries/"+recovery.ID), "", &recovery)
		return recovery.Status == "COMPLETED"
	})
}

// held counts the endpoint's held deliveries in the table. The history does not list them yet: the emulator writes no
// stream record for what PartiQL inserts.
func (s *scenario) held(t *testing.T) int {
	t.Helper()
	deliveries, err := s.store().Unsent(t.Context(), s.organization, value.MustID(s.receiver.endpoint.ID), value.Time(0), value.TimeOf(time.Now()), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	return len(deliveries)
}

// rotate makes a new secret, beside which the old one signs for a day.
func (s *scenario) rotate(t *testing.T) {
	var rotated struct{ Secret string }
	s.user.want(t, http.StatusOK, http.MethodPost, s.endpointPath("/rotate-secret"), "", &rotated)
	next := s.receiver.count() + 1
	s.user.want(t, http.StatusAccepted, http.MethodPost, s.endpointPath("/test"), "", nil)
	sent := s.receiver.await(t, next)
	if signatures := strings.Fields(sent.header.Get("webhook-signature")); len(signatures) != 2 {
		t.Errorf("signatures %v, want one for each secret", signatures)
	}
	sent.verify(t, rotated.Secret)
	sent.verify(t, s.receiver.endpoint.Secret)
}

// queueAndBus delivers a test to a queue and to a bus, as the worker's role.
func (s *scenario) queueAndBus(t *testing.T) {
	name := "webhooks-" + s.organization.String()
	s.tool(t, "bus", name)
	made, err := s.queues().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	for _, arn := range []string{"arn:aws:sqs:us-east-1:000000000000:" + name, "arn:aws:events:us-east-1:000000000000:event-bus/" + name} {
		var endpoint struct{ ID, Secret string }
		s.user.want(t, http.StatusCreated, http.MethodPost, "/developers/webhooks/endpoints?applicationId="+s.application.ID,
			fmt.Sprintf(`{"url":%q,"events":["product.deleted"]}`, arn), &endpoint)
		var sent struct{ ID string }
		s.user.want(t, http.StatusAccepted, http.MethodPost, "/developers/webhooks/endpoints/"+endpoint.ID+"/test", "", &sent)
		await(t, "the delivery to "+arn, func() bool {
			var got struct {
				Status   string
				Attempts []struct{ ResponseStatus int }
			}
			s.user.want(t, http.StatusOK, http.MethodGet, "/developers/webhooks/events/"+sent.ID, "", &got)
			if got.Status == "FAILED" {
				t.Fatalf("%s: %+v", arn, got)
			}
			return got.Status == "DELIVERED"
		})
		if !strings.Contains(arn, ":sqs:") {
			continue
		}
		out, err := s.queues().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl, MessageAttributeNames: []string{"All"}})
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("received %+v, %v", out, err)
		}
		d := delivery{header: http.Header{}, body: []byte(*out.Messages[0].Body)}
		for name, v := range out.Messages[0].MessageAttributes {
			d.header.Set(name, *v.StringValue)
		}
		d.verify(t, endpoint.Secret)
	}
}

func (s *scenario) history(t *testing.T) {
	var endpoint struct{ SuccessCount, FailureCount int }
	await(t, "the counters of 2 successes and 1 failure", func() bool {
		s.user.want(t, http.StatusOK, http.MethodGet, s.endpointPath(""), "", &endpoint)
		return endpoint.SuccessCount == 2 && endpoint.FailureCount == 1
	})
	var stats struct {
		Data []struct{ SuccessCount, FailureCount int }
	}
	s.user.want(t, http.StatusOK, http.MethodGet, s.endpointPath("/stats"), "", &stats)
	succeeded, failed := 0, 0
	for _, interval := range stats.Data {
		succeeded += interval.SuccessCount
		failed += interval.FailureCount
	}
	if succeeded != 2 || failed != 1 {
		t.Errorf("statistics of %d successes and %d failures, want 2 and 1", succeeded, failed)
	}
}

func (s *scenario) remove(t *testing.T) {
	s.user.want(t, http.StatusNoContent, http.MethodDelete, s.endpointPath(""), "", nil)
	s.user.refused(t, http.StatusNotFound, http.MethodGet, s.endpointPath(""), "")
	s.user.want(t, http.StatusOK, http.MethodPost, s.applicationPath("/api-keys/"+s.keyID+"/revoke"), "", nil)
	await(t, "the end of the key", func() bool {
		return s.reader.do(t, http.MethodGet, "/api/products", "").status == http.StatusUnauthorized
	})
	s.user.want(t, http.StatusNoContent, http.MethodDelete, s.applicationPath(""), "", nil)
	s.user.refused(t, http.StatusNotFound, http.MethodGet, s.applicationPath(""), "")
}
