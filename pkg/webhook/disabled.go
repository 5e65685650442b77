package webhook

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
)

// DisabledEvent is what the application's endpoints hear when the service
// disabled one of them; nil when the change from old to next is no such.
// Replays give the same event.
func DisabledEvent(old, next *Endpoint, c Counters) (*commerce.WebhookPayload, error) {
	if old == nil || next == nil || next.Status != Disabled || old.Status == Disabled {
		return nil, nil
	}
	object, err := json.Marshal(next.Shape(c))
	if err != nil {
		return nil, fmt.Errorf("event of endpoint %s: %w", next.ID, err)
	}
	return &commerce.WebhookPayload{
		ID:             value.DeriveID(next.ID, commerce.EventEndpointDisabled+"\n"+strconv.FormatInt(int64(next.UpdatedAt), 10)),
		Type:           commerce.EventEndpointDisabled,
		APIVersion:     commerce.APIVersion,
		Timestamp:      next.UpdatedAt,
		OrganizationID: next.OrganizationID,
		ObjectID:       next.ID,
		Data: commerce.WebhookData{
			Object: object, PreviousAttributes: jsontext.Value(`{"status":"` + string(old.Status) + `"}`),
		},
	}, nil
}

// Sample is the data of the catalogue's endpoint.disabled.
func Sample() commerce.Sample {
	reason, at := "answered 410 Gone", value.Time(1795336541242) // 2026-11-22T08:35:41.242Z
	e := Endpoint{
		ID:            value.MustID("0192f0c4-5b1e-7a2d-8c3f-1e5d7b9a2c40"),
		ApplicationID: value.MustID("0192f0c3-3c6f-7d19-b5a8-4f2e6d8c1b70"), OrganizationID: value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"),
		URL: "https://example.com/webhooks", Status: Disabled, SubscribedEvents: []string{"order.*"},
		RetryCount: DefaultRetryCount, TimeoutSeconds: DefaultTimeoutSeconds, Secret: Secret{Tail: "Jw3k"},
		CreatedAt: at.Add(-1 << 45), UpdatedAt: at,
	}
	example, err := json.Marshal(e.Shape(Counters{SuccessCount: 1204, FailureCount: 1, LastFailureAt: &at, LastFailureReason: &reason}))
	if err != nil {
		panic(err) // a constant
	}
	return commerce.Sample{Object: WebhookEndpoint{}, Example: example, Previous: jsontext.Value(`{"status":"ACTIVE"}`)}
}
