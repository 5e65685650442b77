package webhook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

func alertOf(eventType string, ago time.Duration) webhook.Alert {
	return webhook.Alert{Type: eventType, At: now.Add(-ago)}
}

func TestAnEndpointIsAnnouncedByItsCircuitAndHealth(t *testing.T) {
	const (
		failing, disabling = commerce.EventEndpointFailing, commerce.EventEndpointDisabling
		recovered          = commerce.EventEndpointRecovered
		warned             = 4*days - time.Hour // of failing in a row before it is announced as disabling
	)
	for name, tt := range map[string]struct {
		circuit *webhook.Circuit
		since   time.Duration // its owner's last repair
		failed  time.Duration // in a row
		last    webhook.Alert
		want    string // "": nothing new
	}{
		"no circuit":                  {nil, 90 * days, 9 * days, webhook.Alert{}, ""},
		"draining":                    {draining(), 90 * days, 9 * days, webhook.Alert{}, ""},
		"open for less than an hour":  {openSince(time.Hour-1*time.Millisecond, 0), 90 * days, time.Hour, webhook.Alert{}, ""},
		"open for an hour":            {openSince(time.Hour, 0), 90 * days, time.Hour, webhook.Alert{}, failing},
		"repaired a moment ago":       {openSince(time.Hour, 0), time.Hour - 1, time.Hour, webhook.Alert{}, ""},
		"failing is known":            {openSince(2*time.Hour, 0), 90 * days, 2 * time.Hour, alertOf(failing, time.Hour), ""},
		"failing since a repair":      {openSince(2*days, 0), time.Hour, time.Hour, alertOf(failing, days), failing},
		"failing again":               {openSince(time.Hour, 0), 90 * days, time.Hour, alertOf(recovered, days), failing},
		"failing comes first":         {openSince(5*days, 0), 90 * days, 5 * days, webhook.Alert{}, failing},
		"not yet a day before":        {openSince(4*days, 0), 90 * days, warned - 1*time.Millisecond, alertOf(failing, days), ""},
		"a day before, and an hour":   {openSince(4*days, 0), 90 * days, warned, alertOf(failing, days), disabling},
		"disabling is known":          {openSince(5*days, 0), 90 * days, 5 * days, alertOf(disabling, 20*time.Hour), ""},
		"disabling before the repair": {openSince(5*days, 0), time.Hour, time.Hour, alertOf(disabling, 20*time.Hour), failing},
	} {
		t.Run(name, func(t *testing.T) {
			e := &webhook.Endpoint{Status: webhook.Active, Circuit: tt.circuit, Alert: tt.last, HealthSince: now.Add(-tt.since)}
			want := webhook.Alert{Type: tt.want, At: now}
			if tt.want == "" {
				want = tt.last
			}
			h := webhook.Health{Run: webhook.FailureRun{Count: 30, Start: now.Add(-tt.failed), Last: now}}
			if got := e.NextAlert(h, now); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestASuccessAfterAnAlertIsARecovery(t *testing.T) {
	for name, tt := range map[string]struct {
		last      string
		circuit   *webhook.Circuit
		status    webhook.Status
		succeeded bool
		want      bool
	}{
		"failing":                 {commerce.EventEndpointFailing, openSince(time.Hour, 0), webhook.Active, true, true},
		"disabling":               {commerce.EventEndpointDisabling, openSince(time.Hour, 0), webhook.Active, true, true},
		"after its circuit ended": {commerce.EventEndpointFailing, nil, webhook.Active, true, true},
		"another failure":         {commerce.EventEndpointFailing, openSince(time.Hour, 0), webhook.Active, false, false},
		"paused":                  {commerce.EventEndpointFailing, nil, webhook.Paused, true, false},
		"recovered already":       {commerce.EventEndpointRecovered, nil, webhook.Active, true, false},
		"never announced":         {"", openSince(time.Minute, 0), webhook.Active, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			last := webhook.Alert{}
			if tt.last != "" {
				last = alertOf(tt.last, time.Hour)
			}
			e := &webhook.Endpoint{Status: tt.status, Circuit: tt.circuit, Alert: last}
			want := last
			if tt.want {
				want = webhook.Alert{Type: commerce.EventEndpointRecovered, At: now}
			}
			if next, _ := e.NextRouting(webhook.Health{}, seen(tt.succeeded, !tt.succeeded, now), now); next.Alert != want {
				t.Errorf("%+v, want %+v", next.Alert, want)
			}
		})
	}
}

func TestAlertsAreDerivedFromTransitions(t *testing.T) {
	active := &webhook.Endpoint{
		ID: value.NewID(), OrganizationID: value.NewID(), Status: webhook.Active, UpdatedAt: now,
		KeptSecrets: webhook.KeptSecrets{Secret: webhook.Secret{Sealed: "sealed", Tail: "abcd"}},
	}
	disabled, failing := active.Disable("answered 410 Gone", now), *active
	failing.Alert = alertOf(commerce.EventEndpointFailing, 0)
	for name, tt := range map[string]struct {
		old, next *webhook.Endpoint
		want      string
	}{
		"disabled": {active, disabled, commerce.EventEndpointDisabled}, "created": {nil, active, ""}, "deleted": {active, nil, ""},
		"still disabled": {disabled, disabled, ""}, "activated": {disabled, active, ""},
		"failing": {active, &failing, commerce.EventEndpointFailing}, "still failing": {&failing, &failing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			alerts := webhook.Announced(tt.old, tt.next)
			if len(alerts) == 0 && tt.want == "" {
				return
			}
			if len(alerts) != 1 || alerts[0].Type != tt.want {
				t.Fatalf("announced %+v, want %q", alerts, tt.want)
			}
			first, err := tt.next.AlertEvent(alerts[0], tt.old, webhook.Counters{})
			if err != nil || strings.Contains(string(first.Data.Object), "sealed") || first.Timestamp != alerts[0].At || first.ObjectID != active.ID {
				t.Errorf("%+v, %v", first, err)
			}
			again, err := tt.next.AlertEvent(alerts[0], tt.old, webhook.Counters{})
			if err != nil || cmp.Diff(first, again) != "" {
				t.Errorf("another event the second time: %s", cmp.Diff(first, again))
			}
		})
	}
}

func TestOnlyTheFailureOfAnOrdinaryEventIsAnnounced(t *testing.T) {
	with := func(change func(*webhook.Delivery)) *webhook.Delivery {
		d := &webhook.Delivery{ID: value.MustID("0192f0c4-5b1e-7a2d-8c3f-1e5d7b9a2c40"), Type: "order.created", Status: webhook.DeliveryFailed, UpdatedAt: now}
		change(d)
		return d
	}
	pending := with(func(d *webhook.Delivery) { d.Status = webhook.DeliveryPending })
	for name, tt := range map[string]struct {
		old, next *webhook.Delivery
		want      bool
	}{
		"failed":       {pending, with(func(*webhook.Delivery) {}), true},
		"still failed": {with(func(*webhook.Delivery) {}), with(func(*webhook.Delivery) {}), false},
		"delivered":    {pending, with(func(d *webhook.Delivery) { d.Status = webhook.DeliveryDelivered }), false},
		"a test":       {pending, with(func(d *webhook.Delivery) { d.Test = true }), false},
		"an alert":     {pending, with(func(d *webhook.Delivery) { d.Type = commerce.EventEventFailed }), false},
		"expired":      {pending, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := webhook.FailedEvent(tt.old, tt.next)
			if err != nil || (got != nil) != tt.want {
				t.Fatalf("%+v, %v", got, err)
			}
			if tt.want && (got.Type != commerce.EventEventFailed || got.ObjectID != tt.next.ID || string(got.Data.PreviousAttributes) != `{"status":"PENDING"}`) {
				t.Errorf("%+v", got)
			}
		})
	}
}
