package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// refuses answers the orders with the prefix by the status, others well.
func refuses(prefix string, status int) func(call) (int, http.Header) {
	return func(c call) (int, http.Header) {
		if len(c.order) > len(prefix) && c.order[:len(prefix)] == prefix {
			return status, nil
		}
		return http.StatusOK, nil
	}
}

// steps are the waits of the schedule.
var steps = []time.Duration{ //nolint:gochecknoglobals // a constant
	5 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 31 * time.Hour, 31 * time.Hour, 31 * time.Hour,
}

// An attempt comes at the time that the schedule says, within a second: queues
// wait in whole seconds, up, and the sweeper, which runs every minute, sends a
// minute ahead with the delay that is left. What it must look at first, a
// circuit that closed, waits for its next run.
const punctual = time.Second

// Endpoints that are well but for one event, on whose every retry they fail.
func TestScheduleIsKeptOverAWeekToItsEnd(t *testing.T) {
	w := newHarness(t, 0, 0.5, 0.999999, 0.25)
	names := []string{"a", "b", "c"}
	var endpoints []*webhook.Endpoint
	for _, name := range names {
		endpoints = append(endpoints, w.endpoint(name, 10, refuses("bad", http.StatusInternalServerError), "order.created"))
	}
	w.order("bad")
	for at := time.Duration(0); at < 168*time.Hour; at += 6 * time.Hour {
		w.until(at + 17*time.Minute)
		w.order("good")
	}
	shortest, longest := 1.2, 1.0
	for i, name := range names {
		var bad []call
		for _, c := range w.calls(name) {
			if c.code != http.StatusOK {
				bad = append(bad, c)
			}
		}
		if len(bad) != 11 {
			t.Errorf("%s: %d attempts, want 11", name, len(bad))
			continue
		}
		for k, step := range steps {
			wait := bad[k+1].at - bad[k].at
			if wait < step-punctual || wait > step*12/10+punctual {
				t.Errorf("%s: retry %d came after %s, want %s to a fifth more", name, k+1, wait, step)
			}
			if step > time.Minute {
				shortest, longest = min(shortest, wait.Seconds()/step.Seconds()), max(longest, wait.Seconds()/step.Seconds())
			}
		}
		delivery := w.deliveries(endpoints[i])[0]
		if delivery.Status != webhook.DeliveryFailed || delivery.AttemptCount != 11 {
			t.Errorf("%s: %s after %d attempts, want FAILED after 11", name, delivery.Status, delivery.AttemptCount)
		}
		if e := w.stored(endpoints[i]); e.Circuit != nil || e.Lane != webhook.LaneMain {
			t.Errorf("%s: circuit %+v, lane %q of an endpoint that is well", name, e.Circuit, e.Lane)
		}
		w.checkCounters(name, endpoints[i])
	}
	if shortest > 1.01 || longest < 1.19 {
		t.Errorf("waits are between %.2f and %.2f of their step, want 1 to 1.2", shortest, longest)
	}
	w.mail.checkNoneIsDead(t)
}

func TestOpenCircuitIsProbedAndDrainsWhenItCloses(t *testing.T) {
	const outage = 4 * time.Hour
	w := newHarness(t, 0)
	e := w.endpoint("r", 10, func(c call) (int, http.Header) {
		if c.at < outage {
			return http.StatusBadGateway, nil
		}
		return http.StatusOK, nil
	}, "order.created")
	for i := range 9 { // attempts at 0, 5, 7, 12 s and so on
		w.until(time.Duration(i) * 7 * time.Second)
		w.order("early")
	}
	w.until(time.Minute)
	if c := w.stored(e).Circuit; c != nil {
		t.Fatalf("the circuit is %+v within a minute of the first failure", c)
	}
	w.until(70 * time.Second)
	c := w.stored(e).Circuit
	if opened := 61 * time.Second; !c.Open() || c.OpenedAt.Std().Sub(w.start) != opened {
		t.Fatalf("the circuit is %+v, want it open since %s", c, w.start.Add(opened))
	}
	before := len(w.calls("r"))
	for at := 10 * time.Minute; at < outage+time.Minute; at += 20 * time.Minute {
		w.until(at)
		w.order("held")
	}
	for i, delivery := range w.deliveries(e) {
		if delivery.Status != webhook.DeliveryHeld || delivery.HeldReason != webhook.HeldCircuitOpen {
			t.Errorf("during the outage delivery %d is %s %s, want HELD CIRCUIT_OPEN", i, delivery.Status, delivery.HeldReason)
		}
	}
	sent := len(w.mail.sentSince(0))
	w.until(outage + 65*time.Minute)
	held := w.mail.sentSince(sent)
	w.order("late")
	w.until(outage + 2*time.Hour)

	calls := w.calls("r")
	last := c.OpenedAt.Std().Sub(w.start)
	probe := before
	for _, seconds := range []int{10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600} {
		want := time.Duration(seconds) * time.Second
		if wait := calls[probe].at - last; wait < want-punctual || wait > want+punctual {
			t.Errorf("probe %d came after %s, want %s", probe-before+1, wait, want)
		}
		last = calls[probe].at
		if probe++; last >= outage {
			break
		}
	}
	deliveries := w.deliveries(e)
	if closed := last + time.Minute; calls[probe-1].code != http.StatusOK || calls[probe].at > closed+punctual || calls[len(calls)-2].at > closed+punctual {
		t.Errorf("closed by a probe at %s, what it held came from %s to %s, want within a minute", last, calls[probe].at, calls[len(calls)-2].at)
	}
	checkOldestFirst(t, held, deliveries)
	for _, delivery := range deliveries {
		if delivery.Status != webhook.DeliveryDelivered {
			t.Errorf("delivery of %s is %s", delivery.CreatedAt, delivery.Status)
		}
	}
	if c := w.stored(e).Circuit; c != nil {
		t.Errorf("the circuit is still %+v", c)
	}
	w.checkCounters("r", e)
	w.mail.checkNoneIsDead(t)
}

// checkOldestFirst compares the order in which deliveries were sent, behind the
// probe, with their age.
func checkOldestFirst(t *testing.T, sent []value.ID, deliveries []*webhook.Delivery) {
	t.Helper()
	age := func(id value.ID) int {
		return slices.IndexFunc(deliveries, func(r *webhook.Delivery) bool { return r.ID == id })
	}
	if len(sent) != len(deliveries)-1 || !slices.IsSortedFunc(sent[1:], func(a, b value.ID) int { return age(a) - age(b) }) {
		ages := make([]int, len(sent))
		for i, id := range sent {
			ages[i] = age(id)
		}
		t.Errorf("of %d deliveries were sent, by age: %v; want all but the last, the oldest first behind the probe", len(deliveries), ages)
	}
}

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
	sibling := w.endpoint("s", 10, refuses("none", 0), "endpoint.disabled")
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
