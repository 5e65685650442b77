package worker_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// late stores a delivery under a due mark, and returns its message once the
// attempt is so late that the sweeper has sent another.
func (h *harness) late(t *testing.T, url string) (*webhook.Delivery, []events.SQSMessage) {
	t.Helper()
	subscribed, timeout := []string{"*"}, 30
	e, _ := h.NewEndpoint(t, webhook.CreateWebhookEndpointDto{URL: &url, Events: &subscribed, TimeoutSeconds: &timeout})
	d := webhook.NewDelivery(h.Event(t, `{"total":1}`), e, "", h.Now())
	due := d.CreatedAt.Add(webhook.Lease)
	d.DueAt = &due
	h.store(t, d)
	message := h.receive(t)
	h.Pass(webhook.ResendAfter + time.Second)
	return d, message
}

// again sends another message for the delivery, as the sweeper does.
func (h *harness) again(t *testing.T, d *webhook.Delivery) []events.SQSMessage {
	t.Helper()
	if err := h.deliveries.Send(t.Context(), webhook.LaneMain, h.Now(), d); err != nil {
		t.Fatal(err)
	}
	return h.receive(t)
}

func TestSecondMessageOfALateDeliveryWaitsForTheFirst(t *testing.T) {
	h := newHarness(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	rcv := newReceiver(t, func(_ int, w http.ResponseWriter) {
		asked <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusOK)
	})
	d, first := h.late(t, rcv.url)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.handle(t, h.Worker, first...)
	}()
	<-asked
	second := h.again(t, d)
	h.leaves(t, 1, h.Worker, second...)
	close(answer)
	<-done
	h.Pass(webhook.Lease)
	h.leaves(t, 0, h.Worker, second...)
	h.delivery(t, d, webhook.DeliveryDelivered, 1)
	rcv.requests(t, 1)
}

func TestSecondMessageOfALateDeliveryTakesOver(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	d, first := h.late(t, rcv.url)
	var puts atomic.Int64
	f := &faulty{Store: h.Table, Queue: h.deliveries, fail: func(call string) (before, after error) {
		if call == "PutDelivery" && puts.Add(1) > 1 { // behind the claim
			return errWrong, nil
		}
		return nil, nil
	}}
	h.crash(t, h.worker(f, f, true), first...)
	second := h.again(t, d)
	h.leaves(t, 1, h.Worker, second...)
	rcv.requests(t, 1)
	h.Pass(webhook.Lease)
	h.leaves(t, 0, h.Worker, second...)
	h.delivery(t, d, webhook.DeliveryDelivered, 1)
	rcv.requests(t, 2)
}

func TestLateAttemptIsMadeOnlyByTheMessageThatClaimsIt(t *testing.T) {
	for name, meanwhile := range map[string]func(d *webhook.Delivery, now value.Time) *webhook.Delivery{
		"another one claims it":  func(d *webhook.Delivery, now value.Time) *webhook.Delivery { return d.Claim("another/0", now) },
		"another one ends it":    (*webhook.Delivery).Cancel,
		"the table is throttled": func(*webhook.Delivery, value.Time) *webhook.Delivery { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			rcv := newReceiver(t, always(http.StatusOK))
			d, message := h.late(t, rcv.url)
			store := &faulty{Store: h.Table, Queue: h.deliveries, fail: func(call string) (before, after error) {
				if call != "PutDelivery" {
					return nil, nil
				}
				next := meanwhile(d, h.Now())
				if next == nil {
					return errBusy, nil
				}
				if _, err := h.Table.PutDelivery(t.Context(), d, next); err != nil {
					t.Error(err)
				}
				return nil, nil
			}}
			h.leaves(t, 1, h.worker(store, store, true), message...)
			rcv.requests(t, 0)
		})
	}
}
