package webhooks_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// asMachine makes a request with a token of the application.
func (h *harness) asMachine(t *testing.T, app value.ID, scopes auth.Scopes, method, path, body string) answer {
	t.Helper()
	server := api.NewServer(h.operations, api.Config{
		Caller: func(*http.Request) api.Caller {
			return api.Caller{RequestID: "request", BaseURL: base, Principal: auth.Principal{
				Kind: auth.KindApplication, OrganizationID: h.Org, ApplicationID: app, Scopes: scopes, RateLimit: 600,
			}}
		},
		Limiter: servicetest.Unlimited{}, Clock: h.Time, Logger: h.Leaks.Logger(),
	})
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

func machineScopes() auth.Scopes {
	return auth.Scopes{auth.OrdersRead, auth.WebhooksRead, auth.WebhooksWrite}
}

func TestAMachineManagesItsApplicationsEndpoints(t *testing.T) {
	h := newHarness(t)
	do := func(status int, method, path, body string) answer {
		t.Helper()
		a := h.asMachine(t, h.App, machineScopes(), method, path, body)
		if a.status != status {
			t.Fatalf("%s %s: %d %s, want %d", method, path, a.status, a.body, status)
		}
		return a
	}
	const endpoints = "/developers/webhooks/endpoints"
	created := do(201, "POST", endpoints+"?applicationId="+h.App.String(), minimal)
	path := endpoints + "/" + created.text("id")
	if created.text("applicationId") != h.App.String() || !strings.HasPrefix(created.text("secret"), "whsec_") {
		t.Errorf("created: got %s", created.body)
	}
	do(400, "POST", endpoints, minimal)
	do(200, "GET", path, "")
	do(200, "PATCH", path+"?applicationId="+h.App.String(), `{"description":"mine"}`)
	do(200, "POST", path+"/rotate-secret", "")
	test := do(202, "POST", path+"/test", "")
	do(200, "GET", "/developers/webhooks/events/"+test.text("id"), "")
	do(200, "GET", path+"/stats", "")
	recovery := do(202, "POST", path+"/recover", "")
	do(200, "GET", path+"/recoveries/"+recovery.text("id"), "")
	do(200, "GET", "/developers/webhooks/event-types", "")
	for _, list := range []string{endpoints, "/developers/webhooks/events"} {
		if got := do(200, "GET", list, ""); len(got.ids()) != 1 {
			t.Errorf("%s: got %s, want one entry", list, got.body)
		}
	}
	do(204, "DELETE", path, "")
}

var unstable = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func TestAnotherApplicationsEndpointIsAsGoodAsAbsentForAMachine(t *testing.T) {
	h := newHarness(t)
	theirs := h.OfApplication(h.Application(t))
	their := &harness{Service: theirs, server: h.server}
	endpoint := their.endpoint(t, minimal)
	event := their.must(t, 202, "POST", endpoint+"/test", "").text("id")
	recovery := their.must(t, 202, "POST", endpoint+"/recover", "").text("id")
	before := their.must(t, 200, "GET", endpoint, "").body
	absent := "/developers/webhooks/endpoints/" + value.NewID().String()
	create := "/developers/webhooks/endpoints?applicationId="
	for _, r := range []struct{ method, path, absent, body string }{
		{"POST", create + theirs.App.String(), create + value.NewID().String(), minimal},
		{"GET", endpoint, absent, ""},
		{"GET", endpoint + "?applicationId=" + theirs.App.String(), absent + "?applicationId=" + theirs.App.String(), ""},
		{"GET", endpoint + "?applicationId=" + h.App.String(), absent + "?applicationId=" + h.App.String(), ""},
		{"PATCH", endpoint, absent, `{"description":"taken over"}`},
		{"DELETE", endpoint, absent, ""},
		{"POST", endpoint + "/rotate-secret", absent + "/rotate-secret", ""},
		{"POST", endpoint + "/test", absent + "/test", ""},
		{"POST", endpoint + "/recover", absent + "/recover", ""},
		{"GET", endpoint + "/recoveries/" + recovery, absent + "/recoveries/" + recovery, ""},
		{"GET", endpoint + "/stats", absent + "/stats", ""},
		{"GET", "/developers/webhooks/events/" + event, "/developers/webhooks/events/" + value.NewID().String(), ""},
		{"POST", "/developers/webhooks/events/" + event + "/redeliver", "/developers/webhooks/events/" + value.NewID().String() + "/redeliver", ""},
	} {
		t.Run(fmt.Sprintf("%v_%v", r.method, unstable.ReplaceAllString(r.path, "ID")), func(t *testing.T) {
			got := h.asMachine(t, h.App, machineScopes(), r.method, r.path, r.body)
			want := h.asMachine(t, h.App, machineScopes(), r.method, r.absent, r.body)
			if want.status != 404 || got.status != 404 || got.body != want.body {
				t.Errorf("theirs: %d %s, an absent one: %d %s; want 404 and the same", got.status, got.body, want.status, want.body)
			}
		})
	}
	for _, list := range []string{
		"endpoints", "endpoints?applicationId=" + theirs.App.String(), "events", "events?applicationId=" + theirs.App.String(), "events?eventId=" + event,
	} {
		t.Run(unstable.ReplaceAllString(list, "ID"), func(t *testing.T) {
			got := h.asMachine(t, h.App, machineScopes(), "GET", "/developers/webhooks/"+list, "")
			if got.status != 200 || len(got.ids()) != 0 || got.field("meta.total") != float64(0) {
				t.Errorf("got %d %s, want an empty page", got.status, got.body)
			}
		})
	}
	if after := their.must(t, 200, "GET", endpoint, "").body; after != before {
		t.Errorf("their endpoint: got %s, want %s as before", after, before)
	}
}

func TestAMachineNeedsTheScope(t *testing.T) {
	h := newHarness(t)
	reading := auth.Scopes{auth.WebhooksRead}
	for _, r := range []struct {
		scopes       auth.Scopes
		method, path string
		status       int
	}{
		{reading, "GET", "/developers/webhooks/endpoints", 200},
		{reading, "POST", "/developers/webhooks/endpoints?applicationId=" + h.App.String(), 403},
		{auth.ReadScopes(), "GET", "/developers/webhooks/endpoints", 403},
		{auth.Scopes{auth.WebhooksWrite}, "GET", "/developers/webhooks/events", 403},
	} {
		t.Run(fmt.Sprintf("%v_%v_%v", r.scopes, r.method, r.status), func(t *testing.T) {
			body := ""
			if r.method == http.MethodPost {
				body = minimal
			}
			if got := h.asMachine(t, h.App, r.scopes, r.method, r.path, body); got.status != r.status {
				t.Errorf("got %d %s, want %d", got.status, got.body, r.status)
			}
		})
	}
}

// TestAMachinesSuspensionActsWithinFiveSeconds is about a principal that the
// gateway has from before.
func TestAMachinesSuspensionActsWithinFiveSeconds(t *testing.T) {
	h := newHarness(t)
	server := api.NewServer(h.operations, api.Config{
		Caller: func(*http.Request) api.Caller {
			return api.Caller{RequestID: "request", BaseURL: base, Principal: auth.Principal{
				Kind: auth.KindApplication, OrganizationID: h.Org, ApplicationID: h.App, Scopes: append(machineScopes(), auth.OrdersRead), RateLimit: 1,
			}}
		},
		Limiter: servicetest.Unlimited{}, Refresh: auth.NewApplications(h.Table, h.Time).Refresh, Clock: h.Time, Logger: h.Leaks.Logger(),
	})
	status := func() (int, string) {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/developers/webhooks/endpoints", nil))
		return w.Code, w.Body.String()
	}
	if got, body := status(); got != 403 {
		t.Errorf("a scope that nobody granted: got %d %s, want 403", got, body)
	}
	h.grant(t, "webhooks:read")
	h.Pass(4 * time.Second)
	if got, body := status(); got != 200 {
		t.Errorf("granted: got %d %s, want 200", got, body)
	}
	h.Suspend(t, h.App)
	h.Pass(4 * time.Second)
	if got, body := status(); got != 401 || !strings.Contains(body, `"application_suspended"`) {
		t.Errorf("suspended: got %d %s, want 401", got, body)
	}
}
