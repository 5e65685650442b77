package dispatcher

import (
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestWhoHasFewDeliveries(t *testing.T) {
	for _, test := range []struct {
		organizations, deliveries int // of each
		want                      int // organizations with few
	}{
		{1, 0, 0},
		{1, fewDeliveries, 1},
		{1, fewDeliveries + 1, 0},
		{maxFew / fewDeliveries, fewDeliveries, maxFew / fewDeliveries},
		{maxFew/fewDeliveries + 1, fewDeliveries, maxFew / fewDeliveries},
		{maxFew, 1, maxFew},
		{maxFew + 1, 1, maxFew},
	} {
		var changes []*change
		for range test.organizations {
			org := value.NewID()
			for range test.deliveries {
				changes = append(changes, &change{events: []addressed{{
					WebhookPayload: commerce.WebhookPayload{OrganizationID: org}, subscribed: make([]*webhook.Endpoint, 1),
				}}})
			}
		}
		if got := withFew(changes); len(got) != test.want {
			t.Errorf("%d organizations of %d deliveries: %d have few, want %d", test.organizations, test.deliveries, len(got), test.want)
		}
	}
}
