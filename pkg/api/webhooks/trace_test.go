package webhooks_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/api/webhooks"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

func tracePath(object value.ID) string { return "/developers/webhooks/trace/" + object.String() }

// order stores an order, the next revision of previous unless that is nil.
func (h *harness) order(t *testing.T, previous *commerce.Stored, fields string) *commerce.Stored {
	t.Helper()
	id := value.NewID()
	if previous != nil {
		id = previous.ID
	}
	return h.Put(t, commerce.KindOrder, previous, fmt.Sprintf(`{"id":%q,"orderNumber":"SO-1","currency":"EUR"%s}`, id, fields), nil)
}

// dispatch stores the events of a change, with deliveries to the endpoints, and
// returns their ids.
func (h *harness) dispatch(t *testing.T, old, next *commerce.Stored, to ...*webhook.Endpoint) (events []value.ID) {
	t.Helper()
	payloads, err := commerce.Events(old, next)
	if err != nil {
		t.Fatal(err)
	}
	for i := range payloads {
		body, err := payloads[i].Encode()
		if err == nil {
			err = h.Table.PutPayload(t.Context(), h.Org, payloads[i].ID, body)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range to {
			hold, _ := webhook.MaySend(e, webhook.ApplicationActive)
			d := webhook.NewDelivery(&payloads[i], e, hold, h.Now())
			if _, err := h.Table.PutDelivery(t.Context(), d.StoredAt(0), d); err != nil {
				t.Fatal(err)
			}
		}
		events = append(events, payloads[i].ID)
	}
	return events
}

// trace asks for a trace.
func (h *harness) trace(t *testing.T, object value.ID, query string) (found webhooks.WebhookTrace) {
	t.Helper()
	a := h.do(t, http.MethodGet, tracePath(object)+query, "")
	if a.Status != http.StatusOK {
		t.Fatalf("the trace: %d %s", a.Status, a.Body)
	}
	if a.Header.Get("ETag") == "" {
		t.Error("the trace has no ETag")
	}
	if err := json.Unmarshal([]byte(a.Body), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// outcomes are what became of an event by the names of endpoints.
func outcomes(ev webhooks.TracedEvent, names map[value.ID]string) map[string]webhook.EventOutcome {
	found := map[string]webhook.EventOutcome{}
	for _, e := range ev.Endpoints {
		found[names[e.EndpointID]] = e.Outcome
	}
	return found
}

func TestATraceTellsWhatBecameOfAnEventAtEachEndpoint(t *testing.T) {
	h := newHarness(t)
	names := map[value.ID]string{}
	made := func(name string, events ...string) *webhook.Endpoint {
		e := h.Endpoint(t, events...)
		names[e.ID] = name
		return e
	}
	delivered, failed, pending := made("delivered", "order.*"), made("failed", "*"), made("pending", "order.created")
	held, gone, changed := made("held", "*"), made("gone", "*"), made("changed", "product.*")
	made("other", "product.*")
	filtered := made("filtered", "*")
	h.ChangeEndpoint(t, filtered.ID, func(e *webhook.Endpoint) { e.Delivery.Filter = []byte(`{"object":{"orderNumber":["none"]}}`) })
	h.SetStatus(t, held.ID, webhook.Paused)
	held = h.StoredEndpoint(t, held.ID)
	order := h.order(t, nil, "")
	stored := h.Now()
	h.Pass(3 * time.Second)
	event := h.dispatch(t, nil, order, delivered, failed, pending, held, gone)[0]
	dispatched := h.Now()
	status := http.StatusServiceUnavailable
	for e, result := range map[*webhook.Endpoint]webhook.AttemptResult{delivered: webhook.AttemptSucceeded, failed: webhook.AttemptRefused} {
		body := "the answer"
		h.ChangeDelivery(t, webhook.DeliveryID(event, e.ID), func(d *webhook.Delivery) *webhook.Delivery {
			return d.Record(webhook.Outcome{Attempt: webhook.Attempt{At: h.Now(), ResponseStatus: &status, ResponseBody: &body}, Result: result}, "m", 3, 0, h.Now())
		})
	}
	h.Pass(time.Minute)
	h.ChangeEndpoint(t, changed.ID, func(e *webhook.Endpoint) { e.SubscribedEvents = []string{"*"} })
	made("later", "*")
	h.DeleteEndpoint(t, gone.ID)
	got := h.trace(t, order.ID, "")
	if got.Record == nil || got.Record.Kind != commerce.KindOrder || got.Record.UpdatedAt != order.Revision || got.Record.Deleted || got.Record.NoEvents != nil {
		t.Errorf("the record: %+v", got.Record)
	}
	if len(got.Events) != 1 || got.More {
		t.Fatalf("events: %+v, want one", got.Events)
	}
	ev := got.Events[0]
	if ev.EventID != event || ev.Type != "order.created" || ev.StoredAt == nil || *ev.StoredAt != stored || ev.CreatedAt != dispatched {
		t.Errorf("the event: %+v, stored at %v; want %s, stored at %s and for its endpoints at %s", ev, ev.StoredAt, event, stored, dispatched)
	}
	want := map[string]webhook.EventOutcome{
		"delivered": "DELIVERED", "failed": "FAILED", "pending": "PENDING", "held": "HELD", "gone": "PENDING",
		"other": "NOT_SUBSCRIBED", "filtered": "FILTERED", "changed": "CHANGED_SINCE", "later": "CREATED_LATER",
	}
	if outcome := outcomes(ev, names); fmt.Sprint(outcome) != fmt.Sprint(want) {
		t.Errorf("outcomes: %v, want %v", outcome, want)
	}
	for _, e := range ev.Endpoints {
		name := names[e.EndpointID]
		if e.Deleted != (name == "gone") || e.ApplicationID != h.App {
			t.Errorf("%s: %+v", name, e)
		}
		switch name {
		case "failed":
			if e.Entry == nil || len(e.Entry.Attempts) != 1 || *e.Entry.Attempts[0].ResponseStatus != status || e.Entry.Attempts[0].ResponseBody != nil {
				t.Errorf("the entry of what failed: %+v", e.Entry)
			}
		case "held":
			if e.Entry == nil || e.Entry.HeldReason == nil || *e.Entry.HeldReason != webhook.HeldPaused || e.Entry.Attempts == nil {
				t.Errorf("the entry of what is held: %+v", e.Entry)
			}
		case "other", "filtered", "changed", "later":
			if e.Entry != nil || (e.Reason != nil) != (name == "filtered") {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

func TestATraceShowsTheNewestEventsUpToItsLimit(t *testing.T) {
	h := newHarness(t)
	e := h.Endpoint(t, "*")
	var order *commerce.Stored
	var want []value.ID // the newest first
	for i := range 12 {
		next := h.order(t, order, fmt.Sprintf(`,"customerName":"%d"`, i))
		want = append(h.dispatch(t, order, next, e), want...)
		order = next
		h.Pass(time.Second)
	}
	for _, tt := range []struct {
		query string
		n     int
	}{{"", 10}, {"?limit=1", 1}, {"?limit=11", 11}, {"?limit=12", 12}, {"?limit=50", 12}} {
		got := h.trace(t, order.ID, tt.query)
		if len(got.Events) != tt.n || got.More != (tt.n < len(want)) {
			t.Errorf("limit %q: %d events, more %t; want %d", tt.query, len(got.Events), got.More, tt.n)
		}
		for i, ev := range got.Events {
			if ev.EventID != want[i] {
				t.Errorf("limit %q: event %d is %s of %s, want %s", tt.query, i, ev.EventID, ev.CreatedAt, want[i])
			}
		}
	}
	for _, query := range []string{"?limit=0", "?limit=51", "?limit=-1", "?limit=ten", "?limit=", "?limit=1&limit=2", "?page=1"} {
		if a := h.do(t, http.MethodGet, tracePath(order.ID)+query, ""); a.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", query, a.Status, a.Body)
		}
	}
}

func TestATraceTellsWhyAChangeHasNoEvent(t *testing.T) {
	const silent, recent, expired, unasked = webhook.EventlessSilent, webhook.EventlessRecent, webhook.EventlessExpired, webhook.EventlessUnasked
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, h *harness) *commerce.Stored
		want    webhook.EventlessReason
		deleted bool
		events  int
	}{
		"silent": {func(t *testing.T, h *harness) *commerce.Stored {
			t.Helper()
			return h.Put(t, commerce.KindOrder, nil, fmt.Sprintf(`{"id":%q,"orderNumber":"1","currency":"EUR"}`, value.NewID()), func(s *commerce.Stored) { s.Silent = true })
		}, silent, false, 0},
		"just stored": {func(t *testing.T, h *harness) *commerce.Stored { t.Helper(); return h.order(t, nil, "") }, recent, false, 0},
		"wanted by nobody": {func(t *testing.T, h *harness) *commerce.Stored {
			t.Helper()
			order := h.order(t, nil, "")
			h.Pass(time.Minute)
			return order
		}, unasked, false, 0},
		"older than the history": {func(t *testing.T, h *harness) *commerce.Stored {
			t.Helper()
			order := h.order(t, nil, "")
			h.dispatch(t, nil, order, h.Endpoint(t, "*"))
			h.Pass(webhook.Retention)
			return order
		}, expired, false, 0},
		"deleted when nobody asked": {func(t *testing.T, h *harness) *commerce.Stored {
			t.Helper()
			order := h.order(t, nil, "")
			h.dispatch(t, nil, order, h.Endpoint(t, "order.created"))
			h.Pass(time.Second)
			gone, err := commerce.Apply(order, commerce.Change{Kind: order.Kind, Op: commerce.OpDelete, OrganizationID: h.Org, Record: fmt.Appendf(nil, `{"id":%q}`, order.ID)}, h.Now())
			if err == nil {
				err = h.Table.PutRecord(t.Context(), order, gone)
			}
			if err != nil {
				t.Fatal(err)
			}
			h.Pass(time.Minute)
			return gone
		}, unasked, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			record := tt.prepare(t, h)
			got := h.trace(t, record.ID, "")
			if r := got.Record; r == nil || r.Kind != record.Kind || r.UpdatedAt != record.Revision || r.Deleted != tt.deleted || r.NoEvents == nil || *r.NoEvents != tt.want {
				t.Errorf("the record: %+v, want one without events because %s", r, tt.want)
			}
			if got.Events == nil || len(got.Events) != tt.events {
				t.Errorf("events: %+v, want %d", got.Events, tt.events)
			}
		})
	}
}

func TestATraceShowsOnlyWhatTheCallerMaySee(t *testing.T) {
	h := newHarness(t)
	mine, other := h.Endpoint(t, "*"), h.Application(t)
	theirs := h.OfApplication(other).Endpoint(t, "*")
	order := h.order(t, nil, "")
	h.dispatch(t, nil, order, mine, theirs)
	if a := h.asMachine(t, h.App, machineScopes(), http.MethodGet, tracePath(order.ID), ""); a.Status != http.StatusOK ||
		!strings.Contains(a.Body, mine.ID.String()) || strings.Contains(a.Body, theirs.ID.String()) || strings.Contains(a.Body, other.String()) {
		t.Errorf("an application's trace: %d %s, want its own endpoint only", a.Status, a.Body)
	}
	quiet := h.Application(t)
	if a := h.asMachine(t, quiet, machineScopes(), http.MethodGet, tracePath(order.ID), ""); a.Status != http.StatusOK || a.text("record.noEvents") == "" || strings.Contains(a.Body, "entry") {
		t.Errorf("the trace of an application without endpoints: %d %s", a.Status, a.Body)
	}
	for what, a := range map[string]answer{
		"of an absent object":                h.do(t, http.MethodGet, tracePath(value.NewID()), ""),
		"of another organization's":          h.as(t, value.NewID(), http.MethodGet, tracePath(order.ID), ""),
		"of another organization's endpoint": h.as(t, value.NewID(), http.MethodGet, tracePath(mine.ID), ""),
		"of another application's endpoint":  h.asMachine(t, h.App, machineScopes(), http.MethodGet, tracePath(theirs.ID), ""),
	} {
		if a.Status != http.StatusNotFound || a.text("code") != "not_found" || a.text("message") != "no such object" {
			t.Errorf("the trace %s: %d %s, want 404", what, a.Status, a.Body)
		}
	}
	if a := h.do(t, http.MethodGet, "/developers/webhooks/trace/order-1", ""); a.Status != http.StatusBadRequest && a.Status != http.StatusNotFound {
		t.Errorf("the trace of what is no id: %d %s", a.Status, a.Body)
	}
}

func TestTheTraceOfAnAlertTellsWhichOthersOfTheApplicationHeard(t *testing.T) {
	h := newHarness(t)
	disabled, heard, deaf := h.Endpoint(t, "*"), h.Endpoint(t, "*"), h.Endpoint(t, "order.*")
	h.OfApplication(h.Application(t)).Endpoint(t, "*")
	if got := h.trace(t, disabled.ID, ""); got.Record != nil || len(got.Events) != 0 || got.Events == nil {
		t.Errorf("without events: %+v", got)
	}
	ev := &commerce.WebhookPayload{ID: value.NewID(), Type: commerce.EventEndpointDisabled, ObjectID: disabled.ID} // its payload is no longer kept
	if _, err := h.Table.PutDelivery(t.Context(), &webhook.Delivery{}, webhook.NewDelivery(ev, heard, "", h.Now())); err != nil {
		t.Fatal(err)
	}
	got := h.trace(t, disabled.ID, "")
	if got.Record != nil || len(got.Events) != 1 || got.Events[0].StoredAt != nil {
		t.Fatalf("the trace: %+v", got)
	}
	names := map[value.ID]string{disabled.ID: "disabled", heard.ID: "heard", deaf.ID: "deaf"}
	if outcome := outcomes(got.Events[0], names); fmt.Sprint(outcome) != "map[deaf:NOT_SUBSCRIBED heard:PENDING]" {
		t.Errorf("outcomes: %v", outcome)
	}
	failed := h.Deliveries(t, disabled, 1, nil)[0]
	alert := h.Event(t, fmt.Sprintf(`{"id":%q,"endpointId":%q}`, failed.ID, disabled.ID))
	alert.Type, alert.ObjectID = commerce.EventEventFailed, failed.ID
	if _, err := h.Table.PutDelivery(t.Context(), &webhook.Delivery{}, webhook.NewDelivery(alert, heard, "", h.Now())); err != nil {
		t.Fatal(err)
	}
	if got := h.trace(t, failed.ID, ""); len(got.Events) != 1 || fmt.Sprint(outcomes(got.Events[0], names)) != "map[deaf:NOT_SUBSCRIBED heard:PENDING]" {
		t.Errorf("the trace of an event that FAILED: %+v", got)
	}
}
