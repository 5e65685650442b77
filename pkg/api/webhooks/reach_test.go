package webhooks_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

// lacked are the scopes that a 403 names.
func (a answer) lacked() string {
	var names []string
	details, _ := a.field("details").([]any)
	for _, d := range details {
		names = append(names, d.(map[string]any)["field"].(string))
	}
	return strings.Join(names, " ")
}

// TestASubscriptionTakesTheReadScopesOfItsKinds: else webhooks:write alone would
// read every kind, and by alerts the history, by a receiver of its own.
func TestASubscriptionTakesTheReadScopesOfItsKinds(t *testing.T) {
	h := newHarness(t)
	every := "categories:read customers:read invoices:read orders:read products:read" // all but stock, which * leaves out
	for subscribed, needed := range map[string]string{
		"order.created": "orders:read", "payment.*": "orders:read", "customer.*": "customers:read", "*": every, "stock.*": "stock:read",
		`product.updated","invoice.paid`: "invoices:read products:read",
		`endpoint.*","event.failed`:      "webhooks:read", "event.*": "webhooks:read", "webhook.test": "",
	} {
		managing := auth.Scopes{auth.WebhooksRead, auth.WebhooksWrite}
		if needed == "webhooks:read" {
			managing = managing[1:]
		}
		t.Run(subscribed, func(t *testing.T) {
			path := h.endpoint(t, `{"url":"https://example.com/hook","events":["`+subscribed+`"]}`)
			tag := h.must(t, 200, "GET", path, "").Header.Get("ETag")
			for _, r := range []struct {
				name, method, path, body string
				status                   int
				free                     bool // of read scopes
			}{
				{"create", "POST", "/developers/webhooks/endpoints?applicationId=" + h.App.String(), `{"url":"https://example.com/","events":["` + subscribed + `"]}`, 201, false},
				{"move", "PATCH", path, `{"url":"https://example.com/other"}`, 200, false},
				{"widen", "PATCH", path, `{"events":["webhook.test","` + subscribed + `"]}`, 200, subscribed == "webhook.test"},
				{"settings", "PUT", path + "/delivery", `{"payload":"thin"}`, 200, false},
				{"preview", "POST", path + "/delivery/preview", `{}`, 200, false},
				{"rotate", "POST", path + "/rotate-secret", "", 200, false},
				{"pause", "PATCH", path, `{"description":"d","status":"PAUSED","url":"https://example.com/hook"}`, 200, true},
				{"test", "POST", path + "/test", "", 202, true},
				{"delete", "DELETE", path, "", 204, true},
			} {
				if subscribed == "webhook.test" && r.name == "widen" {
					continue // it would name the type twice
				}
				got := h.asMachine(t, h.App, managing, r.method, r.path, r.body)
				if r.free || needed == "" {
					if got.Status != r.status {
						t.Errorf("%s: %d %s, want %d", r.name, got.Status, got.Body, r.status)
					}
					continue
				}
				if got.Status != 403 || got.text("code") != "insufficient_scope" || got.lacked() != needed {
					t.Errorf("%s: %d %s, want 403 for %s", r.name, got.Status, got.Body, needed)
				}
				if now := h.must(t, 200, "GET", path, ""); now.Header.Get("ETag") != tag {
					t.Errorf("%s: changed the endpoint to %s", r.name, now.Body)
				}
				given := slices.Concat(managing, auth.ParseScopes(needed))
				if r.name == "create" {
					if got := h.asMachine(t, h.App, given, r.method, r.path, r.body); got.Status != r.status {
						t.Errorf("%s with %s: %d %s, want %d", r.name, needed, got.Status, got.Body, r.status)
					}
				}
			}
		})
	}
}

// TestAMovedEndpointTakesNothingAlong is about a subscription that others narrowed:
// what it got before may be sent again, to its new url.
func TestAMovedEndpointTakesNothingAlong(t *testing.T) {
	h := newHarness(t)
	e := h.Endpoint(t, "order.*")
	path := "/developers/webhooks/endpoints/" + e.ID.String()
	const move = `{"url":"https://example.com/other"}`
	narrow := func(body string) answer { return h.asMachine(t, h.App, machineScopes(), "PATCH", path, body) }
	h.must(t, 202, "POST", path+"/test", `{"type":"customer.created"}`)
	h.dispatch(t, nil, h.order(t, nil, ""), e)
	if got := narrow(`{"url":"https://example.com/first"}`); got.Status != 200 {
		t.Errorf("orders and a test alone: %d %s, want 200", got.Status, got.Body)
	}
	customer := h.Put(t, commerce.KindCustomer, nil, `{"id":"`+value.NewID().String()+`"}`, nil)
	h.dispatch(t, nil, customer, e)
	if got := narrow(move); got.Status != 403 || got.lacked() != "customers:read" {
		t.Errorf("with a customer: %d %s, want 403 for customers:read", got.Status, got.Body)
	}
	h.must(t, 200, "PATCH", path, `{"events":["customer.*"]}`)
	if got := narrow(`{"events":["order.*"]}`); got.Status != 403 || got.lacked() != "customers:read" {
		t.Errorf("instead of customers: %d %s, want 403 for customers:read", got.Status, got.Body)
	}
	h.must(t, 200, "PATCH", path, move)
}

// TestRecordsOfTheHistoryTakeTheirReadScope: the row stays, and what the record
// held is neither in it nor in a trace.
func TestRecordsOfTheHistoryTakeTheirReadScope(t *testing.T) {
	h := newHarness(t)
	e := h.Endpoint(t, "*")
	order := h.order(t, nil, "")
	event := h.dispatch(t, nil, order, e)[0]
	id := webhook.DeliveryID(event, e.ID)
	x := webhook.Exchange{
		URL: e.URL, Signature: "v1,s", Status: http.StatusServiceUnavailable, Header: http.Header{"X-Echo": {"too"}}, Body: []byte("an echo"),
	}
	h.ChangeDelivery(t, id, func(d *webhook.Delivery) *webhook.Delivery {
		return d.Record(webhook.Outcome{Attempt: x.Keep(h.Now(), 0), Result: webhook.AttemptRefused}, "m", 3, 0, h.Now())
	})
	row, trace := "/developers/webhooks/events/"+id.String(), tracePath(order.ID)
	for _, tc := range []struct {
		scopes auth.Scopes
		reads  bool
	}{
		{auth.Scopes{auth.WebhooksRead, auth.WebhooksWrite, auth.CustomersRead}, false},
		{machineScopes(), true},
	} {
		do := func(method, path string) answer { return h.asMachine(t, h.App, tc.scopes, method, path, "") }
		got := do("GET", row)
		attempts, _ := got.field("attempts").([]any)
		if got.Status != 200 || len(attempts) != 1 || got.text("type") != "order.created" {
			t.Fatalf("%s: %d %s, want the row", tc.scopes, got.Status, got.Body)
		}
		for _, name := range []string{"request", "responseHeaders", "responseBody"} {
			if text := attempts[0].(map[string]any)[name]; (got.field("payload") != nil) != tc.reads || (text != nil) != tc.reads {
				t.Errorf("%s: payload %v, %s %v, shown: want %t", tc.scopes, got.field("payload"), name, text, tc.reads)
			}
		}
		list := do("GET", "/developers/webhooks/events")
		if !slices.Contains(list.ids(), id.String()) {
			t.Errorf("%s: the list lacks the row: %s", tc.scopes, list.Body)
		}
		for _, shown := range []answer{list, got} {
			if strings.Contains(shown.Body, order.ID.String()) != tc.reads {
				t.Errorf("%s: names the record %s, want %t: %s", tc.scopes, order.ID, tc.reads, shown.Body)
			}
		}
		absent := do("GET", tracePath(value.NewID()))
		if got := do("GET", trace); tc.reads && got.Status != 200 || !tc.reads && (got.Status != 404 || got.Body != absent.Body) {
			t.Errorf("%s: the trace: %d %s, that of an absent record %s", tc.scopes, got.Status, got.Body, absent.Body)
		}
		again := do("POST", row+"/redeliver")
		if again.Status != 202 && again.Status != 409 || (again.field("payload") != nil) != (tc.reads && again.Status == 202) {
			t.Errorf("%s: redelivered: %d %s", tc.scopes, again.Status, again.Body)
		}
	}
}
