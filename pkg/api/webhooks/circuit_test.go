package webhooks_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// trip opens the circuit of an endpoint, which has failed for an hour and is
// in the slow lane, and returns its routing.
func (h *harness) trip(t *testing.T, item string) webhook.Routing {
	t.Helper()
	now := h.Now()
	routing := webhook.Routing{Lane: webhook.LaneSlow, Circuit: &webhook.Circuit{
		State: webhook.CircuitOpen, OpenedAt: now.Add(-time.Hour), ProbeAt: now.Add(30 * time.Minute), IntervalMs: (32 * time.Minute).Milliseconds(),
	}}
	h.SetRouting(t, h.stored(t, item).ID, func(r *webhook.Routing) { *r = routing })
	return routing
}

func TestARecoveryClosesAnOpenCircuit(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	held := h.event(t, item, webhook.HeldCircuitOpen)
	open := h.trip(t, item)
	h.Pass(time.Minute)

	h.SetStatus(t, h.stored(t, item).ID, webhook.Paused)
	h.must(t, http.StatusConflict, "POST", item+"/recover", `{"since":"2020-01-01"}`)
	h.must(t, http.StatusBadRequest, "POST", item+"/recover", `{"since":"2999-01-01"}`)
	if got := h.stored(t, item).Routing(); !got.Equal(open) {
		t.Errorf("after a refusal: routing %+v, want %+v", got, open)
	}

	h.SetStatus(t, h.stored(t, item).ID, webhook.Active)
	a := h.must(t, http.StatusAccepted, "POST", item+"/recover", `{"since":"2020-01-01"}`)
	if a.text("status") != "COMPLETED" || a.field("requeuedCount") != 1.0 {
		t.Errorf("recovery: %s", a.Body)
	}
	want := webhook.Routing{Lane: webhook.LaneSlow, Circuit: open.Circuit.Drain(h.Now())}
	if got := h.stored(t, item).Routing(); !got.Equal(want) {
		t.Errorf("circuit %+v, want %+v", got.Circuit, want.Circuit)
	}
	if diff := cmp.Diff([]webhook.DeliveryRef{held.Ref()}, h.refs(t, servicetest.SlowQueue)); diff != "" {
		t.Errorf("sent in the endpoint's lane (-want +got):\n%s", diff)
	}
}

func TestAnOwnersRepairHasTheCircuitProbedAtOnce(t *testing.T) {
	for _, test := range []struct {
		before      webhook.Status
		body        string
		reset, sent bool
	}{
		{webhook.Active, `{"url":"https://example.com/repaired"}`, true, true},
		{webhook.Active, `{"url":"https://example.com/hook"}`, false, false}, // the same
		{webhook.Active, `{"status":"ACTIVE"}`, false, false},
		{webhook.Active, `{"description":"x","events":["*"]}`, false, false},
		{webhook.Active, `{"status":"PAUSED"}`, false, false},
		{webhook.Paused, `{"status":"ACTIVE"}`, true, true},
		{webhook.Paused, `{"url":"https://example.com/repaired"}`, true, false},
	} {
		t.Run(fmt.Sprintf("%v_%v", test.before, test.body), func(t *testing.T) {
			h := newHarness(t)
			item := h.endpoint(t, minimal)
			held := h.event(t, item, webhook.HeldCircuitOpen)
			h.SetStatus(t, h.stored(t, item).ID, test.before)
			open := h.trip(t, item)
			created := h.stored(t, item).HealthSince
			h.Pass(time.Minute)
			h.must(t, http.StatusOK, "PATCH", item, test.body)
			now := h.Now()
			want, since := open, created
			if test.reset {
				want.Circuit, since = open.Circuit.OwnerReset(now), now
			}
			if e := h.stored(t, item); !e.Routing().Equal(want) || e.HealthSince != since {
				t.Errorf("%s then %s: circuit %+v, health since %s; want %+v, %s", test.before, test.body, e.Circuit, e.HealthSince, want.Circuit, since)
			}
			refs, probe := h.refs(t, servicetest.SlowQueue), h.StoredDelivery(t, held.ID)
			if (len(refs) == 1 && refs[0] == held.Ref() && probe.Probe) != test.sent || (len(refs) > 0) != test.sent {
				t.Errorf("sent %+v, delivery %+v; want a probe: %t", refs, probe, test.sent)
			}
		})
	}
}

func TestStatsShowACircuitThatIsOpenOrDraining(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	other := h.endpoint(t, minimal)
	shown := func(item, want string) {
		t.Helper()
		a := h.must(t, http.StatusOK, "GET", item+"/stats", "")
		if !strings.HasSuffix(a.Body, `,"circuit":`+want+`}`) {
			t.Errorf("statistics %s, want circuit %s", a.Body, want)
		}
	}
	shown(item, "null")

	before := h.must(t, http.StatusOK, "GET", item+"/stats", "")
	c := h.trip(t, item).Circuit
	h.must(t, http.StatusOK, "GET", item+"/stats", "", "If-None-Match", before.Header.Get("ETag"))
	open := fmt.Sprintf(`{"state":"OPEN","openedAt":%q,"nextProbeAt":%q,"closedAt":null}`, c.OpenedAt, c.ProbeAt)
	shown(item, open)
	shown(other, "null")
	h.Pass(time.Minute)
	h.must(t, http.StatusOK, "PATCH", item, `{"status":"PAUSED"}`)
	shown(item, open)

	now := h.Now()
	h.SetRouting(t, h.stored(t, item).ID, func(r *webhook.Routing) { r.Circuit = r.Circuit.Drain(now) })
	shown(item, fmt.Sprintf(`{"state":"DRAINING","openedAt":%q,"nextProbeAt":null,"closedAt":%q}`, c.OpenedAt, now))

	h.SetRouting(t, h.stored(t, item).ID, func(r *webhook.Routing) { r.Circuit = nil })
	shown(item, "null")
}

func TestAnOpenCircuitDoesNotRefuseATest(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	open := h.trip(t, item)
	test := h.must(t, http.StatusAccepted, "POST", item+"/test", "")
	sent := h.refs(t, servicetest.SlowQueue)
	if len(sent) != 1 || sent[0].DeliveryID.String() != test.text("id") {
		t.Errorf("sent %+v in the endpoint's lane, want the test %s", sent, test.text("id"))
	}
	if got := h.stored(t, item).Routing(); !got.Equal(open) {
		t.Errorf("routing %+v, want %+v", got, open)
	}
}

// TestARedeliveryProbesAnOpenCircuit is about events that would go back to HELD
// without an attempt, and about many that would ask a failing endpoint at once.
func TestARedeliveryProbesAnOpenCircuit(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	held := []*webhook.Delivery{h.event(t, item, webhook.HeldCircuitOpen), h.event(t, item, webhook.HeldCircuitOpen), h.event(t, item, webhook.HeldCircuitOpen)}
	due := *h.trip(t, item).Circuit
	due.ProbeAt = h.Now()
	h.SetRouting(t, held[0].EndpointID, func(r *webhook.Routing) { r.Lane, r.Circuit = webhook.LaneMain, &due })
	redeliver := func(d *webhook.Delivery) answer {
		return h.do(t, "POST", "/developers/webhooks/events/"+d.ID.String()+"/redeliver", "")
	}
	// tried redelivers all of them at a time and returns the one that is sent.
	tried := func() *webhook.Delivery {
		t.Helper()
		answers := make([]answer, len(held))
		var group sync.WaitGroup
		for i, d := range held {
			group.Go(func() { answers[i] = redeliver(d) })
		}
		group.Wait()
		var sent *webhook.Delivery
		for i, a := range answers {
			if a.Status == http.StatusAccepted && sent == nil {
				sent = held[i]
			} else if a.Status != http.StatusConflict || !strings.Contains(a.text("message"), "use recover") {
				t.Errorf("%d %s, want 202 once and 409 with the way out", a.Status, a.Body)
			}
		}
		if sent == nil {
			t.Fatal("none was sent")
		}
		if diff := cmp.Diff([]webhook.DeliveryRef{sent.Ref()}, h.refs(t, servicetest.SlowQueue)); diff != "" {
			t.Errorf("sent in the slow lane (-want +got):\n%s", diff)
		}
		d, err := h.Table.Delivery(t.Context(), h.Org, sent.ID)
		if err != nil || !d.Pending() || !d.Probe || d.ScheduleStart != d.AttemptCount || *d.NextAttemptAt > h.Now() {
			t.Errorf("%+v, %v; want a probe at once with a new schedule", d, err)
		}
		if c := h.stored(t, item).Circuit; !c.Open() || c.ProbeAt < h.At(webhook.Lease) {
			t.Errorf("circuit %+v, want it open until the outcome", c)
		}
		return d
	}
	first := tried()
	if a := redeliver(first); a.Status != http.StatusConflict || !strings.Contains(a.text("message"), "PENDING") {
		t.Errorf("again: %d %s", a.Status, a.Body)
	}
	h.ChangeDelivery(t, first.ID, func(d *webhook.Delivery) *webhook.Delivery { return d.Hold(webhook.HeldCircuitOpen, h.Now()) })
	second := tried()
	h.ChangeDelivery(t, second.ID, func(d *webhook.Delivery) *webhook.Delivery { return d.Cancel(h.Now()) })
	delivered := h.event(t, item, "")
	h.ChangeDelivery(t, delivered.ID, func(d *webhook.Delivery) *webhook.Delivery {
		return d.Record(webhook.Outcome{Attempt: webhook.Attempt{At: h.Now()}}, "m", 0, 0, h.Now())
	})
	held = []*webhook.Delivery{delivered}
	tried()
	test := h.must(t, http.StatusAccepted, "POST", item+"/test", "")
	id := value.MustID(test.text("id"))
	h.ChangeDelivery(t, id, func(d *webhook.Delivery) *webhook.Delivery {
		return d.Record(webhook.Outcome{Attempt: webhook.Attempt{At: h.Now()}}, "m", 0, 0, h.Now())
	})
	open := h.stored(t, item).Circuit
	h.must(t, http.StatusAccepted, "POST", "/developers/webhooks/events/"+id.String()+"/redeliver", "")
	if got := h.stored(t, item).Circuit; !got.Equal(open) {
		t.Errorf("after a test was redelivered: circuit %+v, want %+v", got, open)
	}
}

func TestNothingIsSentForASuspendedApplication(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	held := h.event(t, item, webhook.HeldSuspended)
	h.Suspend(t, h.App)
	for path, body := range map[string]string{
		item + "/test": "", item + "/recover": `{"since":"2020-01-01"}`,
		"/developers/webhooks/events/" + held.ID.String() + "/redeliver": "",
	} {
		t.Run(path, func(t *testing.T) {
			if a := h.must(t, http.StatusConflict, "POST", path, body); a.text("code") != "conflict" || !strings.Contains(a.text("message"), "suspended") {
				t.Errorf("%s", a.Body)
			}
		})
	}
	if refs := append(h.refs(t, servicetest.MainQueue), h.refs(t, servicetest.SlowQueue)...); len(refs) != 0 {
		t.Errorf("sent %+v", refs)
	}
}
