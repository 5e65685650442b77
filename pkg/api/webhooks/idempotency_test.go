package webhooks_test

import (
	"net/http"
	"testing"

	"github.com/commerce-integration/service/pkg/webhook"
)

func TestARepeatedRequestGetsTheFirstAnswer(t *testing.T) {
	h := newHarness(t)
	endpoint := h.endpoint(t, minimal)
	d := h.event(t, endpoint, webhook.HeldPaused)
	for _, test := range []struct {
		name, path, body string
		status           int
	}{
		{"a creation", "/developers/webhooks/endpoints?applicationId=" + h.App.String(), minimal, http.StatusCreated},
		{"a rotation", endpoint + "/rotate-secret", "", http.StatusOK},
		{"a test", endpoint + "/test", "", http.StatusAccepted},
		{"a redelivery", "/developers/webhooks/events/" + d.ID.String() + "/redeliver", "", http.StatusAccepted},
		{"a recovery", endpoint + "/recover", `{"since":"2020-01-01"}`, http.StatusAccepted},
	} {
		t.Run(test.name, func(t *testing.T) {
			first := h.must(t, test.status, http.MethodPost, test.path, test.body, "Idempotency-Key", test.path)
			again := h.must(t, test.status, http.MethodPost, test.path, test.body, "Idempotency-Key", test.path)
			if again.Body != first.Body || again.Header.Get("Idempotency-Replayed") != "true" ||
				again.Header.Get("Location") != first.Header.Get("Location") || again.Header.Get("ETag") != first.Header.Get("ETag") {
				t.Errorf("got %v %s, want %v %s", again.Header, again.Body, first.Header, first.Body)
			}
		})
	}
}
