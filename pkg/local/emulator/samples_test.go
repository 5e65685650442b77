//go:build emulate

package emulator_test

import (
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/webhook"
)

// policy is the answer of an authorizer.
type policy struct {
	PrincipalID    string            `json:"principalId"`
	Context        map[string]string `json:"context"`
	PolicyDocument struct {
		Version   string `json:"Version"`
		Statement []struct {
			Effect   string   `json:"Effect"`
			Resource []string `json:"Resource"`
		} `json:"Statement"`
	} `json:"policyDocument"`
}

func (p *policy) effect() string {
	if len(p.PolicyDocument.Statement) != 1 {
		return "none"
	}
	return p.PolicyDocument.Statement[0].Effect
}

func TestAuthorizerAllowsATokenAndAKeyAndDeniesTheSamples(t *testing.T) {
	w := newHarness(t)
	key := w.makeApplication(t)
	f := w.start(t, "authorizer")
	for _, test := range []struct {
		name, sample, header, credential, effect, kind, code string
	}{
		{"token of nobody", "authorizer-jwt", "", "", "Deny", "", "unauthenticated"},
		{"token", "authorizer-jwt", "Authorization", "Bearer " + w.token(t), "Allow", "user", ""},
		{"key of nobody", "authorizer-key", "", "", "Deny", "", "unauthenticated"},
		{"key", "authorizer-key", "X-API-Key", key, "Allow", "key", ""},
		{"key with a typing mistake", "authorizer-key", "X-API-Key", key[:54] + "_", "Deny", "", "unauthenticated"},
	} {
		event := sample(t, test.sample)
		if test.header != "" {
			event = edited(t, test.sample, map[string]any{"multiValueHeaders": map[string][]string{test.header: {test.credential}}})
		}
		var got policy
		decode(t, f.invoke(t, event), &got)
		if got.effect() != test.effect || got.Context["principalKind"] != test.kind || got.Context["code"] != test.code {
			t.Errorf("%s: got %+v, want %s, kind %q, code %q", test.name, got, test.effect, test.kind, test.code)
		}
		if test.effect == "Allow" && got.Context["organizationId"] != sampleOrganization {
			t.Errorf("%s: organization %q, want the samples'", test.name, got.Context["organizationId"])
		}
	}
}

func TestAuthorizerFailsWhenTheIssuerCannotBeReached(t *testing.T) {
	w := newHarness(t)
	w.environment = append(w.environment, "JWKS_URL=http://127.0.0.1:9/")
	token := "Bearer " + w.token(t)
	event := edited(t, "authorizer-jwt", map[string]any{"multiValueHeaders": map[string][]string{"Authorization": {token}}})
	if answer, failure := w.start(t, "authorizer").call(t, event); failure == "" {
		t.Errorf("got %s, want a function error: a Deny would be cached", answer)
	}
}

func TestDevelopersCreatesAndListsApplications(t *testing.T) {
	w := newHarness(t)
	f := w.start(t, "developers")
	var created account.Application
	f.request(t, sample(t, "developers-create"), http.StatusCreated, &created)
	stored, err := w.table.Application(t.Context(), value.MustID(sampleOrganization), created.ID)
	if err != nil || stored == nil {
		t.Fatalf("the application %s is not stored: %v", created.ID, err)
	}
	var listed struct {
		Data []account.Application `json:"data"`
	}
	f.request(t, sample(t, "developers-list"), http.StatusOK, &listed)
	if diff := cmp.Diff([]account.Application{created.Masked()}, listed.Data); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestWebhooksListsTheCatalogue(t *testing.T) {
	var listed struct {
		Data []map[string]jsontext.Value `json:"data"`
	}
	f := newHarness(t).start(t, "webhooks")
	for _, encoding := range []string{"identity", "gzip"} {
		event := edited(t, "webhooks-event-types", map[string]any{"multiValueHeaders": map[string][]string{"Authorization": {sampleToken}, "Accept": {"*/*"}, "Accept-Encoding": {encoding}}})
		answer := f.request(t, event, http.StatusOK, &listed)
		if len(listed.Data) < 20 || answer.IsBase64Encoded != (encoding == "gzip") {
			t.Errorf("%s: %d event types, packed %t", encoding, len(listed.Data), answer.IsBase64Encoded)
		}
	}
}

// In AWS the service key comes from Secrets Manager.
func TestWebhooksSealsSecretsUnderTheKeyOfSecretsManager(t *testing.T) {
	w := newHarness(t)
	w.makeApplication(t)
	const secret = "rK2mZ0bQ8xTtLq5Vd1Wc7NfYh3JpG6sAeRu4iXo9BkDzMnCvEwHyUaPlFgSjTqO1"
	manager := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is cut short has no SecretId
		if r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" || !strings.Contains(string(body), `"SecretId":"ServiceKeySecret"`) {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		io.WriteString(rw, `{"SecretString":"`+secret+`"}`)
	}))
	defer manager.Close()
	w.environment = append(w.environment, "SERVICE_KEY=", "AWS_ENDPOINT_URL_SECRETS_MANAGER="+manager.URL)
	var created webhook.WebhookEndpoint
	w.start(t, "webhooks").request(t, sample(t, "webhooks-create"), http.StatusCreated, &created)

	key := sha256.Sum256([]byte(secret))
	box, err := sealed.NewBox(key[:])
	if err != nil {
		t.Fatal(err)
	}
	stored, err := w.table.Endpoint(t.Context(), created.OrganizationID, created.ID)
	if err != nil || stored == nil {
		t.Fatalf("endpoint %s is not stored: %v", created.ID, err)
	}
	opened, err := box.Open(stored.Secret.Sealed, webhook.SecretPurpose(created.ID))
	if err != nil || string(opened) != created.Secret {
		t.Errorf("sealed secret opens as %q (%v), want the one that was answered", opened, err)
	}
}

func TestIngestStoresWhatTheAPIListsOnceItIsIndexed(t *testing.T) {
	w := newHarness(t)
	var answer events.SQSEventResponse
	decode(t, w.start(t, "ingest").invoke(t, sample(t, "ingest")), &answer)
	if len(answer.BatchItemFailures) != 0 {
		t.Fatalf("ingest reports failures: %+v", answer)
	}
	if refused := w.queues.Receive(t, "RecordsDLQ"); len(refused) != 0 {
		t.Errorf("records were refused: %+v", refused)
	}
	org := value.MustID(sampleOrganization)
	for kind, id := range map[commerce.Kind]string{
		commerce.KindProduct: "c7b8802b-a4d8-51a3-acf8-9c3ebfa28de5", commerce.KindOrder: "f860622e-b6a6-51c2-85d3-00481479bf88",
		commerce.KindCategory: "594206f8-221c-598a-b3cf-2b350e31714f", commerce.KindCustomer: "bd747cac-ca1a-50ef-84e3-6d98cf0f90fa",
	} {
		if stored, err := w.table.Record(t.Context(), org, kind, value.MustID(id)); err != nil || stored == nil {
			t.Errorf("%s %s is not stored: %v", kind, id, err)
		}
	}
	var page struct {
		Data []commerce.Product `json:"data"`
		Meta struct {
			Total int `json:"total"`
		} `json:"meta"`
	}
	w.start(t, "indexer").invoke(t, sample(t, "indexer"))
	answered := w.start(t, "api").request(t, sample(t, "api"), http.StatusOK, &page)
	if page.Meta.Total != 1 || len(page.Data) != 1 || page.Data[0].Name != "Sencha 100 g" {
		t.Errorf("page %+v, want the one product", page)
	}
	if remaining := answered.MultiValueHeaders["X-Ratelimit-Remaining"]; len(remaining) != 1 {
		t.Errorf("headers %v, want the rate limit among them", answered.MultiValueHeaders)
	}
}

func TestPortalServesItsPage(t *testing.T) {
	w := newHarness(t)
	var page events.APIGatewayProxyResponse
	decode(t, w.start(t, "portal").invoke(t, sample(t, "portal")), &page)
	if page.StatusCode != http.StatusOK || !strings.Contains(page.Body, `src="/prod/portal/main.js"`) {
		t.Errorf("got %d %s", page.StatusCode, page.Body)
	}
}

func TestIndexerLogsTheChangesOfLists(t *testing.T) {
	w := newHarness(t)
	var answer events.DynamoDBEventResponse
	decode(t, w.start(t, "indexer").invoke(t, sample(t, "indexer")), &answer)
	if len(answer.BatchItemFailures) != 0 {
		t.Fatalf("indexer reports failures: %+v", answer)
	}
	for _, list := range []string{"products", "orders", "deletions", "webhook-events"} {
		entries := 0
		err := w.table.TailAfter(t.Context(), value.MustID(sampleOrganization), list, 0, false, func(index.StoredEntry) error {
			entries++
			return nil
		})
		if err != nil || entries != 1 {
			t.Errorf("the change log of %s has %d entries, want 1 (%v)", list, entries, err)
		}
	}
	if parked := w.queues.Receive(t, "ParkQueue"); len(parked) != 0 {
		t.Errorf("records were parked: %+v", parked)
	}
}

func TestWorkerDeliversWhatTheDispatcherSends(t *testing.T) {
	w := newHarness(t)
	receiver := newReceiver(t)
	w.makeApplication(t)
	secret := w.makeEndpoint(t, receiver.server.URL)

	var dispatched events.DynamoDBEventResponse
	decode(t, w.start(t, "dispatcher").invoke(t, sample(t, "dispatcher")), &dispatched)
	if parked := w.queues.Receive(t, "ParkQueue"); len(dispatched.BatchItemFailures) != 0 || len(parked) != 0 {
		t.Fatalf("dispatcher reports failures %+v and parks %+v", dispatched, parked)
	}
	var own events.SQSEvent
	decode(t, sample(t, "worker"), &own)
	messages := w.queues.Receive(t, "DeliveriesQueue")
	isOwn := func(m events.SQSMessage) bool { return m.Body == own.Records[0].Body }
	if len(messages) != 6 || !slices.ContainsFunc(messages, isOwn) {
		t.Fatalf("%d messages were sent, want six with the worker's sample among them: %+v", len(messages), messages)
	}

	f := w.start(t, "worker")
	var worked events.SQSEventResponse
	decode(t, f.invoke(t, sample(t, "worker")), &worked)
	if len(worked.BatchItemFailures) != 0 {
		t.Fatalf("worker reports failures: %+v", worked)
	}
	body, header := receiver.only(t)
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(body, header); err != nil {
		t.Errorf("the signature is wrong: %v in %v", err, header)
	}
	var payload commerce.WebhookPayload
	decode(t, body, &payload)
	ref, err := webhook.ParseDeliveryRef(own.Records[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	if payload.ID != ref.EventID || payload.Type != "order.paid" {
		t.Errorf("delivered %s %s, want order.paid %s", payload.Type, payload.ID, ref.EventID)
	}
	row, err := w.table.Delivery(t.Context(), ref.OrganizationID, ref.DeliveryID)
	if err != nil || row.Status != webhook.DeliveryDelivered || row.AttemptCount != 1 {
		t.Errorf("row %+v, want it DELIVERED at the first attempt (%v)", row, err)
	}
}

func TestWorkerDropsAMessageWhoseRowIsGone(t *testing.T) {
	var answer events.SQSEventResponse
	decode(t, newHarness(t).start(t, "worker").invoke(t, sample(t, "worker")), &answer)
	if len(answer.BatchItemFailures) != 0 {
		t.Errorf("got %+v, want no failure: nothing is left to be done", answer)
	}
}

func TestSweeperSendsWhatComesDue(t *testing.T) {
	w := newHarness(t)
	w.makeApplication(t)
	w.makeEndpoint(t, "http://127.0.0.1:9/")
	now := value.TimeOf(time.Now())
	row := (&webhook.Delivery{
		ID: value.NewID(), EventID: value.NewID(), OrganizationID: value.MustID(sampleOrganization),
		EndpointID: value.MustID(sampleEndpoint), ApplicationID: value.MustID(sampleApplication),
		Type: "order.paid", Status: webhook.DeliveryPending, AttemptCount: 4, NextAttemptAt: &now, DueAt: &now,
		CreatedAt: now, UpdatedAt: now,
	})
	if _, err := w.table.CreateDelivery(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	f := w.start(t, "sweeper")
	if answer := f.invoke(t, sample(t, "sweeper")); string(answer) != "null" {
		t.Errorf("got %s, want null", answer)
	}
	messages := w.queues.Receive(t, "DeliveriesQueue")
	if len(messages) != 1 || messages[0].Body != row.Ref().Body() {
		t.Errorf("sent %+v, want the row's message %s", messages, row.Ref().Body())
	}
	// The alarm on a schedule that does not run counts these.
	f.stop() // the log may follow the answer
	if !strings.Contains(f.output.String(), `"message":"swept"`) {
		t.Errorf("the run is not logged:\n%s", f.output)
	}
}

func TestSweeperStartsAndDoesTheIndexJobsThatAreDue(t *testing.T) {
	w := newHarness(t)
	w.start(t, "indexer").invoke(t, sample(t, "indexer"))
	org, list := value.MustID(sampleOrganization), "products"
	if err := w.table.RequestJob(t.Context(), org, list, value.TimeOf(time.Now())); err != nil {
		t.Fatal(err)
	}
	f := w.start(t, "sweeper")
	f.invoke(t, sample(t, "sweeper"))
	var own events.SQSEvent
	decode(t, sample(t, "sweeper-index-job"), &own)
	messages := w.queues.Receive(t, "IndexJobsQueue")
	if !slices.ContainsFunc(messages, func(m events.SQSMessage) bool { return m.Body == own.Records[0].Body }) {
		t.Fatalf("started %+v, want the sample's job among them", messages)
	}
	var answer events.SQSEventResponse
	decode(t, f.invoke(t, sample(t, "sweeper-index-job")), &answer)
	if len(answer.BatchItemFailures) != 0 {
		t.Fatalf("sweeper reports failures: %+v", answer)
	}
	key := index.Key{Org: org, List: index.NewLists(w.table, dynamo.Shards).Named(list)}
	folded, err := w.table.Manifest(t.Context(), org, list, key.Layout().Live())
	if err != nil || folded == nil || folded.Covered != 1 {
		t.Errorf("manifest %+v (%v), want one that covers the change", folded, err)
	}
}

func TestFunctionsDoNotStartWithoutTheirTable(t *testing.T) {
	w := newHarness(t)
	w.environment = append(w.environment, "TABLE_NAME=")
	for name := range w.model.Functions {
		f := w.start(t, name)
		answer, failure := f.call(t, []byte("{}"))
		f.stop() // the log may follow the answer
		if failure == "" || !strings.Contains(f.output.String(), "TABLE_NAME is not set") {
			t.Errorf("%s: got %s, want an error and the reason in the log:\n%s", name, answer, f.output)
		}
	}
}

// receiver keeps the deliveries that it gets.
type receiver struct {
	server *httptest.Server
	bodies chan []byte
	header chan http.Header
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{bodies: make(chan []byte, 10), header: make(chan http.Header, 10)}
	r.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body) // what is cut short fails its signature
		r.bodies <- body
		r.header <- request.Header
	}))
	t.Cleanup(r.server.Close)
	return r
}

// only returns the one delivery.
func (r *receiver) only(t *testing.T) ([]byte, http.Header) {
	t.Helper()
	if len(r.bodies) != 1 {
		t.Fatalf("%d deliveries arrived, want one", len(r.bodies))
	}
	return <-r.bodies, <-r.header
}
