package worker

import (
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const testNow = value.Time(1_800_000_000_000)

// ready is the input of a delivery whose attempt is due, changed by change.
func ready(change func(d *webhook.Delivery, e *webhook.Endpoint, in *webhook.DeliveryInput)) webhook.DeliveryInput {
	at := testNow
	d := &webhook.Delivery{Status: webhook.DeliveryPending, NextAttemptAt: &at}
	e := &webhook.Endpoint{Status: webhook.Active}
	in := webhook.DeliveryInput{Delivery: d, Endpoint: e, Payload: []byte("{}"), Application: webhook.ApplicationActive}
	if change != nil {
		change(d, e, &in)
	}
	return in
}

func in(d time.Duration) *value.Time {
	at := testNow.Add(d)
	return &at
}

func TestDecide(t *testing.T) {
	type (
		delivery = webhook.Delivery
		endpoint = webhook.Endpoint
		input    = webhook.DeliveryInput
	)
	open := &webhook.Circuit{State: webhook.CircuitOpen}
	for _, tt := range []struct {
		name   string
		from   origin
		change func(d *delivery, e *endpoint, in *input)
		want   disposition
	}{
		{"due", origin{}, nil, disposition{action: attemptNow}},
		{"expired", origin{}, func(_ *delivery, _ *endpoint, in *input) { in.Delivery = nil }, disposition{}},
		{"ended", origin{}, func(d *delivery, _ *endpoint, _ *input) { d.Status = webhook.DeliveryFailed }, disposition{}},
		{"early within the tolerance", origin{}, func(d *delivery, _ *endpoint, _ *input) { d.NextAttemptAt = in(time.Second) }, disposition{action: attemptNow}},
		{"early", origin{}, func(d *delivery, _ *endpoint, _ *input) { d.NextAttemptAt = in(5 * time.Second) }, disposition{action: retryLater, wait: 5 * time.Second}},
		{"early, under a near due mark", origin{}, func(d *delivery, _ *endpoint, _ *input) {
			d.NextAttemptAt, d.DueAt = in(maxSendAhead), in(maxSendAhead)
		}, disposition{action: retryLater, wait: maxSendAhead}},
		{"early, under a far due mark", origin{}, func(d *delivery, _ *endpoint, _ *input) {
			d.NextAttemptAt, d.DueAt = in(time.Hour), in(time.Hour)
		}, disposition{}},
		{"due when a clock ahead wrote it", origin{}, func(d *delivery, _ *endpoint, _ *input) {
			d.UpdatedAt, d.NextAttemptAt = *in(5 * time.Minute), in(5*time.Minute)
		}, disposition{action: attemptNow}},
		{"resumed by a clock ahead, under a due mark", origin{}, func(d *delivery, _ *endpoint, _ *input) {
			d.UpdatedAt, d.NextAttemptAt, d.DueAt = *in(5 * time.Minute), in(5*time.Minute), in(7*time.Minute)
		}, disposition{action: attemptNow}},
		{"early by a clock ahead", origin{}, func(d *delivery, _ *endpoint, _ *input) {
			d.UpdatedAt, d.NextAttemptAt = *in(5 * time.Minute), in(6*time.Minute)
		}, disposition{action: retryLater, wait: time.Minute}},
		{"named by the delivery", origin{messageID: "a"}, func(d *delivery, _ *endpoint, _ *input) { d.MessageID = "a/1" }, disposition{action: attemptNow}},
		{"replaces the named message", origin{messageID: "b", replaces: "a/1"}, func(d *delivery, _ *endpoint, _ *input) { d.MessageID = "a/1" }, disposition{action: attemptNow}},
		{"another message is named", origin{messageID: "b"}, func(d *delivery, _ *endpoint, _ *input) { d.MessageID = "a/1" }, disposition{action: retryLater, wait: lostMessageTimeout}},
		{"the named message seems to be lost", origin{messageID: "b"}, func(d *delivery, _ *endpoint, _ *input) {
			d.MessageID, d.NextAttemptAt = "a/1", in(-lostMessageTimeout)
		}, disposition{action: attemptNow}},
		{"the endpoint was deleted", origin{}, func(_ *delivery, _ *endpoint, in *input) { in.Endpoint = nil }, disposition{action: cancelDelivery}},
		{"the application was deleted", origin{}, func(_ *delivery, _ *endpoint, in *input) { in.Application = webhook.ApplicationAbsent }, disposition{action: cancelDelivery}},
		{"slow endpoint in the main lane", origin{}, func(d *delivery, e *endpoint, _ *input) { e.Lane = webhook.LaneSlow }, disposition{action: replace, lane: webhook.LaneSlow}},
		{"slow endpoint in the slow lane", origin{lane: webhook.LaneSlow}, func(_ *delivery, e *endpoint, _ *input) { e.Lane = webhook.LaneSlow }, disposition{action: attemptNow}},
		{"paused", origin{}, func(_ *delivery, e *endpoint, _ *input) { e.Status = webhook.Paused }, disposition{action: holdDelivery, reason: webhook.HeldPaused}},
		{"suspended", origin{}, func(_ *delivery, _ *endpoint, in *input) { in.Application = webhook.ApplicationSuspended }, disposition{action: holdDelivery, reason: webhook.HeldSuspended}},
		{"open circuit", origin{}, func(_ *delivery, e *endpoint, _ *input) { e.Circuit = open }, disposition{action: holdDelivery, reason: webhook.HeldCircuitOpen}},
		{"probe of an open circuit", origin{}, func(d *delivery, e *endpoint, _ *input) { d.Probe, e.Circuit = true, open }, disposition{action: attemptNow}},
		{"probe of a paused endpoint", origin{}, func(d *delivery, e *endpoint, _ *input) { d.Probe, e.Status = true, webhook.Paused }, disposition{action: holdDelivery, reason: webhook.HeldPaused}},
		{"test of a paused endpoint", origin{}, func(d *delivery, e *endpoint, _ *input) { d.Test, e.Status = true, webhook.Paused }, disposition{action: attemptNow}},
		{"hold without a payload", origin{}, func(_ *delivery, e *endpoint, in *input) { in.Payload, e.Status = nil, webhook.Paused }, disposition{action: holdDelivery, reason: webhook.HeldPaused}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := decide(tt.from, ready(tt.change), testNow); got != tt.want {
				t.Errorf("decide: %+v, want %+v", got, tt.want)
			}
		})
	}
	t.Run("without a payload", func(t *testing.T) {
		got := decide(origin{}, ready(func(_ *delivery, _ *endpoint, in *input) { in.Payload = nil }), testNow)
		if got.action != failed || got.err == nil {
			t.Errorf("decide: %+v, want a failure", got)
		}
	})
}

func TestDecideNext(t *testing.T) {
	pending := func(wait time.Duration, name string, due bool) *webhook.Delivery {
		d := &webhook.Delivery{Status: webhook.DeliveryPending, NextAttemptAt: in(wait), MessageID: name}
		if due {
			d.DueAt = d.NextAttemptAt
		}
		return d
	}
	from := origin{messageID: "a"}
	for _, tt := range []struct {
		name    string
		d       *webhook.Delivery
		tooMany bool
		want    disposition
	}{
		{"expired", nil, false, disposition{}},
		{"ended", &webhook.Delivery{Status: webhook.DeliveryDelivered}, false, disposition{}},
		{"own retry", pending(time.Minute, "a/1", false), false, disposition{action: retryLater, wait: time.Minute}},
		{"own retry with too many in flight", pending(time.Minute, "a/1", false), true, disposition{action: replace, wait: time.Minute, lane: webhook.LaneSlow, as: "a/1"}},
		{"retry under a due mark", pending(time.Hour, "", true), false, disposition{}},
		{"retry of another message", pending(time.Minute, "b/1", false), true, disposition{action: retryLater, wait: time.Minute + lostMessageTimeout}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := decideNext(from, tt.d, webhook.LaneSlow, tt.tooMany, testNow); got != tt.want {
				t.Errorf("decideNext: %+v, want %+v", got, tt.want)
			}
		})
	}
}
