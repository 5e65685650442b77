package app_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/template/alarmtest"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

const sourceAddress = "203.0.113.9"

// trail reads the entries about credentials out of a log.
func trail(t testing.TB, log string) (found []node) {
	t.Helper()
	for line := range strings.Lines(log) {
		var entry node
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if entry["msg"] == audit.Message {
			delete(entry, "time")
			found = append(found, entry)
		}
	}
	return found
}

// trailOf makes the request and returns what the audit trail gets of it, whose
// stream comes twice.
func (w *tour) trailOf(s *step) []account.AuditEntry {
	w.t.Helper()
	w.take(s)
	w.writeTrail()
	known := w.trail
	var err error
	w.trail, _, err = w.Table.AuditTrail(w.t.Context(), w.Org, account.AuditFilter{}, value.ID{}, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(w.trail), func(c account.AuditEntry) bool {
		return slices.ContainsFunc(known, func(k account.AuditEntry) bool { return k.ID == c.ID })
	})
}

// writeTrail hands the dispatcher the changes that the audit trail is about, twice.
func (w *tour) writeTrail() {
	w.t.Helper()
	changed := events.DynamoDBEvent{Records: w.StreamRecords(w.t, "app", "key", "cnt", "grt", "src", dynamo.StreamEndpoint)}
	for range 2 {
		if answer, err := w.dispatcher.Handle(w.t.Context(), changed); err != nil || len(answer.BatchItemFailures) > 0 {
			w.t.Fatalf("dispatch: %+v, %v", answer, err)
		}
	}
}

// target is the identifier of what the step makes or changes.
func (w *tour) target(s *step) string {
	for _, name := range []string{s.keep, s.path["keyId"], s.path["grantId"], s.path["id"]} {
		if name != "" {
			return w.kept[name]
		}
	}
	return w.kept["application"]
}

// changedFields are what the steps of the tour change, where that is not a creation
// or a deletion.
var changedFields = map[string][]string{
	"updateApplication":           {"description", "website"},
	"suspendApplication":          {"status"},
	"activateApplication":         {"status"},
	"rotateApplicationSecret":     {"clientSecret"},
	"setTokenScopes":              {"scopes"},
	"setApplicationClient":        {"type"},
	"revokeApiKey":                {"revokedAt", "status"},
	"updateWebhookEndpoint":       {"subscribedEvents"},
	"setWebhookDeliverySettings":  {"changed", "fields", "filter", "headers"},
	"rotateWebhookEndpointSecret": {"secret"},
	"updateSource":                {"name"},
	"rotateSourceSecret":          {"secret"},
}

func TestEveryChangeIsInTheAuditTrailOnceAndNothingElse(t *testing.T) {
	w := newTour(t)
	for _, s := range tourSteps() {
		got, op := w.trailOf(&s), w.operations[s.operation]
		var want []account.AuditEntry
		if op.Audit != "" && s.status == 0 {
			address, actor, application := sourceAddress, w.App, w.kept["application"]
			if op.Audit.Kind() == "source" { // of no application
				application = w.target(&s)
			}
			want = []account.AuditEntry{{
				At: w.Now(), Action: string(op.Audit), Actor: account.AuditActor{Kind: "user", ID: &actor}, Address: &address,
				Object:        account.AuditObject{Kind: op.Audit.Kind(), ID: value.MustID(w.target(&s))},
				ApplicationID: value.MustID(application), Fields: append([]string{}, changedFields[s.operation]...),
			}}
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(account.AuditEntry{}, "ID"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: the trail (-want +got):\n%s", s.operation, diff)
		}
	}
	if found, _, err := w.Table.AuditTrail(t.Context(), value.NewID(), account.AuditFilter{}, value.ID{}, 100); err != nil || len(found) > 0 {
		t.Errorf("another organization's trail: %v, %v", found, err)
	}
}

func TestARequestThatChangesNothingIsNotInTheAuditTrail(t *testing.T) {
	w := newTour(t)
	application, endpoint := map[string]string{"id": "application"}, map[string]string{"id": "endpoint"}
	key := map[string]string{"id": "application", "keyId": "key"}
	const scopes, types = `{"scopes": ["orders:read"]}`, `{"events": ["product.*"]}`
	for _, s := range []step{
		{operation: "createApplication", keep: "application", body: `{"name": "ERP connector"}`},
		{operation: "createApiKey", path: application, keep: "key", body: `{"name": "Nightly copy"}`},
		{operation: "createWebhookEndpoint", query: "applicationId={application}", keep: "endpoint", body: `{"url": "https://erp.example.com/", "events": ["order.*"]}`},
	} {
		w.trailOf(&s)
	}
	for _, s := range []step{
		{operation: "updateApplication", path: application, body: `{"name": "Copy"}`},
		{operation: "suspendApplication", path: application},
		{operation: "activateApplication", path: application},
		{operation: "setTokenScopes", path: application, body: scopes},
		{operation: "updateWebhookEndpoint", path: endpoint, body: types},
		{operation: "revokeApiKey", path: key},
		{operation: "setApplicationClient", path: application, body: `{"type": "PUBLIC"}`},
	} {
		t.Run(s.operation, func(t *testing.T) {
			if got := w.trailOf(&s); len(got) != 1 {
				t.Errorf("the first time: got %v, want one entry", got)
			}
			if got := w.trailOf(&s); len(got) > 0 {
				t.Errorf("again: got %v, want nothing", got)
			}
		})
	}
	s := step{operation: "createApplication", body: `{"name": "once"}`, header: map[string]string{"Idempotency-Key": "k"}}
	for i, want := range []int{1, 0} {
		if got := w.trailOf(&s); len(got) != want {
			t.Errorf("request %d with an idempotency key: got %v, want %d entries", i+1, got, want)
		}
	}
}

func TestATokenAndEachEntryOfTheTrailAreInTheLog(t *testing.T) {
	w := newTour(t)
	entry := w.trailOf(&step{operation: "createApplication", keep: "application", body: `{"name": "ERP connector"}`})[0]
	w.take(&step{operation: "createToken", body: `{"grant_type": "client_credentials", "client_id": "{applicationClient}", "client_secret": "{applicationSecret}"}`})
	application := node{"kind": "application", "id": w.kept["application"]}
	change := node{
		"level": "INFO", "msg": "audit", "id": entry.ID.String(), "action": "application.created", "organizationId": w.Org.String(),
		"actor": node{"kind": "user", "id": entry.Actor.ID.String()}, "target": application, "sourceAddress": sourceAddress, "fields": []any{},
	}
	want := []node{change, change, { // its stream came twice
		"level": "INFO", "msg": "audit", "action": "application.tokenIssued", "organizationId": w.Org.String(), "actor": application, "target": application,
		"path": "/oauth/token", "sourceAddress": sourceAddress,
	}}
	if diff := cmp.Diff(want, trail(t, w.Leaks.Log())); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

func TestRefusedTokenRequestsAreInTheLog(t *testing.T) {
	w := newTour(t)
	application := map[string]string{"id": "application"}
	w.take(&step{operation: "createApplication", keep: "application", body: `{"name": "ERP connector"}`})
	form := func(secret, scope string) string {
		return `{"grant_type": "client_credentials", "client_id": "{applicationClient}", "client_secret": "` + secret + `", "scope": "` + scope + `"}`
	}
	target := node{"kind": "application", "id": w.kept["application"]}
	for _, test := range []struct {
		name, body  string
		before      string // an operation on the application
		status      int
		code        string // "": not in the log
		actor, whom bool   // whether it names the application as the actor, or as the target
	}{
		{name: "a wrong secret", body: form("wrong", ""), status: http.StatusUnauthorized, code: "invalid_client", whom: true},
		{name: "an unknown client", body: strings.Replace(form("wrong", ""), "{applicationClient}", "018f0000-0000-4000-8000-000000000001", 1), status: http.StatusUnauthorized, code: "invalid_client"},
		{name: "a scope that it has not", body: form("{applicationSecret}", "webhooks:write"), status: http.StatusBadRequest, code: "invalid_scope", actor: true},
		{name: "another grant", body: strings.Replace(form("{applicationSecret}", ""), "client_credentials", "password", 1), status: http.StatusBadRequest},
		{name: "suspended", before: "suspendApplication", body: form("{applicationSecret}", ""), status: http.StatusBadRequest, code: "unauthorized_client", actor: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.before != "" {
				w.take(&step{operation: test.before, path: application})
			}
			before := len(w.Leaks.Log())
			w.take(&step{operation: "createToken", body: test.body, status: test.status})
			got := trail(t, w.Leaks.Log()[before:])
			var want []node
			if test.code != "" {
				entry := node{
					"level": "INFO", "msg": "audit", "action": "credential.refused", "code": test.code,
					"path": "/oauth/token", "sourceAddress": sourceAddress,
				}
				if test.actor {
					entry["actor"] = target
				}
				if test.whom {
					entry["target"] = target
				}
				if test.actor || test.whom {
					entry["organizationId"] = w.Org.String()
				}
				want = append(want, entry)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDenialsOfTheAuthorizerAreInTheLog(t *testing.T) {
	s := servicetest.New(t)
	var log bytes.Buffer
	base := dependenciesOf(s)
	base.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	authorize, err := app.Authorizer(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	application, err := s.Table.Application(t.Context(), s.Org, s.App)
	if err != nil {
		t.Fatal(err)
	}
	key := func(stored bool) account.CreatedKey {
		name := "k"
		created, credential := account.NewKey(application, s.App, account.CreateApiKeyDto{Name: &name}, s.Now())
		if stored {
			if err := s.Table.CreateKey(t.Context(), s.Org, created.APIKey, credential); err != nil {
				t.Fatal(err)
			}
		}
		return created
	}
	good, revoked, unknown := key(true), key(true), key(false)
	if _, err := s.Table.RevokeKey(t.Context(), s.Org, s.App, revoked.ID, nil); err != nil {
		t.Fatal(err)
	}
	owner := node{"kind": "apiKey", "id": revoked.ID.String(), "applicationId": s.App.String()}
	for name, test := range map[string]struct {
		header, text string
		want         node
	}{
		"good":            {"X-API-Key", good.Key, nil},
		"nothing":         {"Accept", "*/*", node{"code": "unauthenticated"}},
		"not well formed": {"X-API-Key", good.Key[:54] + "_", node{"code": "unauthenticated"}},
		"revoked":         {"X-API-Key", revoked.Key, node{"code": "api_key_revoked", "key": revoked.Key[9:17], "organizationId": s.Org.String(), "actor": owner}},
		"not known":       {"X-API-Key", unknown.Key, node{"code": "unauthenticated", "key": unknown.Key[9:17]}},
		"not a token":     {"Authorization", "Bearer x.y.z", node{"code": "unauthenticated"}},
	} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			request := events.APIGatewayCustomAuthorizerRequestTypeRequest{
				MethodArn: "arn:aws:execute-api:eu-central-1:1:api/prod/GET/api/products", Resource: "/api/products/{id}",
				Headers: map[string]string{test.header: test.text},
			}
			request.RequestContext.Identity.SourceIP, request.RequestContext.RequestID = sourceAddress, "gateway-1"
			if _, err := authorize(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			var want []node
			if test.want != nil {
				entry := node{
					"level": "INFO", "msg": "audit", "action": "credential.refused",
					"path": "/api/products/{id}", "sourceAddress": sourceAddress, "gatewayRequestId": "gateway-1",
				}
				for name, v := range test.want {
					entry[name] = v
				}
				want = append(want, entry)
			}
			if diff := cmp.Diff(want, trail(t, log.String())); diff != "" {
				t.Errorf("the log (-want +got):\n%s", diff)
			}
			if want != nil {
				alarmtest.FiresByLog(t, dynamotest.Model(t), "RefusedCredentialsAlarm", log.String())
			}
		})
	}
}

// TestTheAuditTrailsActionsAreDocumented also holds every operation that changes
// an application, a key or an endpoint to the trail.
func TestTheAuditTrailsActionsAreDocumented(t *testing.T) {
	manual, err := os.ReadFile(filepath.Join("..", "ops", "OPERATING.md"))
	if err != nil {
		t.Fatal(err)
	}
	// They send events again or once more, change records or how they are found, change
	// nothing, or name the action themselves.
	harmless := []string{
		"sendTestEvent", "recoverWebhookEndpoint", "redeliverWebhookEvent", "previewWebhookDelivery", "postRecords", "readFile", "createToken", "revokeToken",
		"setIndexFields", "receiveWebhook", "callTools",
	}
	actions := []audit.Action{audit.CredentialRefused, audit.ApplicationTokenIssued}
	for _, op := range app.Operations() {
		changes := op.Method != http.MethodGet && !slices.Contains(harmless, op.ID)
		if changes != (op.Audit != "") {
			t.Errorf("%s %s: its action in the audit trail is %q", op.Method, op.Path, op.Audit)
		}
		if changes && !slices.Contains(audit.Changes(), string(op.Audit)) {
			t.Errorf("the filter of the audit trail lacks %s", op.Audit)
		}
		if op.Audit != "" {
			actions = append(actions, op.Audit)
		}
	}
	for _, action := range actions {
		if !bytes.Contains(manual, []byte("`"+string(action)+"`")) {
			t.Errorf("OPERATING.md does not name the action %s", action)
		}
	}
}
