package app_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/app"
)

// goldenAccess shows who may do what: every request of this test with its answer.
const goldenAccess = "ACCESS.md"

// The areas of operations, by the credentials that they take.
type area int

const (
	everyone    area = iota // no credentials
	people                  // users
	persons                 // users, for themselves: also those who are limited to sites
	managers                // users and applications
	subscribers             // users, applications and portal sessions
	readers                 // API keys, users and applications
)

const (
	siteA = "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7" // the one of credentials that are limited to sites
	siteB = "0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f8"
)

const (
	allEvents  = "products:read categories:read orders:read customers:read invoices:read" // what * subscribes to
	readScopes = allEvents + " stock:read"
	ownScopes  = readScopes + " developers:read developers:write webhooks:read webhooks:write" // of a developer
	allScopes  = ownScopes + " records:write"
	granted    = readScopes + " records:write webhooks:read webhooks:write" // the most that tokens of applications can have
)

// request is a request with what it needs. This table and [credentials] say by
// themselves what is permitted, and do not ask the code for it.
type request struct {
	operation    string
	method, path string // {name} is an id of the fixture
	body         string
	ifMatch      string
	area         area
	scope        string // one of these will do; "": none is needed
	also         string // one of these is needed, too
	every        string // and each of these
	status       int    // when it is permitted
	note         string // tells this request from others of the operation

	shows  string // what a permitted answer must hold: the name of an id of the fixture
	thing  bool   // it names a thing of the organization: 404 for another
	own    bool   // it names a thing of one application: 404 for the token of another
	siteB  bool   // it asks for site B: 403 for a credential that does not cover it
	ofKind string // it names a record that takes this scope: 404 without it
	ofB    bool   // it names a record that only site B shows: 404 for such a credential
}

// requests ask for every operation. Those that would end what others need are
// stopped by a precondition or by the state of the thing, which are looked at
// after everything that depends on the credential.
func requests() []request {
	const (
		applications = "/developers/applications"
		application  = applications + "/{spare}"
		endpoints    = "/developers/webhooks/endpoints"
		endpoint     = endpoints + "/{endpoint}"
		history      = "/developers/webhooks/events"
		alerts       = applications + "/{application}/alerts"
		sources      = "/developers/sources"
	)
	const unmet, precondition = `"none"`, http.StatusPreconditionFailed
	all := []request{
		{operation: "createApplication", method: "POST", path: applications, body: `{"name":"one more"}`, area: people, scope: "developers:write", also: readScopes, status: 201},
		{operation: "listApplications", method: "GET", path: applications, area: people, scope: "developers:read", status: 200, shows: "spare"},
		{operation: "getApplication", method: "GET", path: application, area: people, scope: "developers:read", status: 200, thing: true},
		{operation: "updateApplication", method: "PATCH", path: application, body: `{}`, area: people, scope: "developers:write", status: 200, thing: true},
		{operation: "deleteApplication", method: "DELETE", path: application, ifMatch: unmet, area: people, scope: "developers:write", status: precondition, thing: true},
		{operation: "suspendApplication", method: "POST", path: application + "/suspend", area: people, scope: "developers:admin", status: 200, thing: true},
		{operation: "activateApplication", method: "POST", path: application + "/activate", area: people, scope: "developers:admin", status: 200, thing: true},
		{operation: "rotateApplicationSecret", method: "POST", path: application + "/rotate-secret", area: people, scope: "developers:write", every: granted, status: 200, thing: true},
		{operation: "getTokenScopes", method: "GET", path: application + "/token-scopes", area: people, scope: "developers:read", status: 200, thing: true},
		{operation: "setTokenScopes", method: "PUT", path: application + "/token-scopes", body: `{"scopes":["` + strings.ReplaceAll(granted, " ", `","`) + `"]}`, area: people, scope: "developers:admin", status: 200, thing: true},
		{operation: "setTokenScopes", method: "PUT", path: applications + "/{modest}/token-scopes", ifMatch: unmet, body: `{"scopes":["customers:read","records:write"]}`, note: "which adds two", area: people, scope: "developers:admin", every: "customers:read records:write", status: precondition, thing: true},
		{operation: "getIndexFields", method: "GET", path: "/developers/index/fields", area: people, scope: "developers:admin", status: 200},
		{operation: "setIndexFields", method: "PUT", path: "/developers/index/fields", body: `{"fields":[{"kind":"order","key":"erpId","type":"TEXT"}]}`, area: people, scope: "developers:admin", status: 200},
		{operation: "listAuditTrail", method: "GET", path: "/developers/audit", area: people, scope: "developers:admin", status: 200},
		{operation: "getApplicationClient", method: "GET", path: application + "/client", area: people, scope: "developers:read", status: 200, thing: true},
		{operation: "setApplicationClient", method: "PUT", path: application + "/client", body: `{"type":"CONFIDENTIAL"}`, area: people, scope: "developers:write", status: 200, thing: true},
		{operation: "listGrants", method: "GET", path: applications + "/{application}/grants", area: people, scope: "developers:read", status: 200, shows: "grant", thing: true},
		{operation: "deleteGrant", method: "DELETE", path: applications + "/{application}/grants/{grant}", ifMatch: unmet, note: "of another", area: persons, status: precondition, thing: true, ofKind: "developers:write", ofB: true},
		{operation: "listOwnGrants", method: "GET", path: "/developers/grants", area: persons, status: 200},
		{operation: "authorizeApplication", method: "POST", path: "/developers/grants", body: `{"request":"client_id={applicationClient}&redirect_uri=https%3A%2F%2Fexample.com%2Fback"}`, note: "which is asked for nothing", area: persons, status: 200, thing: true},
		{operation: "createPortalSession", method: "POST", path: "/developers/portal-sessions", body: `{"applicationId":"{spare}","scopes":["webhooks:read"],"expiresInMinutes":1}`, area: people, scope: "developers:admin", every: "webhooks:read", status: 201, thing: true},
		{operation: "getApplicationUsage", method: "GET", path: application + "/usage", area: people, scope: "developers:read", status: 200, thing: true},
		{operation: "listFailedRequests", method: "GET", path: application + "/failed-requests", area: people, scope: "developers:write", status: 200, thing: true},
		{operation: "createApiKey", method: "POST", path: application + "/api-keys", body: `{"name":"one more"}`, area: people, scope: "developers:write", also: readScopes, status: 201, thing: true},
		{operation: "listApiKeys", method: "GET", path: application + "/api-keys", area: people, scope: "developers:read", status: 200, shows: "spareKey", thing: true},
		{operation: "revokeApiKey", method: "POST", path: application + "/api-keys/{spareKey}/revoke", area: people, scope: "developers:write", status: 200, thing: true},

		{operation: "createWebhookEndpoint", method: "POST", path: endpoints + "?applicationId={application}", body: `{"url":"https://example.com/","events":["*"]}`, area: subscribers, scope: "webhooks:write", every: allEvents + " webhooks:read", status: 201, thing: true, own: true},
		{operation: "listWebhookEndpoints", method: "GET", path: endpoints, area: subscribers, scope: "webhooks:read", status: 200, shows: "endpoint"},
		{operation: "getWebhookEndpoint", method: "GET", path: endpoint, area: subscribers, scope: "webhooks:read", status: 200, thing: true, own: true},
		{operation: "updateWebhookEndpoint", method: "PATCH", path: endpoint, body: `{}`, area: subscribers, scope: "webhooks:write", status: 200, thing: true, own: true},
		{operation: "updateWebhookEndpoint", method: "PATCH", path: endpoint, body: `{"url":"https://example.com/moved"}`, ifMatch: unmet, note: "which moves it", area: subscribers, scope: "webhooks:write", every: "orders:read", status: precondition, thing: true, own: true},
		{operation: "deleteWebhookEndpoint", method: "DELETE", path: endpoint, ifMatch: unmet, area: subscribers, scope: "webhooks:write", status: precondition, thing: true, own: true},
		{operation: "rotateWebhookEndpointSecret", method: "POST", path: endpoint + "/rotate-secret", ifMatch: unmet, area: subscribers, scope: "webhooks:write", every: "orders:read", status: precondition, thing: true, own: true},
		{operation: "sendTestEvent", method: "POST", path: endpoint + "/test", area: subscribers, scope: "webhooks:write", status: 202, thing: true, own: true},
		{operation: "recoverWebhookEndpoint", method: "POST", path: endpoint + "/recover", area: subscribers, scope: "webhooks:write", status: 202, thing: true, own: true},
		{operation: "getWebhookRecovery", method: "GET", path: endpoint + "/recoveries/{recovery}", area: subscribers, scope: "webhooks:read", status: 200, thing: true, own: true},
		{operation: "getWebhookDeliverySettings", method: "GET", path: endpoint + "/delivery", area: subscribers, scope: "webhooks:read", status: 200, thing: true, own: true},
		{operation: "setWebhookDeliverySettings", method: "PUT", path: endpoint + "/delivery", body: `{}`, area: subscribers, scope: "webhooks:write", every: "orders:read", status: 200, thing: true, own: true},
		{operation: "previewWebhookDelivery", method: "POST", path: endpoint + "/delivery/preview", body: `{}`, area: subscribers, scope: "webhooks:read", every: "orders:read", status: 200, thing: true, own: true},
		{operation: "getWebhookEndpointStats", method: "GET", path: endpoint + "/stats", area: subscribers, scope: "webhooks:read", status: 200, thing: true, own: true},
		{operation: "getApplicationAlerts", method: "GET", path: alerts, area: managers, scope: "webhooks:read", status: 200, thing: true, own: true},
		{operation: "setApplicationAlerts", method: "PUT", path: alerts, body: `{"url":"https://example.com/alerts"}`, area: managers, scope: "webhooks:write", every: "webhooks:read", status: 200, thing: true, own: true},
		{operation: "deleteApplicationAlerts", method: "DELETE", path: alerts, ifMatch: unmet, area: managers, scope: "webhooks:write", status: precondition, thing: true, own: true},
		{operation: "listWebhookEvents", method: "GET", path: history, area: subscribers, scope: "webhooks:read", status: 200, shows: "endpoint"},
		{operation: "getWebhookEvent", method: "GET", path: history + "/{event}", area: subscribers, scope: "webhooks:read", status: 200, thing: true, own: true},
		{operation: "redeliverWebhookEvent", method: "POST", path: history + "/{event}/redeliver", area: subscribers, scope: "webhooks:write", status: 409, note: "which is PENDING", thing: true, own: true},
		{operation: "getWebhookTrace", method: "GET", path: "/developers/webhooks/trace/{order of B}", area: subscribers, scope: "webhooks:read", status: 200, thing: true, ofKind: "orders:read"},
		{operation: "listWebhookEventTypes", method: "GET", path: "/developers/webhooks/event-types", area: subscribers, scope: "webhooks:read", status: 200},

		{operation: "createSource", method: "POST", path: sources, body: `{"kind":"WOOCOMMERCE","name":"x"}`, note: "with the ids of another", area: people, scope: "developers:write", every: "records:write", status: 409},
		{operation: "listSources", method: "GET", path: sources, area: people, scope: "developers:read", status: 200, shows: "source"},
		{operation: "getSource", method: "GET", path: sources + "/{source}", area: people, scope: "developers:read", status: 200, thing: true},
		{operation: "updateSource", method: "PATCH", path: sources + "/{source}", body: `{}`, area: people, scope: "developers:write", status: 200, thing: true},
		{operation: "deleteSource", method: "DELETE", path: sources + "/{source}", ifMatch: unmet, area: people, scope: "developers:write", status: precondition, thing: true},
		{operation: "rotateSourceSecret", method: "POST", path: sources + "/{source}/rotate-secret", ifMatch: unmet, area: people, scope: "developers:write", every: "records:write", status: precondition, thing: true},
		{operation: "receiveWebhook", method: "POST", path: "/ingest/sources/{source}", body: "webhook_id=1", note: "WooCommerce's ping", status: 200},

		{operation: "postRecords", method: "POST", path: "/ingest/records", body: `{"records":[{"kind":"order","op":"delete","record":{"id":"{recovery}"}}]}`, area: managers, scope: "records:write", status: 202},
		{operation: "readFile", method: "POST", path: "/ingest/files", body: `{"kind":"product","content":"id,name\n{recovery},Mug\n"}`, area: managers, scope: "records:write", status: 200},
		{operation: "listReceipts", method: "GET", path: "/ingest/receipts?limit=100", area: managers, scope: "records:write", status: 200, shows: "receipt"},
		{operation: "getReceipt", method: "GET", path: "/ingest/receipts/{receipt}", area: managers, scope: "records:write", status: 200, thing: true, own: true},

		{operation: "callTools", method: "POST", path: "/mcp", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, area: readers, scope: readScopes + " webhooks:read", status: 200},
		{operation: "getMe", method: "GET", path: "/api/me", area: readers, status: 200},
		{operation: "listDeletions", method: "GET", path: "/api/deletions", area: readers, scope: readScopes, status: 200},
		{operation: "listDeletions", method: "GET", path: "/api/deletions?kind=order", note: "kind=order", area: readers, scope: "orders:read", status: 200},
		{operation: "listChanges", method: "GET", path: "/api/changes", area: readers, scope: readScopes, status: 200},
		{operation: "listChanges", method: "GET", path: "/api/changes?kinds=order", note: "kinds=order", area: readers, scope: "orders:read", status: 200},
	}
	for _, kind := range []struct{ single, plural, name string }{
		{"product", "products", "Product"},
		{"category", "categories", "Category"},
		{"order", "orders", "Order"},
		{"customer", "customers", "Customer"},
		{"invoice", "invoices", "Invoice"},
		{"stock", "stock", "Stock"},
	} {
		list, scope := "list", kind.plural+":read"
		for word := range strings.SplitSeq(kind.plural, "-") {
			list += strings.ToUpper(word[:1]) + word[1:]
		}
		all = append(
			all,
			request{operation: list, method: "GET", path: "/api/" + kind.plural, area: readers, scope: scope, status: 200, shows: kind.single + " of A"},
			request{operation: list, method: "GET", path: "/api/" + kind.plural + "?siteId=" + siteB, note: "of site B", area: readers, scope: scope, status: 200, shows: kind.single + " of B", siteB: true},
			request{operation: "get" + kind.name, method: "GET", path: "/api/" + kind.plural + "/{" + kind.single + " of A}", note: "of site A", area: readers, scope: scope, status: 200, thing: true},
			request{operation: "get" + kind.name, method: "GET", path: "/api/" + kind.plural + "/{" + kind.single + " of B}", note: "of site B", area: readers, scope: scope, status: 200, thing: true, ofB: true},
		)
	}
	const productStock = "listProductStock"
	return append(
		all,
		request{operation: productStock, method: "GET", path: "/api/products/{product of A}/stock", note: "of site A", area: readers, scope: "stock:read", every: "products:read", status: 200, thing: true, shows: "stock of A"},
		request{operation: productStock, method: "GET", path: "/api/products/{product of B}/stock", note: "of site B", area: readers, scope: "stock:read", every: "products:read", status: 200, thing: true, ofB: true},
		request{operation: "createToken", method: "POST", path: "/oauth/token", body: "grant_type=client_credentials&client_id={applicationClient}&client_secret={applicationSecret}", status: 200},
		request{operation: "revokeToken", method: "POST", path: "/oauth/revoke", body: "token=x&client_id={applicationClient}&client_secret={applicationSecret}", status: 200},
		request{operation: "getJwks", method: "GET", path: "/.well-known/jwks.json", status: 200},
		request{operation: "getOauthMetadata", method: "GET", path: "/.well-known/oauth-authorization-server", status: 200},
		request{operation: "getOpenAPI", method: "GET", path: "/openapi.json", status: 200},
		request{operation: "getDocs", method: "GET", path: "/docs", status: 200},
		request{operation: "getDocsAsset", method: "GET", path: "/docs/swagger-ui.css", status: 200},
		request{operation: "getLlmsTxt", method: "GET", path: "/llms.txt", status: 200},
		request{operation: "getHealth", method: "GET", path: "/health", status: 200},
	)
}

// credential is what a request may be made with, and what that may do.
type credential struct {
	name    string
	key     string // in X-API-Key
	token   string // as Authorization: Bearer
	scopes  string // separated by spaces
	refused string // the code of the 401; "": it is good

	application string // of a key, an application's token or a portal session: the name of its id in the fixture
	session     bool   // it is of a portal session
	carries     string // read scopes that count for events alone
	sites       bool   // it is limited to site A
	other       bool   // it is of another organization
	direct      bool   // nobody authorizes: the function is invoked by itself
}

// reads reports whether the credential has the scope, or has it for events.
func (c *credential) reads(scope string) bool {
	return c.hasAny(scope) || slices.Contains(strings.Fields(c.carries), scope)
}

// hasAny reports whether the credential has one of the scopes.
func (c *credential) hasAny(scopes string) bool {
	return slices.ContainsFunc(strings.Fields(scopes), func(s string) bool { return slices.Contains(strings.Fields(c.scopes), s) })
}

// form reports whether the request's body is one, in which a client authenticates.
func (r *request) form() bool { return r.operation == "createToken" || r.operation == "revokeToken" }

// answered is what can be seen of an answer: its status and the code of an error.
type answered struct {
	status int
	code   string
}

// expected is the answer to a request with a credential.
func expected(c *credential, r *request) answered {
	switch {
	case r.area == everyone && r.form() && c.token != "":
		return answered{400, ""} // a client authenticates by the form or by a header
	case r.area == everyone:
		return answered{r.status, ""}
	case c.key != "" && r.area != readers:
		return answered{401, "unauthenticated"} // a key says nothing there
	case c.refused != "":
		return answered{401, c.refused}
	case c.application != "" && (r.area == people || r.area == persons):
		return answered{403, "insufficient_scope"}
	case r.scope != "" && !c.hasAny(r.scope):
		return answered{403, "insufficient_scope"}
	case c.session && r.area == managers:
		return answered{403, "insufficient_scope"}
	case c.sites && (r.siteB || r.area == people || r.area == managers || r.area == subscribers):
		return answered{403, "site_forbidden"}
	case r.also != "" && !c.hasAny(r.also), slices.ContainsFunc(strings.Fields(r.every), func(s string) bool { return !c.reads(s) }):
		return answered{403, "insufficient_scope"}
	case c.session && r.ofKind != "" && c.application != "application": // it knows a record by its deliveries alone
		return answered{404, "not_found"}
	case r.thing && c.other, r.ofKind != "" && !c.reads(r.ofKind), r.ofB && c.sites, r.own && c.application != "" && c.application != "application":
		return answered{404, "not_found"}
	}
	return answered{r.status, map[int]string{409: "conflict", 412: "precondition_failed"}[r.status]}
}

// mustNotShow are ids that no answer to the credential may hold.
func mustNotShow(w *accessScene, c *credential, r *request) []string {
	switch {
	case r.area == everyone, r.operation == "listWebhookEventTypes": // its examples are the organization's
		return nil
	case c.other:
		return []string{w.Org.String()}
	case c.application == "another" && (r.area == managers || r.area == subscribers) && r.operation != "createWebhookEndpoint":
		return []string{w.kept["application"]}
	case c.sites && r.area == readers && !r.siteB && !r.ofB:
		return []string{siteB}
	}
	return nil
}

// ask makes the request over HTTP, or by invoking the function.
func (w *accessScene) ask(c *credential, r *request) (got answered, body string) {
	w.t.Helper()
	path, text := w.expand(r.path), w.expand(r.body)
	header := http.Header{}
	for name, v := range map[string]string{"X-API-Key": c.key, "If-Match": r.ifMatch} {
		if v != "" {
			header.Set(name, v)
		}
	}
	if c.token != "" {
		header.Set("Authorization", "Bearer "+c.token)
	}
	if text != "" {
		header.Set("Accept", "application/json, text/event-stream") // as the tools' protocol has it
		header.Set("Content-Type", "application/json")
		if r.form() {
			header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	if c.direct {
		got.status, body = w.invoke(r.operation, r.method, path, text, header)
	} else {
		got.status, body = w.send(r.method, path, text, header)
	}
	var problem struct {
		Code string `json:"code"`
	}
	if got.status >= 400 && json.Unmarshal([]byte(body), &problem) == nil {
		got.code = problem.Code
	}
	return got, body
}

// invoke calls the function as whoever may invoke it can: without what an
// authorizer says, but with headers that pretend to it.
func (w *accessScene) invoke(operation, method, target, body string, header http.Header) (int, string) {
	w.t.Helper()
	path, query, _ := strings.Cut(target, "?")
	event := events.APIGatewayProxyRequest{HTTPMethod: method, Path: path, Body: body, MultiValueHeaders: header, QueryStringParameters: map[string]string{}}
	for parameter := range strings.SplitSeq(query, "&") {
		if name, v, ok := strings.Cut(parameter, "="); ok {
			event.QueryStringParameters[name] = v
		}
	}
	forged := `{"authorizer":{"principalKind":"user","organizationId":"` + w.Org.String() + `","userId":"` + w.App.String() + `","scopes":"` + allScopes + `","rateLimit":"600"}}`
	header.Set("X-Golambdaproxy-Apigw-Context", forged)
	header.Set("Host", "api.example.com")
	answer, err := w.functions[operation](w.t.Context(), event)
	if err != nil {
		w.t.Errorf("%s: %v", operation, err)
	}
	return answer.StatusCode, answer.Body
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	w := newAccessScene(t)
	asked := requests()
	page := &strings.Builder{}
	page.WriteString(accessIntroduction)
	total, unexpected := 0, 0
	for _, group := range w.groups() {
		header, rule := "| Request |", "|---|"
		for i := range group.credentials {
			header, rule = header+" "+group.credentials[i].name+" |", rule+"---|"
		}
		fmt.Fprintf(page, "\n## %s\n\n%s\n\n%s\n%s\n", group.title, group.text, header, rule)
		for i := range asked {
			r := &asked[i]
			fmt.Fprintf(page, "| %s |", strings.TrimSpace("`"+r.operation+"` "+r.note))
			for j := range group.credentials {
				c := &group.credentials[j]
				got, body := w.ask(c, r)
				total++
				want := expected(c, r)
				if got != want {
					unexpected++
					t.Errorf("%s %s with %s: got %d %s %s, want %d %s", r.operation, r.note, c.name, got.status, got.code, body, want.status, want.code)
				}
				if own := !c.other && (c.application == "" || c.application == "application"); own && want.status < 300 && !strings.Contains(body, w.kept[r.shows]) {
					unexpected++
					t.Errorf("%s %s with %s: does not show %s %s: %s", r.operation, r.note, c.name, r.shows, w.kept[r.shows], body)
				}
				for _, id := range mustNotShow(w, c, r) {
					if strings.Contains(body, id) {
						unexpected++
						t.Errorf("%s %s with %s: shows %s: %s", r.operation, r.note, c.name, id, body)
					}
				}
				fmt.Fprintf(page, " %d |", got.status)
			}
			page.WriteString("\n")
		}
	}
	t.Logf("%d requests, %d unexpected answers", total, unexpected)
	checkGolden(t, goldenAccess, []byte(page.String()))
}

func TestAFunctionThatIsInvokedByItselfDoesNothing(t *testing.T) {
	w := newAccessScene(t)
	w.Writes(t)
	nobody := &credential{name: "nobody", refused: "unauthenticated", direct: true}
	for _, r := range requests() {
		if r.area == everyone {
			continue
		}
		t.Run(r.operation+" "+r.note, func(t *testing.T) {
			if got, body := w.ask(nobody, &r); got != expected(nobody, &r) {
				t.Errorf("got %d %s", got.status, body)
			}
		})
	}
	if n := w.Writes(t); n != 0 {
		t.Errorf("%d writes to the table, want none", n)
	}
}

// TestTheRequestsCoverEveryOperation holds requests and operations together.
func TestTheRequestsCoverEveryOperation(t *testing.T) {
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	plain := func(path string) string { return parameter.ReplaceAllString(strings.Split(path, "?")[0], "{}") }
	asked := map[string]string{}
	for _, r := range requests() {
		asked[r.operation] = r.method + " " + plain(r.path)
	}
	for _, op := range app.Operations() {
		want := op.Method + " " + plain(op.Path)
		if op.ID == "getDocsAsset" {
			want = strings.Replace(want, "{}", "swagger-ui.css", 1)
		}
		if asked[op.ID] != want {
			t.Errorf("%s: the requests ask for %q, want %q", op.ID, asked[op.ID], want)
		}
		if (op.Access == api.Public) != (op.Scope == "" && op.AnyScope == nil && op.ID != "getMe" && op.Access != api.User) {
			t.Errorf("%s: takes credentials and no scope, or a scope and no credentials", op.ID)
		}
	}
}

const accessIntroduction = `# Who may do what

Each cell is the answer of the service to a request over HTTP: 2xx where the credential may, 401 where it is not
acceptable, 403 where it lacks the scope or does not cover the site, 404 where it may not know of the thing. 409 and 412
are answered to a credential that may: the request is one that changes nothing. ` + "`go test ./pkg/app -run WhoMayDoWhat -update`" + `
writes this page; the test compares each answer with a table of its own.

[DETOURS.md](DETOURS.md) adds the reach of two steps. Things are of one organization. An endpoint, its events and the grant are of one of its applications. Records are of site A or B.
`
