package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/local/gateway"
	"github.com/commerce-integration/service/pkg/local/template"
)

// stack has the constructs that the gateway knows, in few routes.
const stack = `
Resources:
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: prod
      Auth:
        Authorizers:
          Users:
            FunctionPayloadType: REQUEST
            FunctionArn: !GetAtt Auth.Arn
            Identity: {Headers: [Authorization], ReauthorizeEvery: 300}
          Any:
            FunctionPayloadType: REQUEST
            FunctionArn: !GetAtt Auth.Arn
            Identity: {ReauthorizeEvery: 0}
      DefinitionBody:
        paths:
          /users:
            get: &users
              security: [{Users: []}]
              x-amazon-apigateway-integration: &integration
                type: aws_proxy
                uri: !Sub arn:aws:apigateway:local:lambda:path/2015-03-31/functions/${Web.Arn}/invocations
            head: *users
            x-amazon-apigateway-any-method: &nobody {x-amazon-apigateway-integration: *integration}
          /users/{id}: {get: *users}
          /users/{id}/keys/{keyId}: {get: *users}
          /users/me: {get: *nobody, post: *nobody}
          /any: {get: {security: [{Any: []}], x-amazon-apigateway-integration: *integration}}
          /files/{proxy+}: {x-amazon-apigateway-any-method: *nobody}
          /open: {x-amazon-apigateway-any-method: *nobody, get: *nobody}
      GatewayResponses:
        ACCESS_DENIED:
          StatusCode: 401
          ResponseParameters: {Headers: {X-Request-Id: context.requestId, WWW-Authenticate: "'Bearer'", X-Asked: method.request.header.X-Ask, Link: "'</prod/docs>; rel=help'"}}
          ResponseTemplates:
            application/json: '{"code":"$context.authorizer.code","message":"$context.authorizer.message","id":"$context.requestId"}'
        MISSING_AUTHENTICATION_TOKEN: &response
          StatusCode: 403
          ResponseTemplates: {application/json: '{"type":"$context.error.responseType"}'}
        BAD_REQUEST_BODY: {<<: *response, StatusCode: 400}
        UNAUTHORIZED: {<<: *response, StatusCode: 401}
        REQUEST_TOO_LARGE: {<<: *response, StatusCode: 413}
        AUTHORIZER_CONFIGURATION_ERROR: {<<: *response, StatusCode: 500}
        DEFAULT_5XX: {<<: *response, StatusCode: 502}
        AUTHORIZER_FAILURE: {<<: *response, StatusCode: 503}
        INTEGRATION_TIMEOUT: {<<: *response, StatusCode: 504}
  Auth: {Type: AWS::Serverless::Function, Properties: {CodeUri: dist/auth/}}
  Web: {Type: AWS::Serverless::Function, Properties: {CodeUri: dist/web/}}
`

const allowAll = `{"principalId":"p","policyDocument":{"Version":"2012-10-17","Statement":[
	{"Action":["execute-api:Invoke"],"Effect":"Allow","Resource":["arn:aws:execute-api:*:*:*/*/*"]}]},
	"context":{"text":"t","number":12,"float":1.5,"yes":true,"nothing":null}}`

const denyAll = `{"principalId":"p","policyDocument":{"Version":"2012-10-17","Statement":[
	{"Action":["execute-api:*"],"Effect":"Deny","Resource":["*"]}]},
	"context":{"code":"token_expired","message":"the token has expired"}}`

// rig is a gateway on a real listener, with functions that a test scripts.
type rig struct {
	t       *testing.T
	url     string
	mu      sync.Mutex
	auth    func(events.APIGatewayCustomAuthorizerRequestTypeRequest) (string, error)
	web     func(context.Context, events.APIGatewayProxyRequest) (string, error)
	direct  func(event any) (answer any, ok bool, err error) // nil: functions take JSON only
	asked   int                                              // calls of the authorizer
	invoked int                                              // calls of the function
	now     time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigWithin(t, time.Minute)
}

func newRigWithin(t *testing.T, timeout time.Duration) *rig {
	t.Helper()
	model, err := template.Resolve([]byte(stack), []byte("Outputs: {}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{
		t:   t,
		now: time.Date(2026, 11, 21, 6, 35, 41, 242e6, time.UTC),
		auth: func(events.APIGatewayCustomAuthorizerRequestTypeRequest) (string, error) {
			return allowAll, nil
		},
		web: func(context.Context, events.APIGatewayProxyRequest) (string, error) {
			return `{"statusCode":200,"headers":{"Content-Type":"text/plain"},"body":"ok"}`, nil
		},
	}
	handler := gateway.New(model, g.invoke, &gateway.Config{
		Clock:   func() time.Time { g.mu.Lock(); defer g.mu.Unlock(); return g.now },
		Logger:  slog.New(slog.DiscardHandler),
		Timeout: timeout,
		Direct: func(_ context.Context, _ string, event any) (any, bool, error) {
			if g.direct == nil {
				return nil, false, nil
			}
			return g.direct(event)
		},
	})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

func (g *rig) invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	var answer string
	var err error
	switch function {
	case "auth":
		var request events.APIGatewayCustomAuthorizerRequestTypeRequest
		if err := json.Unmarshal(payload, &request); err != nil {
			return nil, err
		}
		g.mu.Lock()
		g.asked++
		g.mu.Unlock()
		answer, err = g.auth(request)
	case "web":
		var request events.APIGatewayProxyRequest
		if err := json.Unmarshal(payload, &request); err != nil {
			return nil, err
		}
		g.mu.Lock()
		g.invoked++
		g.mu.Unlock()
		answer, err = g.web(ctx, request)
	default:
		err = fmt.Errorf("no function %s", function)
	}
	return []byte(answer), err
}

// events has the function answer with an empty body, and returns what it was asked last.
func (g *rig) events() *events.APIGatewayProxyRequest {
	got := &events.APIGatewayProxyRequest{}
	g.web = func(_ context.Context, r events.APIGatewayProxyRequest) (string, error) {
		*got = r
		return `{"statusCode":200}`, nil
	}
	return got
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (g *rig) send(method, target string, body io.Reader, headers ...string) reply {
	g.t.Helper()
	request, err := http.NewRequest(method, g.url+target, body)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	// Compression is a matter between client and function here.
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, target, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, target, err)
	}
	return reply{response.StatusCode, response.Header, string(content)}
}

func TestRoutesMatchByPrecedence(t *testing.T) {
	g := newRig(t)
	g.web = func(_ context.Context, r events.APIGatewayProxyRequest) (string, error) {
		text := fmt.Sprintf("%s %v", r.Resource, r.PathParameters)
		return `{"statusCode":200,"body":"` + text + `"}`, nil
	}
	for _, test := range []struct {
		method, target string
		wantStatus     int
		want           string
	}{
		{"GET", "/users", 200, "/users map[]"},
		{"GET", "/users/", 200, "/users map[]"},
		{"GET", "//users", 200, "/users map[]"},
		{"GET", "/users/7", 200, "/users/{id} map[id:7]"},
		{"GET", "/users/7/", 200, "/users/{id} map[id:7]"},
		{"GET", "/users/me", 200, "/users/me map[]"},
		{"GET", "/users/me/keys/k", 200, "/users/{id}/keys/{keyId} map[id:me keyId:k]"},
		{"GET", "/users/a%2Fb%20c", 200, "/users/{id} map[id:a%2Fb%20c]"},
		{"DELETE", "/users", 200, "/users map[]"},
		{"HEAD", "/users", 200, ""},
		{"GET", "/files/a/b/", 200, "/files/{proxy+} map[proxy:a/b]"},
		{"PUT", "/files/a", 200, "/files/{proxy+} map[proxy:a]"},
		{"DELETE", "/users/7", 403, `"MISSING_AUTHENTICATION_TOKEN"`},
		{"DELETE", "/users/me", 403, `"MISSING_AUTHENTICATION_TOKEN"`},
		{"get", "/users", 403, `"MISSING_AUTHENTICATION_TOKEN"`},
		{"TRACE", "/open", 200, "/open map[]"},
		{"GET", "/users//keys/k", 403, `"MISSING_AUTHENTICATION_TOKEN"`},
		{"GET", "/files", 403, `"MISSING_AUTHENTICATION_TOKEN"`},
		{"GET", "/", 403, `"MISSING_AUTHENTICATION_TOKEN"`},
		{"GET", "/nothing", 403, `"MISSING_AUTHENTICATION_TOKEN"`},
	} {
		got := g.send(test.method, test.target, nil, "Authorization", "Bearer t")
		if got.status != test.wantStatus || !strings.Contains(got.body, test.want) || test.method == "HEAD" && got.body != "" {
			t.Errorf("%s %s: got %d %s, want %d with %s", test.method, test.target, got.status, got.body, test.wantStatus, test.want)
		}
	}
}

func TestFunctionGetsTheEventThatLambdaGets(t *testing.T) {
	g := newRig(t)
	got := g.events()
	g.send("GET", "/users/7/?a=1&a=2&b=x+y%2Bz&empty=&bare&bad=%zz", nil,
		"Authorization", "Bearer t", "X-Many", "one", "X-Many", "two", "X-Forwarded-For", "192.0.2.1", "User-Agent", "test")

	host := strings.TrimPrefix(g.url, "http://")
	_, port, _ := strings.Cut(host, ":")
	want := events.APIGatewayProxyRequest{
		Resource: "/users/{id}", Path: "/users/7/", HTTPMethod: "GET",
		Headers: map[string]string{
			"Authorization": "Bearer t", "X-Many": "two", "User-Agent": "test", "Host": host,
			"X-Forwarded-For": "192.0.2.1, 127.0.0.1", "X-Forwarded-Port": port, "X-Forwarded-Proto": "http",
		},
		MultiValueHeaders: map[string][]string{
			"Authorization": {"Bearer t"}, "X-Many": {"one", "two"}, "User-Agent": {"test"}, "Host": {host},
			"X-Forwarded-For": {"192.0.2.1, 127.0.0.1"}, "X-Forwarded-Port": {port}, "X-Forwarded-Proto": {"http"},
		},
		QueryStringParameters: map[string]string{"a": "2", "b": "x y+z", "empty": "", "bare": "", "bad": "%zz"},
		MultiValueQueryStringParameters: map[string][]string{
			"a": {"1", "2"}, "b": {"x y+z"}, "empty": {""}, "bare": {""}, "bad": {"%zz"},
		},
		PathParameters: map[string]string{"id": "7"},
		RequestContext: events.APIGatewayProxyRequestContext{
			AccountID: "000000000000", APIID: "local", ResourceID: "/users/{id}", ResourcePath: "/users/{id}",
			Stage: "prod", Path: "/users/7/", HTTPMethod: "GET", Protocol: "HTTP/1.1",
			DomainName: host, DomainPrefix: "127",
			RequestID: got.RequestContext.RequestID, ExtendedRequestID: got.RequestContext.RequestID,
			RequestTime: "21/Nov/2026:06:35:41 +0000", RequestTimeEpoch: 1795242941242,
			Identity: events.APIGatewayRequestIdentity{SourceIP: "127.0.0.1", UserAgent: "test"},
			Authorizer: map[string]any{
				"principalId": "p", "text": "t", "number": "12", "float": "1.5", "yes": "true",
			},
		},
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if len(got.RequestContext.RequestID) != 36 {
		t.Errorf("request id %q is no UUID", got.RequestContext.RequestID)
	}
}

func TestEventIsUTF8AndItsBodyInBase64(t *testing.T) {
	g := newRig(t)
	got := g.events()
	answer := g.send("POST", "/users/me?a=%ff&%fe=b", strings.NewReader("\xfd"), "X-Odd", "\xfc")
	want := []string{"\ufffd", "b", "\ufffd", "/Q=="}
	is := []string{got.QueryStringParameters["a"], got.QueryStringParameters["\ufffd"], got.Headers["X-Odd"], got.Body}
	if diff := cmp.Diff(want, is); answer.status != 200 || diff != "" || !got.IsBase64Encoded {
		t.Errorf("got %d %s, base64 %t, event (-want +got):\n%s", answer.status, answer.body, got.IsBase64Encoded, diff)
	}
	if g.send("POST", "/users/me", nil); got.Body != "" || got.IsBase64Encoded {
		t.Errorf("an empty body: got %q, base64 %t", got.Body, got.IsBase64Encoded)
	}
}

func TestFunctionAnswersBecomeHTTP(t *testing.T) {
	for _, test := range []struct {
		name, answer string
		headers      []string
		wantStatus   int
		wantBody     string
		wantHeader   http.Header
	}{
		{
			"text", `{"statusCode":201,"headers":{"Content-Type":"text/plain","X-One":"1"},"body":"höh"}`, nil, 201, "höh",
			http.Header{"Content-Type": {"text/plain"}, "X-One": {"1"}},
		},
		{"default content type", `{"statusCode":200,"body":"{}"}`, nil, 200, "{}", http.Header{"Content-Type": {"application/json"}}},
		{"base64", `{"statusCode":200,"body":"H4sI","isBase64Encoded":true}`, []string{"Accept", "application/json"}, 200, "\x1f\x8b\b", nil},
		{"base64 without Accept", `{"statusCode":200,"body":"H4sI","isBase64Encoded":true}`, nil, 200, "H4sI", nil},
		{
			"both forms of headers", `{"statusCode":200,"headers":{"A":"1","B":"2"},"multiValueHeaders":{"A":["1","3"],"B":["4"]}}`, nil, 200, "",
			http.Header{"A": {"1", "3"}, "B": {"4", "2"}},
		},
		{
			"renamed headers", `{"statusCode":401,"multiValueHeaders":{"WWW-Authenticate":["Bearer"],"Server":["s"]}}`, nil, 401, "",
			http.Header{"X-Amzn-Remapped-Www-Authenticate": {"Bearer"}, "X-Amzn-Remapped-Server": {"s"}, "Www-Authenticate": nil, "Server": nil},
		},
		{"not modified", `{"statusCode":304,"headers":{"ETag":"\"e\""},"body":"ignored"}`, nil, 304, "", http.Header{"Etag": {`"e"`}}},
		{"nothing", ``, nil, 502, `{"type":"DEFAULT_5XX"}`, nil},
		{"null", `null`, nil, 502, `{"type":"DEFAULT_5XX"}`, nil},
		{"no status", `{"body":"x"}`, nil, 502, `{"type":"DEFAULT_5XX"}`, nil},
		{"function error", `{"errorMessage":"boom","errorType":"T"}`, nil, 502, `{"type":"DEFAULT_5XX"}`, nil},
		{"broken base64", `{"statusCode":200,"body":"?","isBase64Encoded":true}`, []string{"Accept", "*/*"}, 502, `{"type":"DEFAULT_5XX"}`, nil},
		{"too large", `{"statusCode":200,"body":"` + strings.Repeat("x", 6291556) + `"}`, nil, 502, `{"type":"DEFAULT_5XX"}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newRig(t)
			g.web = func(context.Context, events.APIGatewayProxyRequest) (string, error) { return test.answer, nil }
			got := g.send("GET", "/open", nil, test.headers...)
			if got.status != test.wantStatus || got.body != test.wantBody {
				t.Errorf("got %d %q, want %d %q", got.status, got.body, test.wantStatus, test.wantBody)
			}
			for name, want := range test.wantHeader {
				if diff := cmp.Diff(want, got.header[name]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			if len(got.header.Get("X-Amzn-Requestid")) != 36 {
				t.Errorf("X-Amzn-RequestId is %q", got.header.Get("X-Amzn-Requestid"))
			}
		})
	}
}

func TestAuthorizerDecides(t *testing.T) {
	policyFor := func(effect, resource string) string {
		return `{"principalId":"p","policyDocument":{"Statement":[{"Action":["execute-api:Invoke"],"Effect":"` + effect + `","Resource":["` + resource + `"]}]}}`
	}
	for _, test := range []struct {
		name, answer string
		err          error
		wantStatus   int
		want         string
	}{
		{"allows all", allowAll, nil, 200, "ok"},
		{"allows this", policyFor("Allow", "arn:aws:execute-api:local:000000000000:local/prod/GET/users/7"), nil, 200, "ok"},
		{"allows by wildcards", policyFor("Allow", "arn:*:local/prod/*/users/*"), nil, 200, "ok"},
		{"allows another", policyFor("Allow", "arn:aws:execute-api:local:000000000000:local/prod/GET/users/8"), nil, 401, `"code":""`},
		{"allows longer ones", policyFor("Allow", "arn:aws:execute-api:local:000000000000:local/prod/GET/users/7*8"), nil, 401, `"code":""`},
		{"allows shorter ones", policyFor("Allow", "arn:*GET/users"), nil, 401, `"code":""`},
		{"stars match nothing too", policyFor("Allow", "*arn:*/users/*7*"), nil, 200, "ok"},
		{"two stars share no text", policyFor("Allow", "arn:*/users/*7*7"), nil, 401, `"code":""`},
		{"denies", denyAll, nil, 401, `{"code":"token_expired","message":"the token has expired","id":"`},
		{
			"deny beats allow",
			`{"principalId":"p","policyDocument":{"Statement":[{"Action":["*"],"Effect":"Allow","Resource":["*"]},{"Action":["*"],"Effect":"Deny","Resource":["*"]}]}}`,
			nil, 401, `"code":""`,
		},
		{"fails", "", errors.New("table unreachable"), 503, `{"type":"AUTHORIZER_FAILURE"}`},
		{"says Unauthorized", "", errors.New("Unauthorized"), 401, `"UNAUTHORIZED"`},
		{"says Unauthorized as a process", "", fmt.Errorf("invoke authorizer: %w", errors.New("errorString: Unauthorized")), 401, `"UNAUTHORIZED"`},
		{"no policy", `{"principalId":"p"}`, nil, 500, `{"type":"AUTHORIZER_CONFIGURATION_ERROR"}`},
		{"no principal", strings.Replace(allowAll, `"p"`, `""`, 1), nil, 500, `{"type":"AUTHORIZER_CONFIGURATION_ERROR"}`},
		{"nested context", strings.Replace(allowAll, `"t"`, `["t"]`, 1), nil, 500, `{"type":"AUTHORIZER_CONFIGURATION_ERROR"}`},
		{"no JSON", "boom", nil, 500, `{"type":"AUTHORIZER_CONFIGURATION_ERROR"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newRig(t)
			g.auth = func(events.APIGatewayCustomAuthorizerRequestTypeRequest) (string, error) {
				return test.answer, test.err
			}
			got := g.send("GET", "/users/7", nil, "Authorization", "Bearer t")
			if got.status != test.wantStatus || !strings.Contains(got.body, test.want) {
				t.Errorf("got %d %s, want %d with %s", got.status, got.body, test.wantStatus, test.want)
			}
			if served := test.wantStatus == 200; served != (g.invoked == 1) {
				t.Errorf("function was invoked %d times", g.invoked)
			}
		})
	}
}

func TestAuthorizerSeesTheRequestAndItsDenialRendersATemplate(t *testing.T) {
	g := newRig(t)
	var asked events.APIGatewayCustomAuthorizerRequestTypeRequest
	g.auth = func(r events.APIGatewayCustomAuthorizerRequestTypeRequest) (string, error) {
		asked = r
		return denyAll, nil
	}
	got := g.send("GET", "/any?q=1", nil, "X-Ask", "who")
	if asked.Type != "REQUEST" || asked.MethodArn != "arn:aws:execute-api:local:000000000000:local/prod/GET/any" || asked.Resource != "/any" ||
		asked.Headers["X-Ask"] != "who" || asked.QueryStringParameters["q"] != "1" || asked.RequestContext.Stage != "prod" {
		t.Errorf("the authorizer is asked %+v", asked)
	}
	id := got.header.Get("X-Request-Id")
	want := `{"code":"token_expired","message":"the token has expired","id":"` + id + `"}`
	if got.status != 401 || got.body != want || len(id) != 36 || id != got.header.Get("X-Amzn-Requestid") {
		t.Errorf("got %d %s with id %q, want 401 %s", got.status, got.body, id, want)
	}
	if got.header.Get("WWW-Authenticate") != "Bearer" || got.header.Get("X-Asked") != "who" || got.header.Get("Link") != "</docs>; rel=help" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", got.header)
	}
}

func TestMissingIdentitySourceIsRefusedWithoutAsking(t *testing.T) {
	g := newRig(t)
	for _, headers := range [][]string{nil, {"Authorization", ""}, {"X-API-Key", "k"}} {
		got := g.send("GET", "/users", nil, headers...)
		if got.status != 401 || !strings.Contains(got.body, `"type":"UNAUTHORIZED"`) {
			t.Errorf("%v: got %d %s", headers, got.status, got.body)
		}
	}
	if g.asked != 0 {
		t.Errorf("authorizer was asked %d times", g.asked)
	}
}

func TestPoliciesAreCachedByIdentitySource(t *testing.T) {
	g := newRig(t)
	denied := func(r events.APIGatewayCustomAuthorizerRequestTypeRequest) (string, error) {
		if r.Headers["Authorization"] == "Bearer bad" {
			return denyAll, nil
		}
		return allowAll, nil
	}
	g.auth = denied
	step := func(name, path, token string, wantStatus, wantAsked int) {
		t.Helper()
		got := g.send("GET", path, nil, "Authorization", token)
		if got.status != wantStatus || g.asked != wantAsked {
			t.Errorf("%s: got %d after %d calls of the authorizer, want %d after %d", name, got.status, g.asked, wantStatus, wantAsked)
		}
	}
	step("first", "/users", "Bearer a", 200, 1)
	step("same token", "/users", "Bearer a", 200, 1)
	step("same token, other path", "/users/7", "Bearer a", 200, 1)
	step("other token", "/users", "Bearer b", 200, 2)
	step("denied", "/users", "Bearer bad", 401, 3)
	step("denied again", "/users/7", "Bearer bad", 401, 3)
	step("without a cache", "/any", "Bearer a", 200, 4)
	step("without a cache again", "/any", "Bearer a", 200, 5)
	g.mu.Lock()
	g.now = g.now.Add(300 * time.Second)
	g.mu.Unlock()
	step("expired", "/users", "Bearer a", 200, 6)

	g.auth = func(events.APIGatewayCustomAuthorizerRequestTypeRequest) (string, error) {
		return "", errors.New("down")
	}
	step("failure", "/users", "Bearer c", 503, 7)
	g.auth = denied
	step("failures are not cached", "/users", "Bearer c", 200, 8)
}

func TestFailedFunctionIsAnAnswerOfTheGateway(t *testing.T) {
	g := newRigWithin(t, time.Millisecond)
	g.web = func(ctx context.Context, _ events.APIGatewayProxyRequest) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	if got := g.send("GET", "/open", nil); got.status != 504 || got.body != `{"type":"INTEGRATION_TIMEOUT"}` {
		t.Errorf("a slow function: got %d %s", got.status, got.body)
	}
	g = newRig(t)
	g.web = func(context.Context, events.APIGatewayProxyRequest) (string, error) {
		return "", errors.New("secret detail")
	}
	if got := g.send("GET", "/open", nil); got.status != 502 || got.body != `{"type":"DEFAULT_5XX"}` {
		t.Errorf("a failed function: got %d %s", got.status, got.body)
	}
}

func TestLargeRequestsAreRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		body io.Reader
		want int
	}{
		{"largest that fits Lambda", strings.NewReader(strings.Repeat("x", 4<<20)), 200},
		{"too large for Lambda", strings.NewReader(strings.Repeat("x", 5<<20)), 413},
		{"too large for the gateway", strings.NewReader(strings.Repeat("x", 10<<20+1)), 413},
		{"too large, of unknown length", io.MultiReader(strings.NewReader(strings.Repeat("x", 10<<20)), strings.NewReader("x")), 413},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newRig(t)
			if got := g.send("POST", "/users/me", test.body); got.status != test.want {
				t.Errorf("got %d %s, want %d", got.status, got.body, test.want)
			}
		})
	}
}

// answerDirectly answers as functions of this process do.
func answerDirectly(event any) (answer any, ok bool, err error) {
	switch event := event.(type) {
	case events.APIGatewayCustomAuthorizerRequestTypeRequest:
		var decision events.APIGatewayCustomAuthorizerResponse
		err := json.Unmarshal([]byte(allowAll), &decision)
		return decision, true, err
	case events.APIGatewayProxyRequest:
		return events.APIGatewayProxyResponse{StatusCode: 200, Body: event.HTTPMethod + " " + event.Body + event.Headers["X-Odd"]}, true, nil
	}
	return nil, false, nil
}

func TestFunctionsOfThisProcessAreCalledWithoutJSON(t *testing.T) {
	g := newRig(t)
	g.direct = answerDirectly
	for _, test := range []struct {
		name, body, want string
		wantInvoked      int // with JSON
	}{
		{"as usual", "text", "POST dGV4dA==\ufffd", 0},
		{"long", strings.Repeat("x", 3<<20), "ok", 1},
		{"too long for Lambda", strings.Repeat("\x00", 5<<20), `{"type":"REQUEST_TOO_LARGE"}`, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := g.send("POST", "/users/me", strings.NewReader(test.body), "X-Odd", "\xfc")
			if got.body != test.want || g.invoked != test.wantInvoked {
				t.Errorf("got %q after %d calls with JSON, want %q after %d", got.body, g.invoked, test.want, test.wantInvoked)
			}
		})
	}
	if got := g.send("GET", "/any", nil); got.body != "GET " || g.asked != 0 {
		t.Errorf("got %q, and %d calls of the authorizer with JSON", got.body, g.asked)
	}
}
