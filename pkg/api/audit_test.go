package api_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
)

// trail is the entries of the audit trail in a log of JSON.
func trail(t *testing.T, log *bytes.Buffer) (entries []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry["msg"] == audit.Message {
			delete(entry, "time")
			entries = append(entries, entry)
		}
	}
	return entries
}

func TestTheTrailHasWhatHappenedAndNothingElse(t *testing.T) {
	const widget = "018f0000-0000-7000-8000-0000000000b1"
	u := user()
	actor := map[string]any{"kind": "user", "id": u.UserID.String()}
	entry := func(outcome string) map[string]any {
		return map[string]any{
			"level": "INFO", "msg": "audit", "action": "endpoint.updated", "outcome": outcome, "organizationId": organization.String(),
			"actor": actor, "target": map[string]any{"kind": "endpoint", "id": widget}, "path": "/developers/widgets/" + widget, "sourceAddress": "203.0.113.9",
		}
	}
	answer := func(err error, changed ...bool) func(*api.Request) (*api.Response, error) {
		return func(r *api.Request) (*api.Response, error) {
			for _, yes := range changed {
				if got := r.Changed(yes); got != yes {
					t.Errorf("Changed(%t): got %t", yes, got)
				}
			}
			return api.Answer("done", err)
		}
	}
	for name, test := range map[string]struct {
		handle func(*api.Request) (*api.Response, error)
		want   string // the outcome
	}{
		"done by a handler that does not tell":   {answer(nil), "done"},
		"changed":                                {answer(nil, true), "done"},
		"changed at the second try":              {answer(nil, false, true), "done"},
		"nothing to change":                      {answer(nil, false), ""},
		"nothing to change at two tries":         {answer(nil, false, false), ""},
		"nothing left to change at a second try": {answer(nil, true, false), "unknown"},
		"and at a third":                         {answer(nil, true, false, false), "unknown"},
		"absent":                                 {answer(fault.Missing("widget")), ""},
		"refused by its state":                   {answer(fault.New(fault.Conflict, fault.CodeConflict, "no"), true), ""},
		"the table is too busy":                  {answer(fault.Busy(errors.New("throttled")), true), "unknown"},
		"an error on our side":                   {answer(errors.New("secret inside")), "unknown"},
		"a panic":                                {func(*api.Request) (*api.Response, error) { panic("secret inside") }, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			serveAudited(t, &log, test.handle, &u, "/developers/widgets/"+strings.ToUpper(widget))
			var want []map[string]any
			if test.want != "" {
				want = append(want, entry(test.want))
			}
			if diff := cmp.Diff(want, trail(t, &log)); diff != "" {
				t.Errorf("the trail (-want +got):\n%s", diff)
			}
		})
	}
}

// serveAudited makes a request to an operation that the trail gets.
func serveAudited(t *testing.T, log *bytes.Buffer, handle func(*api.Request) (*api.Response, error), p *auth.Principal, path string) {
	t.Helper()
	cfg := config(p, allowAll{})
	caller := cfg.Caller
	cfg.Caller = func(r *http.Request) api.Caller {
		c := caller(r)
		c.SourceAddress = "203.0.113.9"
		return c
	}
	cfg.Logger = slog.New(slog.NewJSONHandler(log, nil))
	server := api.NewServer([]api.Operation{{
		ID: "change", Method: "POST", Path: "/developers/widgets/{id}", Access: api.Developer, Scope: auth.DevelopersWrite,
		Audit: audit.EndpointUpdated, Handle: handle,
	}}, cfg)
	server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", path, nil))
}

func TestTheTrailHasRefusedCredentials(t *testing.T) {
	const path = "/developers/widgets/018f0000-0000-7000-8000-0000000000b1"
	u, viewer, expired := user(), user(), user()
	viewer.Scopes = nil
	expired.ExpiresAt = now
	for name, test := range map[string]struct {
		as   *auth.Principal
		path string
		want map[string]any
	}{
		"without a principal": {nil, path, map[string]any{"code": "unauthenticated"}},
		"expired": {&expired, path, map[string]any{
			"code": "token_expired", "organizationId": organization.String(), "actor": map[string]any{"kind": "user", "id": expired.UserID.String()},
		}},
		"good, without the scope":                  {&viewer, path, nil},
		"good, for no such path":                   {nil, "/developers/widget", nil},
		"good, with a parameter that is not known": {&u, path + "?x=y", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			serveAudited(t, &log, func(*api.Request) (*api.Response, error) { return api.NoContent() }, test.as, test.path)
			var want []map[string]any
			if test.want != nil {
				for name, v := range map[string]any{
					"level": "INFO", "msg": "audit", "action": "credential.refused", "outcome": "refused",
					"path": "/developers/widgets/{id}", "sourceAddress": "203.0.113.9",
				} {
					test.want[name] = v
				}
				want = append(want, test.want)
			}
			if diff := cmp.Diff(want, trail(t, &log)); diff != "" {
				t.Errorf("the trail (-want +got):\n%s", diff)
			}
		})
	}
}
