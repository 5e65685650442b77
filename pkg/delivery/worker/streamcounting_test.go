package worker_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/webhook"
)

// What the stream will not count soon is counted at once.
func TestOnlyQuickSuccessesAreLeftToTheStreamWhileItIsCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, h *harness, e *webhook.Endpoint)
		atOnce  int64 // successes that are counted before the stream is
	}{
		"as usual":       {func(*testing.T, *harness, *webhook.Endpoint) {}, 0},
		"stream lags":    {func(_ *testing.T, h *harness, _ *webhook.Endpoint) { h.Pass(webhook.CountedFor) }, 1},
		"stream follows": {func(_ *testing.T, h *harness, _ *webhook.Endpoint) { h.Pass(webhook.CountedFor - time.Second) }, 0},
		"slow lane":      {func(t *testing.T, h *harness, e *webhook.Endpoint) { t.Helper(); h.setLane(t, e, webhook.LaneSlow) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			e, _ := h.endpoint(t, newReceiver(t, always(http.StatusOK)).url, 0)
			tt.prepare(t, h, e)
			d := webhook.NewDelivery(h.Event(t, `{}`), e, "", h.Now())
			h.store(t, d)
			h.drain(t)
			h.delivery(t, d, webhook.DeliveryDelivered, 1)
			found, err := h.Table.Counters(t.Context(), h.Org, e.ID)
			if got := found[e.ID].SuccessCount; err != nil || got != tt.atOnce {
				t.Errorf("counted %d, %v before the stream is, want %d", got, err, tt.atOnce)
			}
			h.counters(t, e, 1, 0)
		})
	}
}

func TestSuccessesAfterAFailureAreCountedAtOnce(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	e, _ := h.endpoint(t, rcv.url, 0)
	for range 3 {
		h.event(t, e)
		h.drain(t)
	}
	found, err := h.Table.Counters(t.Context(), h.Org, e.ID)
	if c := found[e.ID]; err != nil || c.SuccessCount != 2 || c.FailureCount != 1 {
		t.Errorf("counted %+v, %v before the stream is, want 2 successes and 1 failure", c, err)
	}
	h.counters(t, e, 2, 1)
}
