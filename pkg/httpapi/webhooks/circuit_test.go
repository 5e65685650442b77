package webhooks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// trip opens the circuit of an endpoint, which has failed for an hour and is
// in the slow lane, and returns its condition.
func (b *harness) trip(t *testing.T, item string) webhook.Routing {
	t.Helper()
	e, now := b.stored(t, item), value.TimeOf(b.now)
	condition := webhook.Routing{Lane: webhook.LaneSlow, Circuit: &webhook.Circuit{
		State: webhook.CircuitOpen, OpenedAt: now.Add(-time.Hour), ProbeAt: now.Add(30 * time.Minute), IntervalMs: (32 * time.Minute).Milliseconds(),
	}}
	if ok, err := b.table.SetRouting(t.Context(), b.org, e.ID, e.Routing(), condition); !ok || err != nil {
		t.Fatalf("SetRouting: %t, %v", ok, err)
	}
	return condition
}

// slowRefs are the messages that were sent to the worker in the slow lane.
func (b *harness) slowRefs(t *testing.T) []webhook.DeliveryRef {
	t.Helper()
	var refs []webhook.DeliveryRef
	for _, m := range b.queues.Receive(t, "SlowDeliveriesQueue") {
		ref, err := webhook.ParseDeliveryRef(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
		b.queues.Delete(t, "SlowDeliveriesQueue", m)
	}
	return refs
}

func TestARecoveryClosesAnOpenCircuit(t *testing.T) {
	b := newHarness(t)
	item := b.endpoint(t, minimal)
	held := b.event(t, item, webhook.HeldCircuitOpen)
	open := b.trip(t, item)
	b.now = b.now.Add(time.Minute)

	dynamotest.SetStatus(t, b.table, b.stored(t, item), webhook.Paused)
	b.must(t, http.StatusConflict, "POST", item+"/recover", `{"since":"2020-01-01"}`)
	b.must(t, http.StatusBadRequest, "POST", item+"/recover", `{"since":"2999-01-01"}`)
	if got := b.stored(t, item).Routing(); !got.Equal(open) {
		t.Errorf("after a refusal: condition %+v, want %+v", got, open)
	}

	dynamotest.SetStatus(t, b.table, b.stored(t, item), webhook.Active)
	a := b.must(t, http.StatusAccepted, "POST", item+"/recover", `{"since":"2020-01-01"}`)
	if a.text("status") != "COMPLETED" || a.field("requeuedCount") != 1.0 {
		t.Errorf("recovery: %s", a.body)
	}
	want := webhook.Routing{Lane: webhook.LaneSlow, Circuit: open.Circuit.Drain(value.TimeOf(b.now))}
	if got := b.stored(t, item).Routing(); !got.Equal(want) {
		t.Errorf("circuit %+v, want %+v", got.Circuit, want.Circuit)
	}
	if diff := cmp.Diff([]webhook.DeliveryRef{held.Ref()}, b.slowRefs(t)); diff != "" {
		t.Errorf("sent in the endpoint's lane (-want +got):\n%s", diff)
	}
}

func TestAnOwnersRepairHasTheCircuitProbedAtOnce(t *testing.T) {
	for _, test := range []struct {
		before webhook.Status
		body   string
		probed bool
	}{
		{webhook.Active, `{"url":"https://example.com/repaired"}`, true},
		{webhook.Active, `{"url":"https://example.com/hook"}`, false}, // the same
		{webhook.Active, `{"status":"ACTIVE"}`, false},
		{webhook.Active, `{"description":"x","events":["*"]}`, false},
		{webhook.Active, `{"status":"PAUSED"}`, false},
		{webhook.Paused, `{"status":"ACTIVE"}`, true},
		{webhook.Paused, `{"url":"https://example.com/repaired"}`, true},
	} {
		b := newHarness(t)
		item := b.endpoint(t, minimal)
		dynamotest.SetStatus(t, b.table, b.stored(t, item), test.before)
		open := b.trip(t, item)
		created := b.stored(t, item).HealthSince
		b.now = b.now.Add(time.Minute)
		b.must(t, http.StatusOK, "PATCH", item, test.body)
		now := value.TimeOf(b.now)
		want, since := open, created
		if test.probed {
			want.Circuit, since = open.Circuit.OwnerReset(now), now
		}
		if e := b.stored(t, item); !e.Routing().Equal(want) || e.HealthSince != since {
			t.Errorf("%s then %s: circuit %+v, health since %s; want %+v, %s", test.before, test.body, e.Circuit, e.HealthSince, want.Circuit, since)
		}
	}
}

func TestAnOpenCircuitNeitherRefusesATestNorARedelivery(t *testing.T) {
	b := newHarness(t)
	item := b.endpoint(t, minimal)
	held := b.event(t, item, webhook.HeldCircuitOpen)
	open := b.trip(t, item)
	test := b.must(t, http.StatusAccepted, "POST", item+"/test", "")
	sent := b.slowRefs(t)
	if len(sent) != 1 || sent[0].DeliveryID.String() != test.text("id") {
		t.Errorf("sent %+v in the endpoint's lane, want the test %s", sent, test.text("id"))
	}
	b.must(t, http.StatusAccepted, "POST", "/developers/webhooks/events/"+held.ID.String()+"/redeliver", "")
	if diff := cmp.Diff([]webhook.DeliveryRef{held.Ref()}, b.slowRefs(t)); diff != "" {
		t.Errorf("sent in the endpoint's lane (-want +got):\n%s", diff)
	}
	if got := b.stored(t, item).Routing(); !got.Equal(open) {
		t.Errorf("condition %+v, want %+v", got, open)
	}
}

func TestNothingIsSentForASuspendedApplication(t *testing.T) {
	b := newHarness(t)
	item := b.endpoint(t, minimal)
	held := b.event(t, item, webhook.HeldSuspended)
	dynamotest.Suspend(t, b.table, b.org, b.app)
	for path, body := range map[string]string{
		item + "/test": "", item + "/recover": `{"since":"2020-01-01"}`,
		"/developers/webhooks/events/" + held.ID.String() + "/redeliver": "",
	} {
		if a := b.must(t, http.StatusConflict, "POST", path, body); a.text("code") != "conflict" || !strings.Contains(a.text("message"), "suspended") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if refs := append(b.refs(t), b.slowRefs(t)...); len(refs) != 0 {
		t.Errorf("sent %+v", refs)
	}
}
