package app_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	stdjson "encoding/json"
	"io"
	"log/slog"
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

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/oauth"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// methods are those that API Gateway hands on.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions}

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

// FuzzEvents hands events to the functions of the API as Lambda does. One that can
// be read is answered.
func FuzzEvents(f *testing.F) {
	s := servicetest.New(f)
	s.Set(time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC))
	d := dependenciesOf(s)
	d.Logger = slog.New(slog.DiscardHandler)
	names := []string{"api", "developers", "webhooks", "receipts"}
	handlers := make([]lambda.Handler, len(names))
	for i, name := range names {
		function, err := app.Functions(nil)[name](f.Context(), d)
		if err != nil {
			f.Fatal(err)
		}
		handlers[i] = lambda.NewHandler(function)
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
	f.Add(byte(0), `{"httpMethod":"POST","path":"/api/products","isBase64Encoded":true,"body":"!"}`)
	f.Add(byte(1), `{"httpMethod":"GET","path":"","requestContext":{"authorizer":{"principalKind":"user","organizationId":7,"rateLimit":1e300}}}`)
	f.Fuzz(func(t *testing.T, function byte, text string) {
		var event events.APIGatewayProxyRequest
		if !readable(text, &event) {
			return
		}
		var got events.APIGatewayProxyResponse
		answer, err := handlers[int(function)%len(names)].Invoke(t.Context(), []byte(text))
		if err != nil || json.Unmarshal(answer, &got) != nil {
			t.Fatalf("%s: got %s, %v", text, answer, err)
		}
		checkAnswer(t, text, &got)
	})
}

// readable reports whether the text is an event. API Gateway sends no other
// methods, no domain that is none and no body that claims to be base64 and is
// not.
func readable(text string, event *events.APIGatewayProxyRequest) bool {
	if stdjson.Unmarshal([]byte(text), event) != nil { // as Lambda decodes it
		return false
	}
	_, undecoded := base64.StdEncoding.DecodeString(event.Body)
	_, unreachable := url.Parse("https://" + event.RequestContext.DomainName)
	return slices.Contains(methods, event.HTTPMethod) && (!event.IsBase64Encoded || undecoded == nil) && unreachable == nil
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
