package dispatcher_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// The messages of few events carry what their attempts need, as the table has it, and
// the deliveries, which are not stored; those of many, of large ones and of a batch
// that comes again do not.
func TestMessagesOfFewEventsCarryWhatTheirAttemptsNeed(t *testing.T) {
	large := fmt.Sprintf(`{"id":%q,"orderNumber":"1001","currency":"EUR","notes":%q}`, value.NewID(), strings.Repeat("a", webhook.MaxCarriedPayload))
	for name, tt := range map[string]struct {
		events int
		again  bool
		large  bool
		want   bool
	}{
		"one":         {events: 1, want: true},
		"twelve":      {events: 12, want: true},
		"thirteen":    {events: 13},
		"a large one": {large: true},
		"once more":   {events: 1, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			e := h.Endpoint(t, "order.created")
			var batch []events.DynamoDBEventRecord
			for range tt.events {
				batch = append(batch, h.created(t))
			}
			if tt.large {
				_, record := h.written(t, nil, large, nil)
				batch = append(batch, record)
			}
			d := h.dispatcher(h.Table, h.Queues().Deliveries())
			h.handle(t, d, batch...)
			if tt.again {
				h.messages(t)
				h.handle(t, d, batch...)
			}
			for seen := 0; seen < len(batch); {
				for _, m := range h.Queues().Await(t, servicetest.MainQueue) {
					seen++
					got, err := webhook.ParseDeliveryMessage(m.Body)
					if err != nil || (got.Carried != nil) != tt.want {
						t.Fatalf("%s, %v; carries %t, want %t", m.Body, err, got.Carried != nil, tt.want)
					}
					stored, err := h.Table.Delivery(t.Context(), h.Org, got.DeliveryID)
					if err != nil || (stored == nil) != tt.want {
						t.Errorf("the table has %+v, %v", stored, err)
					}
					if in, _ := got.Input(h.Now()); tt.want {
						read, err := h.Table.DeliveryInputs(t.Context(), []webhook.DeliveryRef{got.DeliveryRef})
						if err != nil || read[0].Delivery != nil || in.Delivery.Stored() || in.Delivery.ID != got.DeliveryID || !bytes.Equal(read[0].Payload, in.Payload) ||
							in.Endpoint.ID != e.ID || in.Endpoint.Secret != e.Secret || in.Application != webhook.ApplicationActive {
							t.Errorf("carries %+v, want %+v, %v", in, read, err)
						}
					}
					h.Queues().Delete(t, servicetest.MainQueue, m)
				}
			}
		})
	}
}
