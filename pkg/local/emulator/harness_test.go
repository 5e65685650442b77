//go:build emulate

// Package emulator_test runs every function as it is deployed: the binary of make build, under AWS's Runtime Interface
// Emulator, with the environment and the limits of template.yaml, and with a local table and local queues. It checks that
// each function answers its sample of events/ with success, visible in its answer, its records or its messages, and that
// template.yaml permits its AWS calls. The functions' own packages test the details.
package emulator_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/queuetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// The samples name this organization, its user, its application and the
// application's endpoints.
const (
	sampleOrganization = "01938f5a-0f00-7000-8000-000000000001"
	sampleUser         = "01938f5a-0f00-7000-8000-000000000021"
	sampleApplication  = "01938f5a-0f00-7000-8000-000000000031"
	sampleEndpoint     = "01938f5a-0f00-7000-8000-000000000051"
	sampleToken        = "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIn0.c2lnbmF0dXJl"
)

// harness is the table, queues and keys of one test's functions.
type harness struct {
	table       *dynamo.Table
	queues      *queuetest.Queues
	issuer      *issuer.Issuer
	secrets     *sealed.Box
	model       *template.Model
	environment []string // of every function beside what the template declares
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	client, tableName := dynamotest.Client(t)
	w := &harness{table: dynamo.New(client, tableName, time.Now), queues: queuetest.Start(t)}
	w.secrets = newBox(t)
	w.model = w.resolve(t, tableName)
	w.environment = []string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
		"AWS_LAMBDA_LOG_FORMAT=JSON",
		"SIGNING_SECRETS=" + strings.Repeat("s", 64),
		"SERVICE_KEY=" + base64.StdEncoding.EncodeToString(serviceKey()),
		"AWS_ENDPOINT_URL_DYNAMODB=" + *client.Options().BaseEndpoint,
		"AWS_ENDPOINT_URL_SQS=" + *w.queues.Client.Options().BaseEndpoint,
	}
	return w
}

func serviceKey() []byte { return bytes.Repeat([]byte{7}, sealed.KeySize) }

func newBox(t testing.TB) *sealed.Box {
	t.Helper()
	box, err := sealed.NewBox(serviceKey())
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// resolve reads the template with the local values of its references, among them the issuer's keys.
func (w *harness) resolve(t testing.TB, tableName string) *template.Model {
	t.Helper()
	const issuerURL, audience = "https://issuer.example", "commerce"
	var err error
	if w.issuer, err = issuer.New(issuer.Config{Issuer: issuerURL, Audience: audience, Clock: time.Now}); err != nil {
		t.Fatal(err)
	}
	keys, err := w.issuer.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.Write(keys) }))
	t.Cleanup(server.Close)
	values := map[string]string{
		"JwtIssuer": issuerURL, "JwtAudience": audience, "JwksUrl": server.URL, "AllowPrivateTargets": "true", "Table": tableName,
	}
	model, err := template.Load(filepath.Join(root, "template.yaml"), values)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// start starts a function with the environment that it has in Lambda.
func (w *harness) start(t testing.TB, name string) *function {
	t.Helper()
	declared := w.model.Functions[name]
	environment := []string{
		"AWS_LAMBDA_FUNCTION_NAME=" + name, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		// What the template does not declare has Lambda's defaults.
		fmt.Sprintf("AWS_LAMBDA_FUNCTION_MEMORY_SIZE=%d", cmp.Or(declared.MemoryMB, 128)),
		fmt.Sprintf("AWS_LAMBDA_FUNCTION_TIMEOUT=%d", int(cmp.Or(declared.Timeout, 3*time.Second).Seconds())),
	}
	for name, value := range declared.Environment {
		environment = append(environment, name+"="+value)
	}
	return start(t, name, append(environment, w.environment...)) // of two values the later one counts
}

// token signs a token of the samples' user.
func (w *harness) token(t testing.TB) string {
	t.Helper()
	token, err := w.issuer.Sign(issuer.Grant{
		Subject: sampleUser, OrganizationID: value.MustID(sampleOrganization), Roles: []auth.Role{auth.Owner}, Lifetime: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// makeApplication stores the samples' application and returns a key of it.
func (w *harness) makeApplication(t testing.TB) (key string) {
	t.Helper()
	now := value.TimeOf(time.Now())
	org, id := value.MustID(sampleOrganization), value.MustID(sampleApplication)
	name := "Shop sync"
	application := account.NewApplication(org, value.MustID(sampleUser), account.CreateApplicationDto{Name: &name}, now)
	application.ID = id
	if err := w.table.CreateApplication(t.Context(), org, application, account.ReadScopes()); err != nil {
		t.Fatal(err)
	}
	created, credential := account.NewKey(&application, application.UserID, account.CreateApiKeyDto{Name: &name}, now)
	if err := w.table.CreateKey(t.Context(), org, created.APIKey, credential); err != nil {
		t.Fatal(err)
	}
	return created.Key
}

// makeEndpoint stores the samples' endpoint with the URL.
func (w *harness) makeEndpoint(t testing.TB, url string) (secret string) {
	t.Helper()
	secret, id, now := webhook.NewSecretText(), value.MustID(sampleEndpoint), value.TimeOf(time.Now())
	err := w.table.CreateEndpoint(t.Context(), &webhook.Endpoint{
		ID: id, ApplicationID: value.MustID(sampleApplication), OrganizationID: value.MustID(sampleOrganization),
		URL: url, Status: webhook.Active, SubscribedEvents: []string{"*"},
		RetryCount: webhook.DefaultRetryCount, TimeoutSeconds: webhook.DefaultTimeoutSeconds,
		Secret:    webhook.KeepSecret(secret, w.secrets.Seal([]byte(secret), webhook.SecretPurpose(id))),
		CreatedAt: now, UpdatedAt: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// sample reads a sample event.
func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// edited returns a sample with some of its top-level members replaced.
func edited(t testing.TB, name string, members map[string]any) []byte {
	t.Helper()
	var event map[string]jsontext.Value
	decode(t, sample(t, name), &event)
	for member, v := range members {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		event[member] = text
	}
	text, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode(t testing.TB, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// request invokes a function behind the API and decodes the body of its
// answer, which must have the status.
func (f *function) request(t testing.TB, event []byte, status int, body any) events.APIGatewayProxyResponse {
	t.Helper()
	var response events.APIGatewayProxyResponse
	decode(t, f.invoke(t, event), &response)
	text := []byte(response.Body)
	if response.IsBase64Encoded {
		text = unpack(t, response.Body)
	}
	if response.StatusCode != status {
		t.Fatalf("%s answered %d, want %d: %s", f.name, response.StatusCode, status, text)
	}
	decode(t, text, body)
	return response
}

// unpack decodes a body in base64, gzipped as the samples accept it.
func unpack(t testing.TB, body string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return raw
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(packed); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}
