package dispatcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/commerce-integration/service/pkg/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/webhook"
)

// lifting is a store in which something happens just before rows are created,
// and which fails the first writes of rows that are there.
type lifting struct {
	dispatcher.Store
	do    func()
	fails int
}

func (l *lifting) CreateDeliveries(ctx context.Context, rows []*webhook.Delivery) ([]*webhook.Delivery, error) {
	l.do()
	return l.Store.CreateDeliveries(ctx, rows)
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
		b := newBench(t)
		e, other := dynamotest.Endpoint(t, b.table, b.org, b.app, "*"), dynamotest.Endpoint(t, b.table, b.org, b.app, "*")
		dynamotest.SetStatus(t, b.table, e, webhook.Paused)
		dynamotest.SetStatus(t, b.table, other, webhook.Paused)
		store := &lifting{Store: b.table, fails: fails, do: func() { dynamotest.SetStatus(t, b.table, e, webhook.Active) }}
		d, record := b.dispatcher(store, b.queue()), b.created(t)
		for range fails {
			if failed := b.handle(t, d, record).BatchItemFailures; len(failed) != 1 {
				t.Errorf("%s: failures %+v, want the record", name, failed)
			}
		}
		if failed := b.handle(t, d, record).BatchItemFailures; len(failed) > 0 {
			t.Errorf("%s: failures %+v", name, failed)
		}
		found := map[webhook.DeliveryStatus]int{}
		messages := b.messages(t)
		for _, row := range b.rows(t) {
			found[row.Status]++
			if sent := len(messages[row.ID]) == 1; sent != (row.EndpointID == e.ID) || row.Pending() != sent || sent != (row.DueAt != nil) {
				t.Errorf("%s: %d messages of row %+v", name, len(messages[row.ID]), row)
			}
		}
		if found[webhook.DeliveryPending] != 1 || found[webhook.DeliveryHeld] != 1 {
			t.Errorf("%s: rows %v, want one PENDING and one HELD", name, found)
		}
	}
}
