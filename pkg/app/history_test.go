package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func accepts(call) (int, http.Header) { return http.StatusOK, nil }

func TestEndpointThatFailsForFiveDaysIsDisabledAndRecovered(t *testing.T) {
	const day = 24 * time.Hour
	const outage = 6 * day
	w := newHarness(t, 0)
	refused := map[string]bool{} // events, once after the outage
	e := w.endpoint("r", 10, func(c call) (int, http.Header) {
		if c.at < outage || !refused[c.event] {
			refused[c.event] = c.at >= outage
			return http.StatusServiceUnavailable, nil
		}
		return http.StatusOK, nil
	}, "order.created", "endpoint.disabled")
	sibling := w.endpoint("s", 10, accepts, "endpoint.disabled")
	for at := time.Duration(0); at < outage; at += 4 * time.Hour {
		w.until(at)
		if at < 5*day && w.stored(e).Status != webhook.Active {
			t.Fatalf("disabled after %s: %+v", at, w.stored(e))
		}
		w.order("any")
	}
	w.until(outage)
	checkDisabled(t, w, e, sibling)

	requests := len(w.calls("r"))
	w.activate(e)
	w.until(outage + time.Hour)
	w.order("fresh")
	w.until(outage + time.Hour + time.Minute)
	if got := w.calls("r")[requests:]; len(got) != 2 || !strings.HasPrefix(got[0].order, "fresh") {
		t.Errorf("activated: %d requests, want the fresh event and its retry only", len(got))
	}
	if e := w.stored(e); e.Status != webhook.Active || e.Circuit != nil {
		t.Errorf("a failure after the activation makes the endpoint %s with circuit %+v", e.Status, e.Circuit)
	}
	now := w.Now()
	recovery := &webhook.Recovery{
		ID: value.NewID(), EndpointID: e.ID, OrganizationID: w.Org, Status: webhook.RecoveryRunning,
		Since: value.TimeOf(w.start), Until: now, CreatedAt: now, UpdatedAt: now,
	}
	if err := w.Table.CreateRecovery(t.Context(), recovery, now); err != nil {
		t.Fatal(err)
	}
	w.until(outage + time.Hour + 5*time.Minute)
	deliveries := w.deliveries(e)
	for _, delivery := range deliveries {
		if delivery.Status != webhook.DeliveryDelivered {
			t.Errorf("after the recovery the delivery of %s is %s %s", delivery.CreatedAt, delivery.Status, delivery.HeldReason)
		}
	}
	got, err := w.Table.Recovery(t.Context(), w.Org, e.ID, recovery.ID)
	if want := int64(len(deliveries) - 1); err != nil || got.Status != webhook.RecoveryCompleted || got.MatchedCount != want || got.RequeuedCount != want {
		t.Errorf("recovery %+v, %v; want %d events", got, err, want)
	}
	w.checkCounters("r", e)
	w.mail.checkNoneIsDead(t)
}

// checkDisabled looks at an endpoint that has failed for five days.
func checkDisabled(t *testing.T, w *harness, e, sibling *webhook.Endpoint) {
	t.Helper()
	const five = 5 * 24 * time.Hour
	disabled := w.stored(e)
	at := disabled.UpdatedAt.Std().Sub(w.start)
	if disabled.Status != webhook.Disabled || at < five || at > five+webhook.MaxProbeInterval+time.Minute || disabled.Circuit != nil {
		t.Fatalf("%s at %s with circuit %+v, want DISABLED within an hour of five days", disabled.Status, at, disabled.Circuit)
	}
	if reason := *disabled.DisabledReason; reason != "every attempt failed for 5 days; the last: answered 503 Service Unavailable" {
		t.Errorf("reason %q", reason)
	}
	calls := w.calls("r")
	if last := calls[len(calls)-1].at; last > at {
		t.Errorf("asked at %s, disabled at %s", last, at)
	}
	reasons := map[webhook.HeldReason]int{}
	for _, delivery := range w.deliveries(e) {
		if delivery.Status != webhook.DeliveryHeld || delivery.Type != "order.created" {
			t.Errorf("the delivery of %s, %s, is %s", delivery.CreatedAt, delivery.Type, delivery.Status)
		}
		if delivery.CreatedAt >= disabled.UpdatedAt && delivery.HeldReason != webhook.HeldDisabled {
			t.Errorf("the delivery of %s is held for %q, want DISABLED", delivery.CreatedAt, delivery.HeldReason)
		}
		reasons[delivery.HeldReason]++
	}
	if reasons[webhook.HeldDisabled] == 0 || reasons[webhook.HeldCircuitOpen] == 0 {
		t.Errorf("held for %v, want some of each kind", reasons)
	}
	told := w.calls("s")
	if len(told) != 1 || told[0].at < at || told[0].at > at+time.Minute || !strings.Contains(told[0].body, disabled.ID.String()) ||
		!strings.Contains(told[0].body, `"previousAttributes":{"status":"ACTIVE"}`) || strings.Contains(told[0].body, disabled.Secret.Sealed) {
		t.Errorf("endpoint %s of the application heard %+v, want of the disabling once", sibling.ID, told)
	}
}
