package webhook

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

const (
	// failingAfter is how long a circuit is open before its endpoint is announced
	// as failing.
	failingAfter = time.Hour
	// disablingAhead is how long before its end by [Endpoint.NextRouting] an
	// endpoint is announced as disabling: a day, and the longest time between two
	// looks at its circuit.
	disablingAhead = 24*time.Hour + MaxProbeInterval
)

// Alert is the last announcement of an endpoint's health; its zero value means
// none. An event follows from the change that stores it.
type Alert struct {
	Type string // endpoint.failing, endpoint.disabling or endpoint.recovered
	At   value.Time
}

// troubled reports whether a success of the endpoint is worth an alert.
func (a Alert) troubled() bool {
	return a.Type == commerce.EventEndpointFailing || a.Type == commerce.EventEndpointDisabling
}

// NextAlert is the announcement to make at now of an endpoint whose circuit is
// open, h being its health since [Endpoint.HealthStart]; its last alert when
// there is nothing new. It fails once, and is disabled once, until an attempt
// succeeds or its owner changes its url or activates it.
func (e *Endpoint) NextAlert(h Health, now value.Time) Alert {
	announced := e.Alert.troubled() && e.Alert.At >= e.HealthSince
	switch {
	case e.Alerts || !e.Circuit.Open() || now < max(e.Circuit.OpenedAt, e.HealthSince).Add(failingAfter):
	case !announced:
		return Alert{commerce.EventEndpointFailing, now}
	case e.Alert.Type == commerce.EventEndpointFailing && h.Run.Count > 0 && now >= h.Run.Start.Add(disableSpan-disablingAhead):
		return Alert{commerce.EventEndpointDisabling, now}
	}
	return e.Alert
}

// Announced lists what the change of an endpoint announces.
func Announced(old, next *Endpoint) (alerts []Alert) {
	if old == nil || next == nil || next.Alerts {
		return nil
	}
	if next.Alert != old.Alert && next.Alert != (Alert{}) {
		alerts = append(alerts, next.Alert)
	}
	if next.Status == Disabled && old.Status != Disabled {
		alerts = append(alerts, Alert{commerce.EventEndpointDisabled, next.UpdatedAt})
	}
	return alerts
}

// AlertEvent is the event of an alert that the change from old announces.
// Replays give the same event.
func (e *Endpoint) AlertEvent(a Alert, old *Endpoint, c Counters) (*commerce.WebhookPayload, error) {
	previous := "{}"
	if old.Status != e.Status {
		previous = `{"status":"` + string(old.Status) + `"}`
	}
	return alertEvent(a, e.OrganizationID, e.ID, e.Shape(c), previous)
}

// Announces reports whether the delivery's end is an alert: it FAILED, and is
// neither an alert itself nor a test.
func (d *Delivery) Announces() bool {
	return d.Status == DeliveryFailed && !d.Test && !commerce.IsAlert(d.Type)
}

// FailedEvent is the event of a delivery that FAILED; nil for any other
// change from old to next. Replays give the same event.
func FailedEvent(old, next *Delivery) (*commerce.WebhookPayload, error) {
	if old == nil || next == nil || old.Status == DeliveryFailed || !next.Announces() {
		return nil, nil
	}
	a := Alert{commerce.EventEventFailed, next.UpdatedAt}
	return alertEvent(a, next.OrganizationID, next.ID, next.Shape(), `{"status":"`+string(old.Status)+`"}`)
}

func alertEvent(a Alert, org, about value.ID, shape any, previous string) (*commerce.WebhookPayload, error) {
	object, err := json.Marshal(shape)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", a.Type, about, err)
	}
	return &commerce.WebhookPayload{
		ID:             value.DeriveID(about, a.Type+"\n"+strconv.FormatInt(int64(a.At), 10)),
		Type:           a.Type,
		APIVersion:     commerce.APIVersion,
		Timestamp:      a.At,
		OrganizationID: org,
		ObjectID:       about,
		Data:           commerce.WebhookData{Object: object, PreviousAttributes: jsontext.Value(previous)},
	}, nil
}

// Samples is the data of the catalogue's alerts.
func Samples() map[string]commerce.Sample {
	reason, at := "answered 410 Gone", value.Time(1795336541242) // 2026-11-22T08:35:41.242Z
	e := Endpoint{
		ID:            value.MustID("0192f0c4-5b1e-7a2d-8c3f-1e5d7b9a2c40"),
		ApplicationID: value.MustID("0192f0c3-3c6f-7d19-b5a8-4f2e6d8c1b70"), OrganizationID: value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"),
		URL: "https://example.com/webhooks", Status: Active, SubscribedEvents: []string{"order.*"},
		RetryCount: DefaultRetryCount, TimeoutSeconds: DefaultTimeoutSeconds, KeptSecrets: KeptSecrets{Secret: Secret{Tail: "Jw3k"}},
		CreatedAt: at.Add(-1 << 45), UpdatedAt: at,
	}
	counters := Counters{SuccessCount: 1204, FailureCount: 1, LastFailureAt: &at, LastFailureReason: &reason}
	d := Delivery{
		ID:         value.MustID("0192f0c5-2a4b-7d1e-8f60-7b3c9d2e4a50"),
		EventID:    value.MustID("b7c1a2d4-0f3e-5a6b-9c8d-1e2f3a4b5c6d"),
		EndpointID: e.ID, ApplicationID: e.ApplicationID, OrganizationID: e.OrganizationID,
		Type: "order.created", Status: DeliveryFailed, AttemptCount: 1,
		Attempts:  []Attempt{{At: at, DurationMs: 84, ResponseStatus: new(410), Error: &reason}},
		CreatedAt: at, UpdatedAt: at,
	}
	disabled := e
	disabled.Status = Disabled
	return map[string]commerce.Sample{
		commerce.EventEndpointFailing:   sample(e.Shape(counters), "{}"),
		commerce.EventEndpointDisabling: sample(e.Shape(counters), "{}"),
		commerce.EventEndpointDisabled:  sample(disabled.Shape(counters), `{"status":"ACTIVE"}`),
		commerce.EventEndpointRecovered: sample(e.Shape(counters), "{}"),
		commerce.EventEventFailed:       sample(d.Shape(), `{"status":"PENDING"}`),
	}
}

func sample[T any](shape T, previous string) commerce.Sample {
	example, err := json.Marshal(shape)
	if err != nil {
		panic(err) // a constant
	}
	return commerce.Sample{Object: *new(T), Example: example, Previous: jsontext.Value(previous)}
}
