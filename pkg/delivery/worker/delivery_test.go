package worker_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/webhook"
)

// setDelivery gives the endpoint the delivery settings of a body.
func (h *harness) setDelivery(t *testing.T, e *webhook.Endpoint, body string) *webhook.Endpoint {
	t.Helper()
	dto, err := webhook.ParseDeliverySettings([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	next, err := h.Table.ChangeEndpoint(t.Context(), h.Org, e.ID, func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		return e.SetDelivery(dto, h.Box.Seal, h.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// TestRetriesSendTheSameBodyWithTheHeadersOfTheirTime changes the delivery
// settings between two attempts.
func TestRetriesSendTheSameBodyWithTheHeadersOfTheirTime(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	e, secret := h.endpoint(t, rcv.url, 0)
	e = h.setDelivery(t, e, `{"payload":"thin","retryCount":1,"timeoutSeconds":5,"headers":{"Authorization":"Bearer one","X-Shop":"a"}}`)
	delivery := webhook.NewDelivery(h.Event(t, `{"id":"1","total":12.5,"updatedAt":"2026-11-22T00:00:00.000Z"}`), e, "", h.Now())
	h.store(t, delivery)
	left := h.handle(t, h.Worker, h.receive(t)...)
	h.delivery(t, delivery, webhook.DeliveryPending, 1)
	h.setDelivery(t, e, `{"fields":["total"],"retryCount":3,"headers":{"Authorization":"Bearer two"}}`)
	h.Pass(time.Minute)
	h.handle(t, h.Worker, left...)
	stored := h.delivery(t, delivery, webhook.DeliveryDelivered, 2)
	shown := stored.Shape()
	stored.ShowExchanges(&shown)
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	requests := rcv.requests(t, 2)
	for i, authorization := range []string{"Bearer one", "Bearer two"} {
		r := requests[i]
		r.header.Del("Content-Length")
		if err := verifier.VerifyIgnoringTimestamp(r.body, r.header); err != nil {
			t.Errorf("attempt %d: %v", i+1, err)
		}
		if got := r.header.Get("Authorization"); got != authorization {
			t.Errorf("attempt %d: Authorization %q, want %q", i+1, got, authorization)
		}
		if got := r.header.Get("User-Agent"); got != webhook.UserAgent {
			t.Errorf("attempt %d: User-Agent %q", i+1, got)
		}
		if got := shown.Attempts[i].Request; got.URL != rcv.url || !maps.EqualFunc(got.Headers, r.header, func(shown string, sent []string) bool {
			return shown == sent[0] || shown == "****"
		}) {
			t.Errorf("attempt %d: shown %+v, sent %v", i+1, got, r.header)
		}
		if got := shown.Attempts[i].ResponseHeaders; (*got)["Date"] == "" {
			t.Errorf("attempt %d: answered with the headers %v", i+1, *got)
		}
		if string(r.body) != string(requests[0].body) {
			t.Errorf("attempt %d: got %s, want %s", i+1, r.body, requests[0].body)
		}
	}
	if first, second := requests[0].header.Get("X-Shop"), requests[1].header.Get("X-Shop"); first != "a" || second != "" {
		t.Errorf("X-Shop %q and then %q, want a and none", first, second)
	}
	if body := string(requests[0].body); !strings.Contains(body, `"object":{"id":"1","updatedAt":"2026-11-22T00:00:00.000Z"}`) {
		t.Errorf("got %s, want a thin payload", body)
	}
}

// TestNoSettingNamesAHeaderThatTheServiceSets looks at a request as it arrives,
// at what HTTP itself reads from it, and at the client's mark for net/http.
func TestNoSettingNamesAHeaderThatTheServiceSets(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 0)
	h.event(t, e)
	h.handle(t, h.Worker, h.receive(t)...)
	set := rcv.requests(t, 1)[0].header
	for _, name := range []string{"Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Idempotency-Key"} {
		set.Set(name, "")
	}
	for name := range set {
		if _, err := webhook.ParseDeliverySettings([]byte(`{"headers":{"` + name + `":"x"}}`)); err == nil {
			t.Errorf("%s: %v, want it to be refused", name, err)
		}
	}
}
