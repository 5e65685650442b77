package worker_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/webhook"
)

// lifting is a table in which something happens just before the first delivery is
// written.
type lifting struct {
	*dynamo.Table
	once sync.Once
	do   func()
}

func (l *lifting) PutDelivery(ctx context.Context, previous, next *webhook.Delivery) (*webhook.Delivery, error) {
	l.once.Do(l.do)
	return l.Table.PutDelivery(ctx, previous, next)
}

// An owner who activates an endpoint recovers what it holds at once. What is
// held by a look that is older than that must not be left behind.
func TestAHoldThatIsLiftedWhileItIsWrittenIsTakenBack(t *testing.T) {
	h := newHarness(t)
	rcv := newReceiver(t, always(http.StatusOK))
	e, _ := h.endpoint(t, rcv.url, 3)
	delivery := h.event(t, e)
	h.SetStatus(t, e.ID, webhook.Paused)
	store := &lifting{Table: h.Table, do: func() { h.SetStatus(t, e.ID, webhook.Active) }}
	messages := h.receive(t)
	h.leaves(t, 1, h.worker(store, h.deliveries, true), messages...)
	if got := h.delivery(t, delivery, webhook.DeliveryPending, 0); got.DueAt == nil {
		t.Error("no due mark stands for the message")
	}
	h.Pass(5 * time.Second)
	h.leaves(t, 0, h.Worker, messages...)
	h.delivery(t, delivery, webhook.DeliveryDelivered, 1)
	rcv.requests(t, 1)
}
