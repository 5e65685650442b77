package app_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/docs/markdown"
	"github.com/commerce-integration/service/pkg/api/openapi"
	"github.com/commerce-integration/service/pkg/api/tools"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// goldenExamples are requests and the service's answers to them, which the
// OpenAPI document shows.
var goldenExamples = filepath.Join("testdata", "examples.json")

// step is one request of the tour.
type step struct {
	operation string
	path      map[string]string // the path's parameters, by the name under which an id was kept
	query     string            // {name} is a kept id
	body      string            // JSON, also of a form; {name} is a kept id
	keep      string            // the name under which the answer's id is kept, and before Client and Secret those of a client
	status    int               // of a refusal; 0: the operation's own
	header    map[string]string // beside those that every request has
	before    func(*tour)
}

// tourSteps ask for every operation once, each after what it needs. An operation
// that is new goes here.
func tourSteps() []step {
	application, endpoint := map[string]string{"id": "application"}, map[string]string{"id": "endpoint"}
	source := map[string]string{"id": "source"}
	all := []step{
		{operation: "createApplication", keep: "application", body: `{
			"name": "ERP connector", "description": "Copies orders to the ERP every night.",
			"website": "https://erp.example.com", "redirectUri": "https://erp.example.com/callback"}`},
		{operation: "getApplication", path: application},
		{operation: "updateApplication", path: application, body: `{"description": "Copies orders to the ERP every hour.", "website": null}`},
		{operation: "suspendApplication", path: application},
		{operation: "activateApplication", path: application},
		{operation: "listApplications", query: "status=ACTIVE"},
		{operation: "rotateApplicationSecret", path: application, keep: "application"},
		{operation: "setTokenScopes", path: application, body: `{"scopes": ["orders:read", "products:read", "records:write", "webhooks:read", "webhooks:write"]}`},
		{operation: "getTokenScopes", path: application},
		{operation: "setApplicationClient", path: application, body: `{"type": "PUBLIC"}`},
		{operation: "setApplicationClient", path: application, body: `{"type": "CONFIDENTIAL"}`},
		{operation: "getApplicationClient", path: application},
		{operation: "authorizeApplication", keep: "grant", body: `{
			"request": "response_type=code&client_id={applicationClient}&redirect_uri=https%3A%2F%2Ferp.example.com%2Fcallback&scope=orders%3Aread&state=af0ifjsldkj&code_challenge=` + codeChallenge + `&code_challenge_method=S256",
			"allow": ["orders:read"]}`},
		{operation: "listGrants", path: application},
		{operation: "listOwnGrants"},
		{operation: "createPortalSession", body: `{"applicationId": "{application}", "scopes": ["webhooks:read", "webhooks:write"], "expiresInMinutes": 60, "theme": "dark"}`, keep: "session"},
		{operation: "deleteGrant", path: map[string]string{"id": "application", "grantId": "grant"}},
		{operation: "createToken", body: `{
			"grant_type": "client_credentials", "client_id": "{applicationClient}", "client_secret": "{applicationSecret}", "scope": "orders:read webhooks:write"}`},
		{operation: "revokeToken", body: `{
			"token": "rt_0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00_x_x", "client_id": "{applicationClient}", "client_secret": "{applicationSecret}"}`},
		{operation: "getJwks"},
		{operation: "getOauthMetadata"},
		{operation: "createApiKey", path: application, keep: "key", body: `{
			"name": "Nightly copy", "scopes": ["orders:read", "products:read"], "expiresAt": "2027-11-21T00:00:00.000Z"}`},
		{operation: "getApplicationUsage", path: application, query: "from=2026-11-20"},
		{operation: "listApiKeys", path: application},
		{operation: "listFailedRequests", path: application, before: (*tour).failedRequest},
		{operation: "setIndexFields", body: `{"fields": [{"kind": "product", "key": "color", "type": "TEXT"}, {"kind": "order", "key": "erpId", "type": "TEXT"}]}`},
		{operation: "getIndexFields"},
		{operation: "createWebhookEndpoint", query: "applicationId={application}", keep: "endpoint", body: `{
			"url": "https://erp.example.com/webhooks", "description": "Orders and products", "events": ["order.*", "product.created"],
			"retryCount": 5, "timeoutSeconds": 10}`},
		{operation: "getWebhookEndpoint", path: endpoint},
		{operation: "updateWebhookEndpoint", path: endpoint, body: `{"events": ["order.*", "product.*"], "status": "ACTIVE"}`},
		{operation: "setWebhookDeliverySettings", path: endpoint, body: `{
			"filter": {"object": {"total": [{"numeric": [">=", 10]}]}}, "changed": ["status", "items"], "fields": ["orderNumber", "status", "total"],
			"headers": {"X-Tenant": "berlin"}, "retryCount": 5, "timeoutSeconds": 10}`},
		{operation: "getWebhookDeliverySettings", path: endpoint},
		{operation: "listAuditTrail", query: "action=application.updated", before: (*tour).writeTrail},
		{operation: "listWebhookEndpoints", query: "applicationId={application}"},
		{operation: "setApplicationAlerts", path: application, body: `{"url": "https://erp.example.com/alerts"}`},
		{operation: "getApplicationAlerts", path: application},
		{operation: "deleteApplicationAlerts", path: application},
		{operation: "listWebhookEventTypes", query: "limit=1", before: (*tour).records},
		{operation: "listWebhookEvents", query: "endpointId={endpoint}&type=order.created"},
		{operation: "previewWebhookDelivery", path: endpoint, body: `{"filter": {"object": {"total": [{"numeric": [">", 1000]}]}}}`},
		{operation: "getWebhookEvent", path: map[string]string{"id": "event"}},
		{operation: "getWebhookTrace", path: map[string]string{"objectId": "order"}, query: "limit=1"},
		{operation: "redeliverWebhookEvent", path: map[string]string{"id": "event"}},
		{operation: "sendTestEvent", path: endpoint, body: `{"type": "webhook.test"}`},
		{operation: "recoverWebhookEndpoint", path: endpoint, keep: "recovery", body: `{"since": "2026-11-21T00:00:00.000Z"}`},
		{operation: "getWebhookRecovery", path: map[string]string{"id": "endpoint", "recoveryId": "recovery"}},
		{operation: "getWebhookEndpointStats", path: endpoint, query: "from=2026-11-21T06:00:00Z&interval=hour"},
		{operation: "rotateWebhookEndpointSecret", path: endpoint},
		{operation: "postRecords", keep: "receipt", body: `{"records": [
			{"kind": "product", "op": "put", "version": 7, "record": {"id": "0192f0c2-6f81-7a55-8e8a-95d4e6f7a8b9", "name": "Espresso cup", "sku": "CUP-1", "sellingPrice": 12.5}},
			{"kind": "order", "op": "put", "record": {"id": "0192f0c2-6f81-7a55-8e8a-95d4e6f7a8c0", "orderNumber": "SO-0041873"}}]}`},
		{operation: "readFile", body: `{"content": "Handle,Title,Variant Price,SEO Title\ncup,Espresso cup,8.90,Cups\npot,Pot,ten,\n"}`},
		{operation: "getReceipt", path: map[string]string{"id": "receipt"}, before: (*tour).ingest},
		{operation: "listReceipts", query: "limit=1"},
		{operation: "createSource", keep: "source", body: `{"kind": "SHOPIFY", "name": "Berlin shop", "secret": "` + shopSecret + `"}`},
		{operation: "getSource", path: source},
		{operation: "updateSource", path: source, body: `{"name": "Shop in Berlin"}`},
		{operation: "listSources"},
		{operation: "receiveWebhook", path: source, body: shopWebhook, header: map[string]string{
			"X-Shopify-Topic": "customers/delete", "X-Shopify-Triggered-At": "2026-11-21T06:35:40.118Z", "X-Shopify-Hmac-Sha256": shopSignature,
		}},
		{operation: "rotateSourceSecret", path: source, body: `{"secret": "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", "overlapHours": 48}`},
		{operation: "deleteSource", path: source},
		{operation: "getMe"},
		{operation: "listDeletions", query: "kind=category"},
		{operation: "listChanges", query: "kinds=category&limit=1"}, // of more, so that it has every header
		{operation: "getHealth"},
		{operation: "revokeApiKey", path: map[string]string{"id": "application", "keyId": "key"}},
		{operation: "deleteWebhookEndpoint", path: endpoint},
		{operation: "deleteApplication", path: application},
	}
	for _, kind := range commerce.Kinds() {
		for _, op := range app.Operations() {
			switch op.Path {
			case "/api/" + kind.Plural():
				all = append(all, step{operation: op.ID, query: "limit=1"})
			case "/api/" + kind.Plural() + "/{id}":
				all = append(all, step{operation: op.ID, path: map[string]string{"id": string(kind)}})
			}
		}
	}
	return append(all,
		step{operation: "listProductStock", path: map[string]string{"id": "product"}, query: "limit=1"},
		step{operation: "listProducts", query: "limit=500", status: http.StatusBadRequest},
		step{operation: "getProduct", path: map[string]string{"id": "category"}, status: http.StatusNotFound},
		step{operation: "postRecords", body: `{"records": [{"kind": "basket", "op": "put", "record": {"name": "Espresso cup"}}]}`, status: http.StatusBadRequest},
		step{operation: "createToken", body: `{"grant_type": "client_credentials", "client_id": "{applicationClient}", "client_secret": "wrong"}`, status: http.StatusUnauthorized},
		step{operation: "createWebhookEndpoint", query: "applicationId={category}", body: `{"url": "https://10.0.0.1/", "events": []}`, status: http.StatusBadRequest})
}

// tour makes the requests of the examples, of one organization, to the
// functions behind the gateway.
type tour struct {
	*servicetest.Service
	t          testing.TB
	base       *app.Dependencies
	operations map[string]api.Operation
	functions  map[string]app.GatewayFunc // by operation
	document   node
	kept       map[string]string
	dispatcher *dispatcher.Dispatcher
	indexer    *indexer.Indexer
	trail      []account.AuditEntry // that trailOf has seen
}

func newTour(t testing.TB) *tour {
	t.Helper()
	s := servicetest.New(t)
	s.Org = value.MustID("0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00") // that of the catalogue's examples
	s.Set(time.Date(2026, 11, 21, 6, 35, 41, 242_000_000, time.UTC))
	w := &tour{
		Service: s, t: t, operations: map[string]api.Operation{}, functions: map[string]app.GatewayFunc{},
		document: document(t), kept: map[string]string{},
	}
	queues, logger := s.Queues(), s.Leaks.Logger()
	w.base = dependenciesOf(s)
	w.dispatcher = dispatcher.New(permitted(t, s, "dispatcher", w.base).Table, queues.Deliveries(), noPark{t}, s.Time, logger)
	w.indexer = indexer.New(permitted(t, s, "indexer", w.base).Table, indexer.DecodeFor(index.NewLists(s.Table, dynamo.Shards), dynamo.Stream{}, s.Table), noPark{t}, noLists{}, logger)
	for name, operations := range app.OperationsByFunction() {
		function, err := app.Functions(markdown.HTML, tools.Operation)[name](t.Context(), permitted(t, s, name, w.base))
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range operations {
			w.operations[op.ID], w.functions[op.ID] = op.Complete(), function.(app.GatewayFunc)
		}
	}
	return w
}

// noPark fails the test: no stream record of it is beyond the functions.
type noPark struct{ t testing.TB }

func (p noPark) Park(_ context.Context, _ string, _ events.DynamoDBEventRecord, cause error) error {
	p.t.Errorf("a stream record was parked: %v", cause)
	return nil
}

// failedRequest makes a request by an application's key that is answered with an error.
func (w *tour) failedRequest() {
	w.t.Helper()
	w.take(&step{operation: "listProducts", query: "limit=500&isActive=true", status: http.StatusBadRequest})
}

// records stores a record of every kind and deletes one. Their events reach the
// endpoint, which fails at all of them.
func (w *tour) records() {
	w.t.Helper()
	for _, e := range commerce.EventTypes(webhook.Samples()) {
		kind, created := strings.CutSuffix(e.Name, ".created")
		if !created {
			continue
		}
		w.kept[kind] = w.Put(w.t, commerce.Kind(kind), nil, string(e.Example.Data.Object), nil).ID.String()
	}
	gone := w.Put(w.t, commerce.KindCategory, nil, `{"id": "0192f0c2-3c5e-7d22-9b5d-62a1b3c4d5e7", "name": "Saucers"}`, nil)
	deleted, err := commerce.Apply(gone, commerce.Change{
		Kind: gone.Kind, Op: commerce.OpDelete, OrganizationID: w.Org, Record: []byte(`{"id": "` + gone.ID.String() + `"}`),
	}, w.At(time.Second))
	if err == nil {
		err = w.Table.PutRecord(w.t.Context(), gone, deleted)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	changed := events.DynamoDBEvent{Records: w.StreamRecords(w.t, dynamo.StreamRecord)}
	if answer, err := w.dispatcher.Handle(w.t.Context(), changed); err != nil || len(answer.BatchItemFailures) > 0 {
		w.t.Fatalf("dispatch: %+v, %v", answer, err)
	}
	w.fail()
	changed.Records = append(changed.Records, w.StreamRecords(w.t, dynamo.StreamEvent)...)
	if answer, err := w.indexer.Handle(w.t.Context(), changed); err != nil || len(answer.BatchItemFailures) > 0 {
		w.t.Fatalf("index: %+v, %v", answer, err)
	}
	w.Pass(views.Freshness)
}

// ingest applies the records that were posted.
func (w *tour) ingest() {
	w.t.Helper()
	handle, err := app.Ingest(w.t.Context(), permitted(w.t, w.Service, "ingest", w.base))
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := handle(w.t.Context(), events.SQSEvent{Records: w.Queues().Receive(w.t, "RecordsQueue")})
	if err != nil || len(answer.BatchItemFailures) > 0 {
		w.t.Fatalf("ingest: %+v, %v", answer, err)
	}
}

// fail makes the first attempt of each delivery its last, and one that failed.
func (w *tour) fail() {
	w.t.Helper()
	x := webhook.Exchange{
		URL: "https://example.com/webhooks", Signature: "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=", OwnHeaders: []string{"Authorization"},
		Status: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"text/plain"}, "Server": {"nginx"}}, Body: []byte("maintenance until 7"),
	}
	attempt := x.Keep(w.Now(), 87*time.Millisecond)
	attempt.Error = new("answered 500 Internal Server Error")
	w.TakeMessages(w.t)
	for _, d := range w.AllDeliveries(w.t) {
		if d.Type == "order.created" {
			w.kept["event"] = d.ID.String()
		}
		w.Count(w.t, d.EndpointID, w.Now(), attempt)
		w.ChangeDelivery(w.t, d.ID, func(d *webhook.Delivery) *webhook.Delivery {
			return d.Record(webhook.Outcome{Attempt: attempt, Result: webhook.AttemptFailed}, "", 0, 0, w.At(time.Second))
		})
	}
}

// take makes the request and returns it with its answer.
func (w *tour) take(s *step) openapi.Example {
	w.t.Helper()
	if s.before != nil {
		s.before(w)
	}
	op, ok := w.operations[s.operation]
	if !ok {
		w.t.Fatalf("there is no operation %s", s.operation)
	}
	s.body, s.query = w.expand(s.body), w.expand(s.query)
	event := w.event(s, &op)
	answer, err := w.functions[op.ID](w.t.Context(), event)
	if want := cmp.Or(s.status, op.Status); err != nil || answer.StatusCode != want {
		w.t.Fatalf("%s: got %d %s, %v; want %d", op.ID, answer.StatusCode, answer.Body, err, want)
	}
	w.checkHeaders(&op, &answer)
	w.Leaks.Answered(httptest.NewRequestWithContext(w.t.Context(), op.Method, event.Path, nil), answer.MultiValueHeaders, answer.Body)
	if s.keep != "" {
		var made struct {
			ID           string `json:"id"`
			ClientID     string `json:"clientId"`
			ClientSecret string `json:"clientSecret"`
			RedirectTo   string `json:"redirectTo"`
		}
		if err := json.Unmarshal([]byte(answer.Body), &made); err != nil {
			w.t.Fatal(err)
		}
		if _, grant := codeIn(made.RedirectTo); grant != "" {
			made.ID = grant
		}
		w.kept[s.keep], w.kept[s.keep+"Client"], w.kept[s.keep+"Secret"] = made.ID, made.ClientID, made.ClientSecret
	}
	example := openapi.Example{Response: []byte(answer.Body)}
	if s.body != "" {
		example.Request = []byte(s.body)
	}
	return example
}

// A webhook of Shopify, and its signature by the secret.
const (
	shopSecret    = "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"
	shopWebhook   = `{"id": 706405506930370084}`
	shopSignature = "SX8H2wGnVkz21DpQBUIKKJELMNA3NjaUL1OSTnf84ic="
)

// A code verifier and its challenge (RFC 7636, appendix B).
const (
	codeVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	codeChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// codeIn returns the code that a redirect hands over, and the grant that it names.
func codeIn(redirectTo string) (code, grant string) {
	if found := codeForm.FindStringSubmatch(redirectTo); found != nil {
		return found[0], found[1]
	}
	return "", ""
}

var codeForm = regexp.MustCompile(`ac_([0-9a-f-]{36})_[0-9A-Za-z]{40}`)

// expand puts what was kept in the place of its names.
func (w *tour) expand(text string) string {
	for name, kept := range w.kept {
		text = strings.ReplaceAll(text, "{"+name+"}", kept)
	}
	return text
}

// event is the request as the gateway hands it to the function.
func (w *tour) event(s *step, op *api.Operation) events.APIGatewayProxyRequest {
	w.t.Helper()
	path := op.Path
	for name, kept := range s.path {
		path = strings.Replace(path, "{"+name+"}", w.kept[kept], 1)
	}
	values, err := url.ParseQuery(s.query)
	if err != nil {
		w.t.Fatal(err)
	}
	request := events.APIGatewayProxyRequest{
		HTTPMethod: op.Method, Path: path, MultiValueQueryStringParameters: values, Body: s.body,
		Headers: map[string]string{"Host": "api.example.com"},
	}
	request.RequestContext.Identity.SourceIP = sourceAddress
	if op.TakesIdempotencyKey() {
		request.Headers["Idempotency-Key"] = value.NewID().String()
	}
	maps.Copy(request.Headers, s.header)
	if s.body != "" {
		request.Headers["Content-Type"] = cmp.Or(op.BodyType, "application/json")
	}
	if op.BodyType != "" {
		request.Body = w.form(s.body)
	}
	if op.Access != api.Public {
		servicetest.Authorize(&request, w.caller(op))
	}
	return request
}

// form is the members of a JSON object as a form.
func (w *tour) form(object string) string {
	w.t.Helper()
	var members map[string]string
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		w.t.Fatal(err)
	}
	form := url.Values{}
	for name, v := range members {
		form.Set(name, v)
	}
	return form.Encode()
}

// caller is a user, or for the read API an application by its key.
func (w *tour) caller(op *api.Operation) auth.Principal {
	p := auth.Principal{Kind: auth.KindUser, OrganizationID: w.Org, UserID: w.App, Scopes: append(auth.AllScopes(), auth.DevelopersAdmin), RateLimit: 600}
	if op.Access == api.Reader {
		p.Kind, p.UserID, p.ApplicationID, p.KeyID = auth.KindKey, value.ID{}, value.MustID(w.kept["application"]), value.MustID(w.kept["key"])
	}
	if op.ID == "getMe" {
		p.Scopes = auth.ParseScopes("orders:read products:read")
	}
	return p
}

// checkHeaders compares the headers of an answer with those that the document
// declares: all of a success must be there but those of special cases, and none
// may be there that is not declared. Standard headers are not declared.
func (w *tour) checkHeaders(op *api.Operation, answer *events.APIGatewayProxyResponse) {
	w.t.Helper()
	response := w.follow("paths", op.Path, strings.ToLower(op.Method), "responses", strconv.Itoa(answer.StatusCode))
	declared, _ := response["headers"].(node)
	var got []string
	for name := range answer.MultiValueHeaders {
		if !slices.Contains([]string{"Cache-Control", "Content-Type", "Pragma", "Vary", "X-Content-Type-Options"}, name) {
			got = append(got, name)
		}
	}
	// An answer that shows a secret in full is one to a change.
	if caching := answer.MultiValueHeaders["Cache-Control"]; op.Method != http.MethodGet && !slices.Equal(caching, []string{"no-store"}) {
		w.t.Errorf("%s answers %d with Cache-Control %q, want no-store", op.ID, answer.StatusCode, caching)
	}
	if sniffing := answer.MultiValueHeaders["X-Content-Type-Options"]; !slices.Equal(sniffing, []string{"nosniff"}) {
		w.t.Errorf("%s answers %d with X-Content-Type-Options %q, want nosniff", op.ID, answer.StatusCode, sniffing)
	}
	for _, name := range got {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(declared)), func(d string) bool { return http.CanonicalHeaderKey(d) == name }) {
			w.t.Errorf("%s answers %d with the header %s, which is not documented", op.ID, answer.StatusCode, name)
		}
	}
	for name := range declared {
		if answer.StatusCode < 300 && name != "Idempotency-Replayed" && !slices.Contains(got, http.CanonicalHeaderKey(name)) {
			w.t.Errorf("%s answers %d without the header %s, which is documented", op.ID, answer.StatusCode, name)
		}
	}
}

// follow walks through the document, over references.
func (w *tour) follow(path ...string) node {
	w.t.Helper()
	at := w.document
	for _, name := range path {
		next, ok := at[name].(node)
		if !ok {
			w.t.Errorf("the document has no %s", strings.Join(path, " "))
			return nil
		}
		if ref, refers := next["$ref"].(string); refers {
			next = w.follow(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		at = next
	}
	return at
}

// unique finds what is random in the answers: identifiers and secrets. Those of
// the sample records are not.
var unique = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|"(cs_|whsec_|cis_live_)[^"]*"|"last4":"[^"]*"|"eyJ[^"]*"|(?:ac|ps)_[0-9a-f-]{36}_[0-9A-Za-z]{40}`)

// placeholders replace what is random by texts of the same form.
type placeholders map[string]string

func (p placeholders) replace(text []byte) []byte {
	return unique.ReplaceAllFunc(text, func(found []byte) []byte {
		kind := unique.FindSubmatch(found)[1]
		switch {
		case bytes.HasPrefix(found, []byte("0192f0c")):
			return found
		case bytes.HasPrefix(found, []byte(`"last4"`)):
			return []byte(`"last4":"` + secretTail + `"`)
		case bytes.HasPrefix(found, []byte("ac_")), bytes.HasPrefix(found, []byte("ps_")):
			return []byte(string(found[:3]) + "0192f0c9-0000-7000-8000-000000000000_" + strings.Repeat("example", 6)[:40])
		case bytes.HasPrefix(found, []byte(`"eyJ`)):
			return []byte(`"eyJhbGciOiJFUzI1NiJ9.eyJzY29wZSI6Im9yZGVyczpyZWFkIn0.c2lnbmF0dXJl"`)
		case kind != nil:
			return placeholderSecret(string(kind), string(bytes.Trim(found, `"`)))
		}
		if p[string(found)] == "" {
			p[string(found)] = fmt.Sprintf("0192f0c9-0000-%c000-8000-%012d", found[14], len(p)+1)
		}
		return []byte(p[string(found)])
	})
}

const secretTail = "Jw3k"

// placeholderSecret is a secret that opens nothing: a masked one, or one as long.
func placeholderSecret(kind, text string) []byte {
	secret := "****" + secretTail
	if plain := strings.TrimPrefix(text, kind); !strings.HasPrefix(plain, "****") {
		secret = strings.Repeat("example", len(plain)/7+1)[:max(0, len(plain)-len(secretTail))] + secretTail
	}
	return []byte(`"` + kind + secret + `"`)
}

func TestTheExamplesOfTheOpenAPIDocumentAreTheAnswersOfTheService(t *testing.T) {
	w, examples, random := newTour(t), map[string]openapi.Example{}, placeholders{}
	for _, s := range tourSteps() {
		example := w.take(&s)
		example.Request, example.Response = random.replace(example.Request), random.replace(example.Response)
		name := s.operation
		if s.status != 0 {
			name = strings.ReplaceAll(http.StatusText(s.status), " ", "")
		}
		if s.status != 0 && w.operations[s.operation].Refuse != nil {
			name = "TokenError" + name
		}
		examples[name] = example
	}
	for id, op := range w.operations {
		if _, shown := examples[id]; !shown && op.MediaType == "" && id != "getOpenAPI" {
			t.Errorf("operation %s has no example: add a step for it", id)
		}
	}
	got, err := json.Marshal(examples, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, goldenExamples, append(got, '\n'))
}

// checkGolden compares with a golden file, which -update writes.
func checkGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil { //nolint:gosec // a public document
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not current: go test ./pkg/app -run 'OpenAPI|WhoMayDoWhat|Detour' -update", file)
	}
}
