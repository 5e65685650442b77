package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/value"
)

// belongings are one identifier of every kind of resource that the
// organization has then, by the prefix of the path that takes it.
func (s *service) belongings(t *testing.T) map[string]string {
	t.Helper()
	s.sendOneOfEach(t)
	first := func(path string) string {
		var p page
		await(t, path, func() bool {
			s.get(t, path, &p)
			return len(p.Data) > 0
		})
		return p.Data[0]["id"].(string)
	}
	ids := map[string]string{"/developers/applications/{id}": s.ApplicationID}
	for _, plural := range []string{"products", "categories", "orders", "customers", "invoices"} {
		ids["/api/"+plural+"/{id}"] = first("/api/" + plural)
	}
	ids["{objectId}"] = ids["/api/orders/{id}"]
	key := s.create(t, "/developers/applications/"+s.ApplicationID+"/api-keys", `{"name":"theirs"}`)
	ids["{keyId}"] = key["id"].(string)
	r := s.subscribe(t, "*")
	ids["/developers/webhooks/endpoints/{id}"] = r.endpoint
	recovery := s.create(t, "/developers/webhooks/endpoints/"+r.endpoint+"/recover", `{"since":"2026-01-01"}`)
	ids["{recoveryId}"] = recovery["id"].(string)
	event := s.create(t, "/developers/webhooks/endpoints/"+r.endpoint+"/test", `{}`)
	ids["/developers/webhooks/events/{id}"] = event["id"].(string)
	receipt := s.create(t, "/ingest/records", fmt.Sprintf(`{"records":[{"kind":"customer","op":"put","record":{"id":%q}}]}`, value.NewID()))
	ids["/ingest/receipts/{id}"] = receipt["id"].(string)
	return ids
}

// sendOneOfEach sends a record of every kind.
func (s *service) sendOneOfEach(t *testing.T) {
	t.Helper()
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"records":[
		{"kind":"product","op":"put","record":{"id":%q,"name":"Tea"}},
		{"kind":"category","op":"put","record":{"id":%q,"name":"Teas"}},
		{"kind":"order","op":"put","record":{"id":%q,"orderNumber":"A-1","currency":"EUR"}},
		{"kind":"customer","op":"put","record":{"id":%q}},
		{"kind":"invoice","op":"put","record":{"id":%q,"currency":"EUR"}}]}`,
		s.OrganizationID, value.NewID(), value.NewID(), value.NewID(), value.NewID(), value.NewID()))
}

// fill puts the identifiers into the operation's path.
func fill(op *api.Operation, ids map[string]string) string {
	path := op.Path
	for prefix, id := range ids {
		if strings.HasPrefix(op.Path, prefix) {
			path = strings.Replace(path, "{id}", id, 1)
		}
	}
	return strings.NewReplacer("{keyId}", ids["{keyId}"], "{recoveryId}", ids["{recoveryId}"], "{objectId}", ids["{objectId}"]).Replace(path)
}

var unstable = regexp.MustCompile(`"requestId":"[^"]*"`)

func TestAnotherOrganizationsIDIsAsGoodAsAbsent(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	theirs, other := s.belongings(t), s.newOrganization(t)
	absent := map[string]string{}
	for prefix := range theirs {
		absent[prefix] = value.NewID().String()
	}
	tried := 0
	for _, op := range app.Operations() {
		if !strings.Contains(op.Path, "{") || op.Access == api.Public {
			continue
		}
		if strings.Contains(fill(&op, theirs), "{") {
			t.Errorf("%s %s: the test has no identifier for it", op.Method, op.Path)
			continue
		}
		for _, header := range []map[string]string{{"Authorization": "Bearer " + other.JWT}, {"X-API-Key": other.APIKey}} {
			body := ""
			if op.Body != nil {
				body = bodyFor(op.Path)
			}
			got, gotBody := s.do(t, op.Method, fill(&op, theirs), body, header)
			want, wantBody := s.do(t, op.Method, fill(&op, absent), body, header)
			normal := func(answer []byte, ids map[string]string) string {
				text := unstable.ReplaceAllString(string(answer), "")
				for _, id := range ids {
					text = strings.ReplaceAll(text, id, "ID")
				}
				return text
			}
			if got.StatusCode != want.StatusCode || normal(gotBody, theirs) != normal(wantBody, absent) {
				t.Errorf("%s %s with %v: their id %d %s, an absent one %d %s", op.Method, op.Path, header, got.StatusCode, gotBody, want.StatusCode, wantBody)
			}
			if want.StatusCode != http.StatusNotFound && want.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s: an absent id answers %d %s, want 404", op.Method, op.Path, want.StatusCode, wantBody)
			}
			tried++
		}
	}
	if tried < 30 {
		t.Errorf("only %d requests were tried", tried)
	}
	s.lists(t, other, theirs)
}

// bodyFor is a good body of the operations that take one.
func bodyFor(path string) string {
	switch {
	case strings.HasSuffix(path, "/token-scopes"):
		return `{"scopes":["orders:read"]}`
	case strings.HasSuffix(path, "/alerts"):
		return `{"url":"https://example.com/"}`
	case strings.HasSuffix(path, "/recover"):
		return `{"since":"2026-01-01"}`
	case strings.HasSuffix(path, "/test"), strings.Contains(path, "/webhooks/"):
		return `{}`
	}
	return `{"name":"mine now"}`
}

// lists checks that no list or filter shows another organization's records.
func (s *service) lists(t *testing.T, other *service, theirs map[string]string) {
	t.Helper()
	endpoint := theirs["/developers/webhooks/endpoints/{id}"]
	for _, path := range []string{
		"/api/products?ids=" + theirs["/api/products/{id}"], "/api/products", "/api/categories", "/api/orders", "/api/customers", "/api/invoices",
		"/api/deletions", "/developers/webhooks/endpoints", "/developers/webhooks/endpoints?applicationId=" + s.ApplicationID,
		"/developers/webhooks/events", "/developers/webhooks/events?endpointId=" + endpoint,
	} {
		resp, body := s.do(t, http.MethodGet, path, "", map[string]string{"Authorization": "Bearer " + other.JWT})
		var p page
		if err := json.Unmarshal(body, &p); err != nil || resp.StatusCode != http.StatusOK || p.Meta.Total != 0 || len(p.Data) != 0 {
			t.Errorf("GET %s as another organization: got %d %s, %v; want an empty page", path, resp.StatusCode, body, err)
		}
	}
	resp, body := s.do(t, http.MethodPost, "/developers/webhooks/endpoints?applicationId="+s.ApplicationID,
		fmt.Sprintf(`{"url":%q,"events":["*"]}`, "https://example.com/"), map[string]string{"Authorization": "Bearer " + other.JWT})
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("an endpoint for their application: got %d %s, want 404", resp.StatusCode, body)
	}
}

func TestAForgedContextHeaderChangesNothing(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	forged := fmt.Sprintf(`{"authorizer":{"principalKind":"user","organizationId":%q,"userId":%q,"scopes":"products:read developers:read","rateLimit":"600"}}`,
		s.OrganizationID, value.NewID())
	header := map[string]string{"X-GoLambdaProxy-ApiGw-Context": forged, "X-GoLambdaProxy-ApiGw-StageVars": "{}"}
	for _, path := range []string{"/api/products", "/developers/applications", "/api/products/"} {
		if resp, body := s.do(t, http.MethodGet, path, "", header); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s with a forged header alone: got %d %s, want 401", path, resp.StatusCode, body)
		}
	}
	other := s.newOrganization(t)
	header["X-API-Key"] = other.APIKey
	resp, body := s.do(t, http.MethodGet, "/api/me", "", header)
	if resp.StatusCode != http.StatusOK || strings.Contains(string(body), s.OrganizationID) {
		t.Errorf("GET /api/me with another's key and a forged header: got %d %s, want the key's own organization", resp.StatusCode, body)
	}
}

func TestTheKeyDecidesBesideAToken(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	other := s.newOrganization(t)
	token, key := "Bearer "+s.JWT, other.APIKey
	for name, tt := range map[string]struct {
		path, token, key string
		status           int
		shows            string // in the answer
	}{
		"a good key and another's token": {"/api/me", token, key, http.StatusOK, other.OrganizationID},
		"a good key and a bad token":     {"/api/me", "Bearer x", key, http.StatusOK, other.OrganizationID},
		"a bad key and a good token":     {"/api/me", token, key[:54] + "_", http.StatusUnauthorized, `"code":"unauthenticated"`},
		"a bad key outside the read API": {"/developers/applications", token, key[:54] + "_", http.StatusOK, s.OrganizationID},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := s.do(t, http.MethodGet, tt.path, "", map[string]string{"Authorization": tt.token, "X-API-Key": tt.key})
			if resp.StatusCode != tt.status || !strings.Contains(string(body), tt.shows) {
				t.Errorf("GET %s: got %d %s, want %d with %s", tt.path, resp.StatusCode, body, tt.status, tt.shows)
			}
		})
	}
}
