package webhooks_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
)

// TestForeign asks for what another organization or another application has:
// the answer is that for an id of nothing.
func TestForeign(t *testing.T) {
	h := newHarness(t)
	item, alerts := h.endpoint(t, minimal), h.alertsPath()
	h.must(t, http.StatusOK, "PUT", alerts, alertURL)
	delivery := h.event(t, item, "")
	event := "/developers/webhooks/events/" + delivery.ID.String()
	recovery := h.must(t, http.StatusAccepted, "POST", item+"/recover", "").text("id")
	before := h.must(t, http.StatusOK, "GET", item, "").Body
	stranger, other := value.NewID(), h.Application(t)
	id, absent := strings.TrimPrefix(item, endpoints+"/"), value.NewID().String()
	missing := strings.NewReplacer(h.App.String(), absent, id, absent, delivery.ID.String(), absent)
	for name, r := range map[string]struct{ method, path, body string }{
		"create":         {"POST", endpoints + "?applicationId=" + h.App.String(), minimal},
		"read":           {"GET", item, ""},
		"change":         {"PATCH", item, `{"description":"taken over"}`},
		"delete":         {"DELETE", item, ""},
		"test":           {"POST", item + "/test", `{}`},
		"recover":        {"POST", item + "/recover", `{"since":"2020-01-01"}`},
		"recovery":       {"GET", item + "/recoveries/" + recovery, ""},
		"rotate":         {"POST", item + "/rotate-secret", `{"overlapHours":0}`},
		"stats":          {"GET", item + "/stats", ""},
		"settings":       {"GET", item + "/delivery", ""},
		"set settings":   {"PUT", item + "/delivery", `{}`},
		"preview":        {"POST", item + "/delivery/preview", `{}`},
		"event":          {"GET", event, ""},
		"redeliver":      {"POST", event + "/redeliver", ""},
		"alert URL":      {"GET", alerts, ""},
		"set alert URL":  {"PUT", alerts, alertURL},
		"drop alert URL": {"DELETE", alerts, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := h.do(t, r.method, missing.Replace(r.path), r.body)
			got := map[string]answer{
				"another organization":        h.as(t, stranger, r.method, r.path, r.body),
				"another application's token": h.asMachine(t, other, machineScopes(), r.method, r.path, r.body),
			}
			if strings.HasPrefix(r.path, item) {
				got["another application by query"] = h.do(t, r.method, r.path+"?applicationId="+other.String(), r.body)
				got["another application's token that names the owner"] = h.asMachine(t, other, machineScopes(), r.method, r.path+"?applicationId="+h.App.String(), r.body)
			}
			for who, a := range got {
				if a.Status != http.StatusNotFound || a.Status != want.Status || a.Body != want.Body {
					t.Errorf("%s: %d %s; an absent one is %d %s", who, a.Status, a.Body, want.Status, want.Body)
				}
			}
		})
	}
	for _, list := range []string{"endpoints", "endpoints?applicationId=" + h.App.String(), "events", "events?applicationId=" + h.App.String(), "events?eventId=" + delivery.EventID.String()} {
		for who, a := range map[string]answer{
			"another organization":        h.as(t, stranger, "GET", "/developers/webhooks/"+list, ""),
			"another application's token": h.asMachine(t, other, machineScopes(), "GET", "/developers/webhooks/"+list, ""),
		} {
			if a.Status != http.StatusOK || a.field("meta.total") != 0.0 {
				t.Errorf("%s, %s: %d %s, want an empty page", list, who, a.Status, a.Body)
			}
		}
	}
	if diff := cmp.Diff(before, h.must(t, http.StatusOK, "GET", item+"?applicationId="+strings.ToUpper(h.App.String()), "").Body); diff != "" {
		t.Errorf("the endpoint has changed (-before +after):\n%s", diff)
	}
}
