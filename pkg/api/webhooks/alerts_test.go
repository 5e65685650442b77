package webhooks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func (h *harness) alertsPath() string {
	return "/developers/applications/" + h.App.String() + "/alerts"
}

const alertURL = `{"url":"https://example.com/alerts"}`

func TestAlertURLShowsItsSecretOnceAndIsInNoList(t *testing.T) {
	h := newHarness(t)
	h.must(t, http.StatusNotFound, "GET", h.alertsPath(), "")
	h.must(t, http.StatusNotFound, "DELETE", h.alertsPath(), "")
	made := h.must(t, http.StatusOK, "PUT", h.alertsPath(), alertURL)
	secret := made.text("secret")
	if _, err := webhook.SecretKey(secret); err != nil || made.text("url") != "https://example.com/alerts" || made.text("status") != "ACTIVE" {
		t.Errorf("made: %s", made.Body)
	}
	masked := "whsec_****" + secret[len(secret)-4:]
	for _, a := range []answer{
		h.must(t, http.StatusOK, "PUT", h.alertsPath(), alertURL),
		h.must(t, http.StatusOK, "GET", h.alertsPath(), ""),
	} {
		if a.text("secret") != masked || a.text("endpointId") != made.text("endpointId") || a.Header.Get("ETag") != made.Header.Get("ETag") {
			t.Errorf("again: %s", a.Body)
		}
	}
	moved := h.must(t, http.StatusOK, "PUT", h.alertsPath(), `{"url":"https://example.com/other"}`)
	if moved.text("url") != "https://example.com/other" || moved.text("endpointId") != made.text("endpointId") {
		t.Errorf("moved: %s", moved.Body)
	}
	if list := h.must(t, http.StatusOK, "GET", "/developers/webhooks/endpoints", ""); list.field("meta.total") != 0.0 {
		t.Errorf("listed: %s", list.Body)
	}
}

func TestAlertURLIsAnEndpointWhoseEventsAreFixed(t *testing.T) {
	h := newHarness(t)
	id := h.must(t, http.StatusOK, "PUT", h.alertsPath(), alertURL).text("endpointId")
	item := "/developers/webhooks/endpoints/" + id
	if got := strings.Join(h.stored(t, item).SubscribedEvents, " "); got != "endpoint.* event.*" {
		t.Errorf("subscribes to %s", got)
	}
	h.must(t, http.StatusBadRequest, "PATCH", item, `{"events":["order.*"]}`)
	h.must(t, http.StatusAccepted, "POST", item+"/test", `{"type":"endpoint.failing"}`)
	h.ChangeEndpoint(t, value.MustID(id), func(e *webhook.Endpoint) { *e = *e.Disable("answered 410 Gone", h.Now()) })
	if a := h.must(t, http.StatusOK, "GET", h.alertsPath(), ""); a.text("status") != "DISABLED" {
		t.Errorf("disabled: %s", a.Body)
	}
	if a := h.must(t, http.StatusOK, "PUT", h.alertsPath(), alertURL); a.text("status") != "ACTIVE" {
		t.Errorf("set again: %s", a.Body)
	}
}

func TestAlertURLIsRemovedAndMadeAnew(t *testing.T) {
	h := newHarness(t)
	made := h.must(t, http.StatusOK, "PUT", h.alertsPath(), alertURL)
	h.must(t, http.StatusPreconditionFailed, "DELETE", h.alertsPath(), "", "If-Match", `"other"`)
	h.must(t, http.StatusNoContent, "DELETE", h.alertsPath(), "", "If-Match", made.Header.Get("ETag"))
	h.must(t, http.StatusNotFound, "GET", h.alertsPath(), "")
	again := h.must(t, http.StatusOK, "PUT", h.alertsPath(), alertURL)
	if again.text("endpointId") == made.text("endpointId") {
		t.Error("the removed endpoint came back")
	}
	h.must(t, http.StatusNoContent, "DELETE", "/developers/webhooks/endpoints/"+again.text("endpointId"), "")
	h.must(t, http.StatusNotFound, "GET", h.alertsPath(), "")
	if _, err := h.Table.DeleteApplication(t.Context(), h.Org, h.App, func(*account.Application) error { return nil }); err != nil {
		t.Fatal(err)
	}
	h.must(t, http.StatusNotFound, "PUT", h.alertsPath(), alertURL)
}

// TestAlertURLTakesAPrecondition: of two people who set it at a time, the second
// hears of the first. A tag cannot be that of a URL which is not there.
func TestAlertURLTakesAPrecondition(t *testing.T) {
	h := newHarness(t)
	h.must(t, http.StatusPreconditionFailed, "PUT", h.alertsPath(), alertURL, "If-Match", "*")
	h.must(t, http.StatusOK, "PUT", h.alertsPath(), alertURL)
	read := h.must(t, http.StatusOK, "GET", h.alertsPath(), "").Header.Get("ETag")
	h.Pass(time.Second)
	const other = `{"url":"https://example.com/other"}`
	h.must(t, http.StatusOK, "PUT", h.alertsPath(), other, "If-Match", read)
	h.must(t, http.StatusPreconditionFailed, "PUT", h.alertsPath(), alertURL, "If-Match", read)
	if now := h.must(t, http.StatusOK, "GET", h.alertsPath(), ""); now.text("url") != "https://example.com/other" || now.Header.Get("ETag") == read {
		t.Errorf("got %s with the tag %s, want the other URL with a new one", now.Body, now.Header.Get("ETag"))
	}
}

func TestAlertURLMustBeOneThatDeliveriesReach(t *testing.T) {
	h := newHarness(t)
	queue := func(org value.ID) string {
		return `{"url":"arn:aws:sqs:eu-central-1:222222222222:alerts-` + org.String() + `"}`
	}
	for body, field := range map[string]string{
		`{}`: "url", `{"url":null}`: "url", `{"url":"http://example.com/"}`: "url", `{"url":"https://localhost/"}`: "url",
		queue(value.NewID()): "url", queue(value.ID{}): "url",
		`{"url":"https://example.com/","events":["*"]}`:                   "events",
		`{"url":"https://example.com/` + strings.Repeat("x", 2029) + `"}`: "url",
	} {
		a := h.must(t, http.StatusBadRequest, "PUT", h.alertsPath(), body)
		if details, _ := a.field("details").([]any); len(details) != 1 || details[0].(map[string]any)["field"] != field {
			t.Errorf("%.60s: %s, want the field %s", body, a.Body, field)
		}
	}
	h.must(t, http.StatusOK, "PUT", h.alertsPath(), `{"url":"https://example.com/`+strings.Repeat("x", 2028)+`"}`)
	h.must(t, http.StatusOK, "PUT", h.alertsPath(), queue(h.Org))
}

func TestOnlyOneAlertURLIsMadeAtATime(t *testing.T) {
	h := newHarness(t)
	for i := range 2 {
		dto := webhook.SetAlertsDto{URL: new("https://example.com/alerts")}
		e, secret := webhook.NewAlertURL(h.Org, h.App, dto, h.Box.Seal, h.Now())
		h.Leaks.Made(secret)
		if err := h.Table.CreateEndpoint(t.Context(), e); (err != nil) != (i > 0) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if all, err := h.Table.Endpoints(t.Context(), h.Org); err != nil || len(all) != 1 {
		t.Errorf("%d endpoints, %v", len(all), err)
	}
}

// TestAPortalSessionKnowsOfNoAlertURL: who has a session is a customer of the
// application's owner, whose alerts go to that URL.
func TestAPortalSessionKnowsOfNoAlertURL(t *testing.T) {
	h := newHarness(t)
	session := func(method, path, body string) answer {
		return h.as(t, h.Org, method, path, body,
			"Application", h.App.String(), "Scopes", "webhooks:read webhooks:write", "Event-Scopes", auth.ReadScopes().String())
	}
	own := h.endpoint(t, `{"url":"https://example.com/hook","events":["*"]}`)
	alerts := h.must(t, http.StatusOK, "PUT", h.alertsPath(), alertURL).text("endpointId")
	item := "/developers/webhooks/endpoints/" + alerts
	theirs := h.must(t, http.StatusAccepted, "POST", item+"/test", `{"type":"order.created"}`).text("id")
	h.must(t, http.StatusAccepted, "POST", item+"/test", `{"type":"endpoint.failing"}`)
	const history = "/developers/webhooks/events"
	kept := h.must(t, http.StatusAccepted, "POST", own+"/test", `{"type":"endpoint.failing"}`).text("id")
	unknown := func() {
		t.Helper()
		for _, r := range [][3]string{
			{"GET", history + "/" + theirs, ""},
			{"POST", history + "/" + theirs + "/redeliver", ""},
			{"GET", item, ""},
			{"PATCH", item, `{"url":"https://example.com/mine"}`},
			{"DELETE", item, ""},
			{"POST", item + "/rotate-secret", ""},
			{"POST", item + "/test", ""},
			{"POST", item + "/recover", "{}"},
			{"GET", item + "/stats", ""},
			{"GET", item + "/delivery", ""},
			{"PUT", item + "/delivery", `{"payload":"thin"}`},
			{"GET", "/developers/webhooks/trace/" + alerts, ""},
		} {
			if got := session(r[0], r[1], r[2]); got.Status != http.StatusNotFound {
				t.Errorf("%s %s: got %d %s, want 404", r[0], r[1], got.Status, got.Body)
			}
		}
		if got := session("GET", history, "").ids(); len(got) != 1 || got[0] != kept {
			t.Errorf("history %v, want %s alone", got, kept)
		}
	}
	unknown()
	if got := session("GET", history+"/"+kept, ""); got.Status != http.StatusOK {
		t.Errorf("its own alert: got %d %s", got.Status, got.Body)
	}
	h.must(t, http.StatusNoContent, "DELETE", h.alertsPath(), "")
	unknown()
}
