package webhook_test

import (
	"testing"

	"github.com/commerce-integration/service/pkg/webhook"
)

func TestADayCountsEventsByTheirStates(t *testing.T) {
	for _, test := range []struct {
		name     string
		attempts int
		status   webhook.DeliveryStatus
		want     webhook.EventDay
	}{
		{"delivered at once", 0, webhook.DeliveryDelivered, webhook.EventDay{Events: 1, Delivered: 1}},
		{"delivered by a retry", 3, webhook.DeliveryDelivered, webhook.EventDay{Delivered: 1}},
		{"failed at once", 0, webhook.DeliveryFailed, webhook.EventDay{Events: 1, Failed: 1}},
		{"failed in the end", 8, webhook.DeliveryFailed, webhook.EventDay{Failed: 1}},
		{"to be retried", 0, webhook.DeliveryPending, webhook.EventDay{Events: 1}},
		{"held by a circuit", 1, webhook.DeliveryHeld, webhook.EventDay{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got webhook.EventDay
			got.Count(&webhook.Delivery{AttemptCount: test.attempts}, &webhook.Delivery{AttemptCount: test.attempts + 1, Status: test.status})
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
