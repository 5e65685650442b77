package app_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	stdjson "encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/oauth"
	"github.com/commerce-integration/service/pkg/api/tools"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// methods are those that API Gateway hands on.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions}

// FuzzRequests asks the functions of the API. {application}, {endpoint} and the
// like stand for the ids of what there is; the headers stand one on a line. No
// request breaks a function, errors are of their shape, and the same question is
// answered the same.
func FuzzRequests(f *testing.F) {
	w := newTour(f)
	steps := tourSteps()
	last := slices.IndexFunc(steps, func(s step) bool { return s.operation == "revokeApiKey" }) // what comes then ends what there is
	for _, s := range steps[:last] {
		op := w.operations[s.operation]
		path, query, body := op.Path, s.query, s.body
		for name, kept := range s.path {
			path = strings.Replace(path, "{"+name+"}", "{"+kept+"}", 1)
		}
		header := "Content-Type: application/json"
		w.take(&s)
		if op.BodyType != "" {
			header, body = "Content-Type: "+op.BodyType, "grant_type=client_credentials&client_id={applicationClient}&client_secret={applicationSecret}&scope=orders%3Aread"
		}
		method := byte(slices.Index(methods, op.Method)) //nolint:gosec // a small number
		f.Add(method, byte(0), path, query, header, body)
		if op.Method == http.MethodPost {
			f.Add(method, byte(1), path, query, header+"\nIdempotency-Key: fuzz", body)
		}
	}
	for _, seed := range []struct{ path, query, header string }{
		{"/api/products/", "search=tea%20GREEN&siteId={site}&limit=100", "X-Site-Id: {site}"},
		{"/api/orders", "createdFrom=2026-01-01T00:00:00%2B01:00&afterId={site}", "X-Site-Id:\nAccept: text/html"},
		{"/api/categories", "parentId=root&includeGlobal=true", "If-None-Match: *\nAccept-Encoding: gzip"},
		{"/api/customers", "ids={site},{site}&email=a%40b", "Accept: application/json;q=0"},
		{"/api/invoices/{invoice}", "", "Cache-Control: no-cache"},
		{"/%zz", "%zz=%", "Authorization: Basic eDp5"},
		{"/docs/style.css", "", ""},
		{"/", "", "Accept: text/html"},
		{"/portal/../placeholder.txt", "", ""},
	} {
		f.Add(byte(0), byte(2), seed.path, seed.query, seed.header, "")
	}
	w.kept["site"] = value.NewID().String()
	f.Fuzz(func(t *testing.T, method, caller byte, path, query, header, body string) {
		event := events.APIGatewayProxyRequest{
			HTTPMethod: methods[int(method)%len(methods)], Path: w.expand(path), Body: w.expand(body),
			MultiValueHeaders:               map[string][]string{"Host": {"api.example.com"}},
			MultiValueQueryStringParameters: url.Values{},
		}
		for line := range strings.SplitSeq(w.expand(header), "\n") {
			if name, v, is := strings.Cut(line, ":"); is {
				event.MultiValueHeaders[name] = append(event.MultiValueHeaders[name], strings.TrimSpace(v))
			}
		}
		for part := range strings.SplitSeq(w.expand(query), "&") { // as API Gateway decodes it
			name, v, _ := strings.Cut(part, "=")
			if name, err := url.QueryUnescape(name); err == nil && name != "" {
				decoded, _ := url.QueryUnescape(v)
				event.MultiValueQueryStringParameters[name] = append(event.MultiValueQueryStringParameters[name], decoded)
			}
		}
		if p, known := w.principal(caller); known {
			servicetest.Authorize(&event, p)
		}
		w.Pass(time.Second) // within the rate limit of the application
		first := w.answerTo(t, event)
		if event.HTTPMethod != http.MethodGet && first.MultiValueHeaders["Idempotency-Replayed"] == nil {
			return
		}
		if again := w.answerTo(t, event); again.StatusCode != first.StatusCode || first.StatusCode < 300 && again.Body != first.Body {
			t.Fatalf("%+v: answered %d %s, and again %d %s", event, first.StatusCode, first.Body, again.StatusCode, again.Body)
		}
	})
}

// principal is one of three callers, or none.
func (w *tour) principal(caller byte) (p auth.Principal, known bool) {
	p = auth.Principal{Kind: auth.KindUser, OrganizationID: w.Org, UserID: w.App, Scopes: append(auth.AllScopes(), auth.DevelopersAdmin), RateLimit: 1 << 30}
	switch caller % 4 {
	case 1:
		p.Kind, p.UserID, p.ApplicationID = auth.KindApplication, value.ID{}, value.MustID(w.kept["application"])
	case 2:
		p.Kind, p.UserID, p.ApplicationID, p.KeyID = auth.KindKey, value.ID{}, w.App, value.MustID(w.kept["key"])
	case 3:
		return p, false
	}
	return p, true
}

// answerTo asks the function of the path and checks the shape of its answer.
func (w *tour) answerTo(t *testing.T, event events.APIGatewayProxyRequest) events.APIGatewayProxyResponse {
	t.Helper()
	operation := "getMe"
	switch {
	case strings.HasPrefix(event.Path, "/developers/webhooks"):
		operation = "listWebhookEvents"
	case strings.HasPrefix(event.Path, "/developers"), strings.HasPrefix(event.Path, "/oauth"), strings.HasPrefix(event.Path, "/.well-known"):
		operation = "createApplication"
	}
	answer, err := w.functions[operation](t.Context(), event)
	if err != nil {
		t.Fatalf("%+v: %v", event, err)
	}
	checkAnswer(t, event, &answer)
	return answer
}

// checkAnswer fails unless the answer is a success, or an error of its shape
// that is not ours.
func checkAnswer(t *testing.T, event any, answer *events.APIGatewayProxyResponse) {
	t.Helper()
	if answer.StatusCode < 200 || answer.StatusCode >= 500 || len(answer.MultiValueHeaders["X-Request-Id"]) != 1 {
		t.Fatalf("%+v: got %d %s", event, answer.StatusCode, answer.Body)
	}
	if answer.StatusCode < 400 || answer.Body == "" { // to HEAD
		return
	}
	content := contentOf(t, answer)
	var problem api.Problem
	var refusal oauth.TokenError
	known := json.RejectUnknownMembers(true)
	switch {
	case json.Unmarshal(content, &problem, known) == nil:
		if problem.StatusCode != answer.StatusCode || problem.Code == "" || problem.Message == "" || problem.Details == nil || problem.RequestID == "" {
			t.Fatalf("%+v: got the error %s", event, content)
		}
	case json.Unmarshal(content, &refusal, known) != nil || refusal.Error == "" || refusal.Description == "":
		t.Fatalf("%+v: got %d %s, which is no error of ours", event, answer.StatusCode, content)
	}
}

// FuzzEvents hands events to the functions as Lambda does. One that can be read
// is answered; the authorizer allows nothing but its good token, and no message
// of a back office comes again.
func FuzzEvents(f *testing.F) {
	s := servicetest.New(f)
	s.Set(time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC))
	d := dependenciesOf(s)
	d.Logger = slog.New(slog.DiscardHandler)
	d.Config.JWTIssuer, d.Config.JWTAudience, d.Config.HS256Secret = "https://id.example.com", "commerce", strings.Repeat("secret", 6)
	names := []string{"authorizer", "api", "developers", "webhooks", "receipts", "ingest"}
	handlers := make([]lambda.Handler, len(names))
	for i, name := range names {
		function, err := app.Functions(nil, tools.Operation)[name](f.Context(), d)
		if err != nil {
			f.Fatal(err)
		}
		handlers[i] = lambda.NewHandler(function)
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": d.Config.JWTIssuer, "aud": d.Config.JWTAudience, "exp": s.At(time.Hour).Std().Unix(), "sub": "someone", "organizationId": value.ID{15: 1}.String(),
	}).SignedString([]byte(d.Config.HS256Secret))
	if err != nil {
		f.Fatal(err)
	}
	samples, err := filepath.Glob("../../events/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range samples {
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "-")
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if i := slices.Index(names, name); i >= 0 {
			f.Add(byte(i), string(text)) //nolint:gosec // a small number
		}
	}
	f.Add(byte(0), `{"resource":"/api/orders","methodArn":"arn:aws:execute-api:r:1:a/prod/GET/api/orders","headers":{"authorization":"Bearer {token}"}}`)
	f.Add(byte(1), `{"httpMethod":"POST","path":"/api/products","isBase64Encoded":true,"body":"!"}`)
	f.Add(byte(2), `{"httpMethod":"GET","path":"","requestContext":{"authorizer":{"principalKind":"user","organizationId":7,"rateLimit":1e300}}}`)
	f.Add(byte(4), `{"Records":[{"messageId":"m","body":"{\"organizationId\":\"00000000-0000-0000-0000-000000000001\",\"records\":[7]}"}]}`)
	f.Fuzz(func(t *testing.T, function byte, text string) {
		i := int(function) % len(names)
		text = strings.ReplaceAll(text, "{token}", token)
		answer, err := handlers[i].Invoke(t.Context(), []byte(text))
		switch names[i] {
		case "authorizer":
			checkDecision(t, text, token, answer, err)
		case "ingest":
			checkDone(t, text, answer, err)
		default:
			var event events.APIGatewayProxyRequest
			var got events.APIGatewayProxyResponse
			if !readable(text, &event) {
				return
			}
			if err != nil || json.Unmarshal(answer, &got) != nil {
				t.Fatalf("%s: got %s, %v", text, answer, err)
			}
			checkAnswer(t, text, &got)
		}
	})
}

// readable reports whether the text is an event. API Gateway sends no other
// methods, no domain that is none and no body that claims to be base64 and is
// not; SQS gives every message an id, and takes none that is empty or has
// other characters than XML.
func readable(text string, event any) bool {
	if stdjson.Unmarshal([]byte(text), event) != nil { // as Lambda decodes it
		return false
	}
	switch event := event.(type) {
	case *events.APIGatewayProxyRequest:
		_, undecoded := base64.StdEncoding.DecodeString(event.Body)
		_, unreachable := url.Parse("https://" + event.RequestContext.DomainName)
		return slices.Contains(methods, event.HTTPMethod) && (!event.IsBase64Encoded || undecoded == nil) && unreachable == nil
	case *events.SQSEvent:
		return !slices.ContainsFunc(event.Records, func(m events.SQSMessage) bool {
			return m.MessageId == "" || m.Body == "" || strings.ContainsFunc(m.Body, func(r rune) bool {
				return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
			})
		})
	}
	return true
}

func checkDecision(t *testing.T, text, token string, answer []byte, err error) {
	t.Helper()
	var event events.APIGatewayCustomAuthorizerRequestTypeRequest
	var got events.APIGatewayCustomAuthorizerResponse
	if !readable(text, &event) || err != nil && strings.Contains(err.Error(), "read just now") { // with another unknown key id
		return
	}
	if err != nil || json.Unmarshal(answer, &got) != nil || len(got.PolicyDocument.Statement) != 1 {
		t.Fatalf("%s: got %s, %v", text, answer, err)
	}
	sent := slices.Concat(slices.Collect(maps.Values(event.MultiValueHeaders))...)
	good := func(header string) bool { return strings.HasSuffix(strings.TrimSpace(header), token) }
	allowed := got.PolicyDocument.Statement[0].Effect != "Deny"
	if allowed && !slices.ContainsFunc(append(sent, slices.Collect(maps.Values(event.Headers))...), good) {
		t.Fatalf("%s is allowed: %s", text, answer)
	}
	if allowed != (got.Context["principalKind"] != nil) {
		t.Fatalf("%s: got the context %v", text, got.Context)
	}
}

func checkDone(t *testing.T, text string, answer []byte, err error) {
	t.Helper()
	var event events.SQSEvent
	var got events.SQSEventResponse
	if !readable(text, &event) {
		return
	}
	if err != nil || json.Unmarshal(answer, &got) != nil || len(got.BatchItemFailures) > 0 {
		t.Fatalf("%s: got %s, %v", text, answer, err)
	}
}

// contentOf is the answer's body as a client reads it.
func contentOf(t *testing.T, answer *events.APIGatewayProxyResponse) []byte {
	t.Helper()
	content := []byte(answer.Body)
	if answer.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		content = decoded
	}
	if !slices.Equal(answer.MultiValueHeaders["Content-Encoding"], []string{"gzip"}) {
		return content
	}
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return unpacked
}
