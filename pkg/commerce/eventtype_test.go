package commerce

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func alertSamples() map[string]Sample {
	samples := map[string]Sample{}
	for _, a := range alerts() {
		samples[a.name] = Sample{Object: WebhookTestMessage{}, Example: jsontext.Value(`{"status":"DISABLED"}`), Previous: jsontext.Value(`{"status":"ACTIVE"}`)}
	}
	return samples
}

func TestEveryEventTypeHasAnExampleOfItsOwnType(t *testing.T) {
	for _, e := range EventTypes(alertSamples()) {
		if e.Example.Type != e.Name {
			t.Errorf("%s: the example is of type %q", e.Name, e.Example.Type)
		}
		if e.Example.APIVersion != APIVersion {
			t.Errorf("%s: the example is of version %q, want %q", e.Name, e.Example.APIVersion, APIVersion)
		}
		if e.Description == "" || e.Object == nil || e.Example.ID.IsZero() {
			t.Errorf("%s: incomplete: %+v", e.Name, e)
		}
		body, err := e.Example.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var back WebhookPayload
		if err := json.Unmarshal(body, &back, json.RejectUnknownMembers(true)); err != nil {
			t.Errorf("%s: example does not read back: %v", e.Name, err)
		}
		previous := string(e.Example.Data.PreviousAttributes)
		fresh := strings.HasSuffix(e.Name, ".created") || strings.HasSuffix(e.Name, ".deleted") || e.Name == EventWebhookTest
		if (previous == "null") != fresh {
			t.Errorf("%s: previousAttributes = %s", e.Name, previous)
		}
	}
}

func TestASubscriptionTakesItsEvents(t *testing.T) {
	for _, tt := range []struct {
		subscribed string
		event      string
		valid      bool
		want       bool
	}{
		{"order.created", "order.created", true, true},
		{"order.created", "order.updated", true, false},
		{"order.*", "order.refunded", true, true},
		{"order.*", "payment.refunded", true, false},
		{"payment.*", "payment.failed", true, true},
		{"*", "invoice.voided", true, true},
		{"*", "endpoint.disabled", true, true},
		{"*", "event.failed", true, true},
		{"*", "webhook.test", true, false},
		{"*", "stock.updated", true, false},
		{"stock.*", "stock.updated", true, true},
		{"webhook.test", "webhook.test", true, true},
		{"webhook.*", "webhook.test", true, true},
		{"endpoint.*", "endpoint.disabled", true, true},
		{"endpoint.*", "endpoint.recovered", true, true},
		{"endpoint.*", "event.failed", true, false},
		{"event.*", "event.failed", true, true},
		{"order", "order.created", false, false},
		{"order.", "order.created", false, false},
		{"*.created", "order.created", false, false},
		{"ord.*", "order.created", false, false},
		{".*", "order.created", false, false},
		{"Order.created", "order.created", false, false},
		{"order.shredded", "order.created", false, false},
		{"", "order.created", false, false},
		{"**", "order.created", false, false},
	} {
		t.Run(fmt.Sprintf("%v_%v", tt.subscribed, tt.event), func(t *testing.T) {
			if got := ValidSubscription(tt.subscribed); got != tt.valid {
				t.Errorf("ValidSubscription(%q) = %v, want %v", tt.subscribed, got, tt.valid)
			}
			if got := Matches([]string{"category.deleted", tt.subscribed}, tt.event); tt.valid && got != tt.want {
				t.Errorf("Matches(%q, %q) = %v, want %v", tt.subscribed, tt.event, got, tt.want)
			}
		})
	}
	if Matches(nil, "order.created") {
		t.Error("Matches(nil, order.created) = true, want false")
	}
}
