package api_test

import (
	"bytes"
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
)

// trail is the entries about credentials in a log of JSON.
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

// serveAudited makes a request to an operation whose changes the audit trail has.
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

func TestTheLogHasRefusedCredentials(t *testing.T) {
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
					"level": "INFO", "msg": "audit", "action": "credential.refused",
					"path": "/developers/widgets/{id}", "sourceAddress": "203.0.113.9",
				} {
					test.want[name] = v
				}
				want = append(want, test.want)
			}
			if diff := cmp.Diff(want, trail(t, &log)); diff != "" {
				t.Errorf("the log (-want +got):\n%s", diff)
			}
		})
	}
}
