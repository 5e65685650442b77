package app_test

import (
	"encoding/base64"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/openapi"
	"github.com/commerce-integration/service/pkg/api/tools"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

var update = flag.Bool("update", false, "rewrite the OpenAPI document, and the Go client that is made of it")

func TestTheOpenAPIDocumentIsWhatTheOperationsDeclare(t *testing.T) {
	document, reference, err := openapi.Build(app.Operations(), openapi.Config{Events: commerce.EventTypes(webhook.Samples()), Examples: examples(t)})
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, goldenDocument, document)
	checkGolden(t, filepath.Join("..", "api", "docs", "reference.md"), reference)
	if *update {
		client := exec.CommandContext(t.Context(), "go", "generate")
		client.Dir = filepath.Join("..", "client", "go") // a module of its own
		if out, err := client.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// examples reads those that the service answered.
func examples(t *testing.T) (read map[string]openapi.Example) {
	t.Helper()
	raw, err := os.ReadFile(goldenExamples)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// authorizers are the template's names for the kinds of access.
var authorizers = map[api.Access]string{api.Public: "", api.Developer: "JwtOnly", api.User: "JwtOnly", api.Manager: "JwtOnly", api.Subscriber: "JwtOnly", api.Reader: "Any"}

func TestTheTemplateDeclaresExactlyTheRoutesInCode(t *testing.T) {
	type target struct{ function, authorizer string }
	declared := map[string]target{}
	for _, r := range dynamotest.Model(t).API.Routes {
		if r.Method != template.AnyMethod {
			declared[r.Method+" "+r.Path] = target{r.Function, r.Authorizer}
		}
	}
	wanted := map[string]target{}
	for function, operations := range app.OperationsByFunction() {
		for _, op := range operations {
			path := strings.Replace(op.Path, "{file}", "{proxy+}", 1)
			wanted[op.Method+" "+path] = target{function, authorizers[op.Access]}
			if op.Method == "GET" {
				wanted["HEAD "+path] = target{function, authorizers[op.Access]}
			}
		}
	}
	for route, want := range wanted {
		if got, ok := declared[route]; !ok || got != want {
			t.Errorf("%s: the template has %+v, the code %+v", route, got, want)
		}
	}
	for route := range declared {
		if _, ok := wanted[route]; !ok {
			t.Errorf("%s: only in the template", route)
		}
	}
}

func TestEveryPathLeadsItsOtherMethodsToTheFunctionThatHasIt(t *testing.T) {
	functions := map[string]string{}
	for _, r := range dynamotest.Model(t).API.Routes {
		if r.Method == template.AnyMethod {
			functions[r.Path] = r.Function
			if r.Authorizer != "" {
				t.Errorf("ANY %s: authorizer %s, want none: it leads to a 404 or 405 only", r.Path, r.Authorizer)
			}
		}
	}
	for function, operations := range app.OperationsByFunction() {
		for _, op := range operations {
			path := strings.Replace(op.Path, "{file}", "{proxy+}", 1)
			if functions[path] != function {
				t.Errorf("ANY %s: function %q, want %q", path, functions[path], function)
			}
		}
	}
	if got := functions["/{proxy+}"]; got != "api" {
		t.Errorf("ANY /{proxy+}: function %q, want api", got)
	}
}

func TestEveryFunctionOfTheTemplateExists(t *testing.T) {
	want := slices.Sorted(maps.Keys(dynamotest.Model(t).Functions))
	if got := slices.Sorted(maps.Keys(app.Functions(nil, nil))); !slices.Equal(got, want) {
		t.Errorf("makers %v, the template's functions %v", got, want)
	}
	for _, name := range want {
		if _, err := os.Stat(filepath.Join("..", "..", "functions", name, "main.go")); err != nil {
			t.Errorf("function %s has no main: %v", name, err)
		}
	}
}

// webhooksFunction is the function of that name on a table of its own, with an
// environment beside the table's name and the service key.
func webhooksFunction(t *testing.T, environment map[string]string) app.GatewayFunc {
	t.Helper()
	base := dependenciesOf(servicetest.New(t))
	environment["TABLE_NAME"] = "t"
	environment["SERVICE_KEY"] = base64.StdEncoding.EncodeToString(make([]byte, app.ServiceKeySize))
	var err error
	if base.Config, err = app.ConfigFrom(func(name string) string { return environment[name] }); err != nil {
		t.Fatal(err)
	}
	handler, err := app.Webhooks(tools.Operation)(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func TestURLsAreRefusedThatTheWorkerWouldRefuse(t *testing.T) {
	for _, test := range []struct {
		private, ports string
		status         map[string]int // by url
	}{
		{"", "", map[string]int{
			"https://example.com/": http.StatusNotFound, "https://example.com:8080/": http.StatusNotFound, // accepted, of no application
			"https://example.com:9001/": http.StatusBadRequest, "https://10.0.0.1/": http.StatusBadRequest,
			"https://localhost/": http.StatusBadRequest, "http://example.com/": http.StatusBadRequest,
		}},
		{"false", "8080,8081", map[string]int{
			"https://example.com:8081/": http.StatusBadRequest, "https://example.com:9001/": http.StatusNotFound, "https://[::1]/": http.StatusBadRequest,
		}},
		{"true", "", map[string]int{
			"http://localhost:8080/": http.StatusNotFound, "http://10.0.0.1/": http.StatusNotFound, "http://127.0.0.1:9001/": http.StatusBadRequest,
		}},
	} {
		t.Run(test.private, func(t *testing.T) {
			handler := webhooksFunction(t, map[string]string{"ALLOW_PRIVATE_TARGETS": test.private, "REFUSED_PORTS": test.ports})
			for url, want := range test.status {
				got, err := handler(t.Context(), createEndpoint(url))
				if err != nil || got.StatusCode != want {
					t.Errorf("%s, private targets %q, refused ports %q: got %d %s, %v; want %d", url, test.private, test.ports, got.StatusCode, got.Body, err, want)
				}
			}
		})
	}
}

// createEndpoint is the event by which a user of an organization that has no
// application creates an endpoint.
func createEndpoint(url string) events.APIGatewayProxyRequest {
	user := auth.Principal{Kind: auth.KindUser, OrganizationID: value.NewID(), UserID: value.NewID(), Scopes: auth.AllScopes(), RateLimit: 600}
	event := events.APIGatewayProxyRequest{
		HTTPMethod: http.MethodPost, Path: "/developers/webhooks/endpoints",
		QueryStringParameters: map[string]string{"applicationId": value.NewID().String()},
		Headers:               map[string]string{"Host": "api.example.com", "Content-Type": "application/json"},
		Body:                  fmt.Sprintf(`{"url":%q,"events":["*"]}`, url),
	}
	servicetest.Authorize(&event, user)
	return event
}
