package webhooks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

const orders = `{"url":"https://example.com/hook","events":["order.*"],"retryCount":2,"timeoutSeconds":3}`

func TestDeliverySettingsAreReadAsTheyWereSet(t *testing.T) {
	h := newHarness(t)
	endpoint := h.endpoint(t, orders)
	path := endpoint + "/delivery"
	const untouched = `{"filter":null,"changed":null,"fields":null,"payload":"full","headers":{},"retryCount":2,"timeoutSeconds":3}`
	read := h.must(t, http.StatusOK, "GET", path, "")
	if read.Body != untouched {
		t.Errorf("of a new endpoint: %s", read.Body)
	}
	const body = `{"filter": {"object": {"total": [{"numeric": [">", 10.50]}]}}, "changed": ["status"], "fields": ["total", "status"],
		"headers": {"Authorization": "Bearer topsecret"}, "retryCount": 4, "timeoutSeconds": 9}`
	const shown = `{"filter":{"object":{"total":[{"numeric":[">",10.50]}]}},"changed":["status"],"fields":["total","status"],"payload":"full",` +
		`"headers":{"Authorization":"****"},"retryCount":4,"timeoutSeconds":9}`
	h.Leaks.Made("Bearer topsecret")
	set := h.must(t, http.StatusOK, "PUT", path, body, "If-Match", read.Header.Get("ETag"))
	again := h.must(t, http.StatusOK, "GET", path, "")
	if set.Body != shown || again.Body != shown || set.Header.Get("ETag") != again.Header.Get("ETag") || set.Header.Get("ETag") == read.Header.Get("ETag") {
		t.Errorf("set %s %s, read %s %s, want %s", set.Body, set.Header, again.Body, again.Header, shown)
	}
	h.must(t, http.StatusNotModified, "GET", path, "", "If-None-Match", set.Header.Get("ETag"))
	h.must(t, http.StatusPreconditionFailed, "PUT", path, body, "If-Match", read.Header.Get("ETag"))
	if e := h.must(t, http.StatusOK, "GET", endpoint, ""); e.field("retryCount") != 4.0 || e.field("timeoutSeconds") != 9.0 {
		t.Errorf("the endpoint: %s", e.Body)
	}
	if kept := h.must(t, http.StatusOK, "PUT", path, shown); kept.Header.Get("ETag") != set.Header.Get("ETag") {
		t.Errorf("what was shown, sent again: %s", kept.Header)
	}
	defaults := h.must(t, http.StatusOK, "PUT", path, `{}`)
	if want := strings.NewReplacer(`"retryCount":2,"timeoutSeconds":3`, `"retryCount":8,"timeoutSeconds":15`).Replace(untouched); defaults.Body != want {
		t.Errorf("an empty body: %s, want %s", defaults.Body, want)
	}
	h.must(t, http.StatusBadRequest, "PATCH", endpoint, `{"retryCount":3}`)
	for _, target := range [][2]string{{"PUT", path}, {"POST", path + "/preview"}} {
		const want = `"field":"filter.object.colour[0]","in":"body","code":"unknown"`
		if got := h.must(t, http.StatusBadRequest, target[0], target[1], `{"filter":{"object":{"colour":["x"]}}}`); !strings.Contains(got.Body, want) {
			t.Errorf("%s: got %s, want %s in it", target, got.Body, want)
		}
	}
}

// TestAnotherURLGetsNoneOfTheHeaders: else a caller who is shown **** would read
// a header at a receiver of his own.
func TestAnotherURLGetsNoneOfTheHeaders(t *testing.T) {
	h := newHarness(t)
	alerts := h.alertsPath()
	alert := "/developers/webhooks/endpoints/" + h.must(t, 200, "PUT", alerts, `{"url":"https://example.com/hook"}`).text("endpointId")
	endpoint := h.endpoint(t, orders)
	for _, tc := range []struct{ endpoint, method, path, body, want string }{
		{endpoint, "PATCH", endpoint, `{"url":"https://example.com/hook","description":"d","status":"PAUSED"}`, `"headers":{"Authorization":"****"}`},
		{endpoint, "PATCH", endpoint, `{"url":"https://example.com/other"}`, `"headers":{}`},
		{alert, "PUT", alerts, `{"url":"https://example.com/hook"}`, `"headers":{"Authorization":"****"}`},
		{alert, "PUT", alerts, `{"url":"https://example.com/other"}`, `"headers":{}`},
	} {
		t.Run(tc.method+" "+tc.body, func(t *testing.T) {
			h.must(t, 200, "PUT", tc.endpoint+"/delivery", `{"headers":{"Authorization":"Bearer topsecret"}}`)
			h.must(t, 200, tc.method, tc.path, tc.body)
			if got := h.must(t, 200, "GET", tc.endpoint+"/delivery", ""); !strings.Contains(got.Body, tc.want) {
				t.Errorf("got %s, want %s", got.Body, tc.want)
			}
		})
	}
}

// past stores n events of orders with totals from 1, for the endpoint.
func (h *harness) past(t *testing.T, e *webhook.Endpoint, n int) []*commerce.WebhookPayload {
	t.Helper()
	all := make([]*commerce.WebhookPayload, n)
	for i := range all {
		all[i] = h.Event(t, fmt.Sprintf(`{"id":%q,"total":%d,"updatedAt":"2026-11-22T00:00:00.000Z"}`, value.NewID(), i+1))
		d := webhook.NewDelivery(all[i], e, "", h.At(0)+value.Time(i))
		if _, err := h.Table.PutDelivery(t.Context(), d.StoredAt(0), d); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestAPreviewTellsWhichOfTheLastEventsPass(t *testing.T) {
	h := newHarness(t)
	path := h.endpoint(t, orders)
	id := value.MustID(path[strings.LastIndexByte(path, '/')+1:])
	other := h.OfApplication(h.Application(t)).Endpoint(t, "*")
	events := append(h.past(t, h.StoredEndpoint(t, id), 3), h.past(t, other, 102)...)
	h.must(t, http.StatusAccepted, "POST", path+"/test", `{"type":"order.created"}`)
	preview := path + "/delivery/preview"
	const body = `{"filter":{"object":{"total":[{"numeric":[">=",90]}]}},"headers":{"X-A":"b"}}`
	got := h.must(t, http.StatusOK, "POST", preview, body)
	data, _ := got.field("data").([]any)
	if len(data) != 100 || got.field("passedCount") != 13.0 {
		t.Fatalf("%d events, %v pass: %s", len(data), got.field("passedCount"), got.Body)
	}
	for i, want := range map[int]string{0: `true <nil>`, 12: `true <nil>`, 13: `false filter: object.total does not match`} {
		event, _ := data[i].(map[string]any)
		sent := events[len(events)-1-i]
		if got := fmt.Sprint(event["passes"], " ", event["reason"]); got != want || event["eventId"] != sent.ID.String() || event["objectId"] != sent.ObjectID.String() {
			t.Errorf("event %d: %v, want %s of %s", i, event, want, sent.ID)
		}
	}
	own := h.asMachine(t, h.App, machineScopes(), "POST", preview, body)
	if data, _ := own.field("data").([]any); own.Status != http.StatusOK || len(data) != 3 {
		t.Errorf("a token of the application sees other events: %d %s", own.Status, own.Body)
	}
	if stored := h.must(t, http.StatusOK, "GET", path+"/delivery", ""); !strings.Contains(stored.Body, `"filter":null`) {
		t.Errorf("a preview is stored: %s", stored.Body)
	}
	h.must(t, http.StatusOK, "PATCH", path, `{"events":["order.deleted"]}`)
	if none := h.must(t, http.StatusOK, "POST", preview, `{}`); none.Body != `{"passedCount":0,"data":[]}` {
		t.Errorf("of types that the endpoint does not subscribe to: %s", none.Body)
	}
}

func TestTheHistoryShowsWhatIsSent(t *testing.T) {
	h := newHarness(t)
	path := h.endpoint(t, orders)
	h.must(t, http.StatusOK, "PUT", path+"/delivery", `{"payload":"thin"}`)
	h.past(t, h.StoredEndpoint(t, value.MustID(path[strings.LastIndexByte(path, '/')+1:])), 1)
	h.must(t, http.StatusOK, "PUT", path+"/delivery", `{}`)
	id := h.AllDeliveries(t)[0].ID.String()
	got := h.must(t, http.StatusOK, "GET", "/developers/webhooks/events/"+id, "")
	object, _ := got.field("payload.data.object").(map[string]any)
	if _, total := object["total"]; len(object) != 2 || total {
		t.Errorf("got %s, want a thin payload", got.Body)
	}
	test := h.must(t, http.StatusAccepted, "POST", path+"/test", "")
	if test.field("payload.data.object.message") == nil {
		t.Errorf("a test is %s", test.Body)
	}
}
