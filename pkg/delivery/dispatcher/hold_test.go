package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/webhook"
)

// lifting is a store in which something happens just before deliveries are created,
// and which fails the first writes of deliveries that are there.
type lifting struct {
	dispatcher.Store
	do    func()
	fails int
}

func (l *lifting) CreateDeliveries(ctx context.Context, deliveries []*webhook.Delivery, payloads ...webhook.Payload) ([]*webhook.Delivery, map[value.ID]bool, error) {
	l.do()
	return l.Store.CreateDeliveries(ctx, deliveries, payloads...)
}

func (l *lifting) PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (*webhook.Delivery, error) {
	if l.fails > 0 {
		l.fails--
		return nil, fault.Busy(errors.New("throttled"))
	}
	return l.Store.PutDelivery(ctx, previous, next)
}

// What is held by an older look than the owner's, who has activated the
// endpoint and recovered what it held, is sent.
func TestAHoldThatIsLiftedWhileItIsWrittenIsTakenBack(t *testing.T) {
	for name, fails := range map[string]int{"at once": 0, "when the stream brings the batch again": 1} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			e, other := h.Endpoint(t, "*"), h.Endpoint(t, "*")
			h.SetStatus(t, e.ID, webhook.Paused)
			h.SetStatus(t, other.ID, webhook.Paused)
			store := &lifting{Store: h.Table, fails: fails, do: func() { h.SetStatus(t, e.ID, webhook.Active) }}
			d, record := h.dispatcher(store, h.Queues().Deliveries()), h.created(t)
			for range fails {
				if failed := h.handle(t, d, record).BatchItemFailures; len(failed) != 1 {
					t.Errorf("failures %+v, want the record", failed)
				}
			}
			h.dispatch(t, d, record)
			found := map[webhook.DeliveryStatus]int{}
			messages := h.messages(t)
			for _, delivery := range h.AllDeliveries(t) {
				found[delivery.Status]++
				if sent := len(messages[delivery.ID]) == 1; sent != (delivery.EndpointID == e.ID) || delivery.Pending() != sent || sent != (delivery.DueAt != nil) {
					t.Errorf("%d messages of delivery %+v", len(messages[delivery.ID]), delivery)
				}
			}
			if found[webhook.DeliveryPending] != 1 || found[webhook.DeliveryHeld] != 1 {
				t.Errorf("deliveries %v, want one PENDING and one HELD", found)
			}
		})
	}
}
