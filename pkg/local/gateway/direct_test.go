package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/local/gateway"
	"github.com/commerce-integration/service/pkg/local/template"
)

// pair is an authorizer and a function of this process, whose answers are
// given, and what they were asked.
type pair struct {
	decision  events.APIGatewayCustomAuthorizerResponse
	denial    error
	answer    events.APIGatewayProxyResponse
	failure   error
	asked     []any
	byPayload int // calls with JSON
}

func (p *pair) handler(function string) any {
	if function == "auth" {
		return func(_ context.Context, r events.APIGatewayCustomAuthorizerRequestTypeRequest) (events.APIGatewayCustomAuthorizerResponse, error) {
			p.asked = append(p.asked, r)
			return p.decision, p.denial
		}
	}
	return func(_ context.Context, r events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		p.asked = append(p.asked, r)
		return p.answer, p.failure
	}
}

func (p *pair) invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	p.byPayload++
	return lambda.NewHandler(p.handler(function)).Invoke(ctx, payload)
}

func (p *pair) call(ctx context.Context, function string, event any) (answer any, ok bool, err error) {
	switch r := event.(type) {
	case events.APIGatewayProxyRequest:
		answer, err = p.handler(function).(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error))(ctx, r)
	case events.APIGatewayCustomAuthorizerRequestTypeRequest:
		answer, err = p.handler(function).(func(context.Context, events.APIGatewayCustomAuthorizerRequestTypeRequest) (events.APIGatewayCustomAuthorizerResponse, error))(ctx, r)
	}
	return answer, true, err
}

// exchanged is all that can be seen of one request.
type exchanged struct {
	Status int
	Header http.Header
	Body   string
	Asked  []any
}

// exchange sends the request to a gateway before the pair.
func (p *pair) exchange(model *template.Model, direct gateway.Direct, r *http.Request) exchanged {
	g := gateway.New(model, p.invoke, &gateway.Config{
		Clock:  func() time.Time { return time.Date(2026, 11, 21, 6, 35, 41, 242e6, time.UTC) },
		Logger: slog.New(slog.DiscardHandler), Direct: direct,
	})
	p.asked, p.byPayload = nil, 0
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	id := w.Header().Get("X-Amzn-Requestid")
	for _, values := range w.Header() {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], id, "(id)")
		}
	}
	return exchanged{w.Code, w.Header(), strings.ReplaceAll(w.Body.String(), id, "(id)"), p.asked}
}

// alike compares what was exchanged but for the ids of requests.
func alike(a, b exchanged) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(events.APIGatewayProxyRequestContext{}, "RequestID", "ExtendedRequestID"),
		cmpopts.IgnoreFields(events.APIGatewayCustomAuthorizerRequestTypeRequestContext{}, "RequestID"),
	)
}

func text(t *rapid.T, name string) string {
	return rapid.SampledFrom([]string{
		"", "plain", "ünïcödé 中文 🙂", `"quoted" \ and <b>&`, "a\u2028b\u2029c", "\x00\x1f\x7f", "broken \xff\xfe", "half \xe4\xb8", "a,b;q=0.5", "\ufffd",
	}).Draw(t, name)
}

func drawRequest(t *rapid.T) func() *http.Request {
	method := rapid.SampledFrom([]string{"GET", "HEAD", "POST", "PATCH"}).Draw(t, "method")
	target := rapid.SampledFrom([]string{"/any", "/open", "/open/", "/files/a/b%2Fc", "/files/%e4%b8%ad", "/files/%ff", "/nowhere"}).Draw(t, "path")
	query := rapid.SampledFrom([]string{"", "?", "?a=1", "?a=1&a=2&b", "?a=%E4%B8%AD+x", "?%zz=%&=", "?a=%ff&%fe=1", "?\xff=\xfe&a=\"<"}).Draw(t, "query")
	header := http.Header{}
	for _, name := range []string{"X-Api-Key", "Accept", "Content-Type", "X-Forwarded-For", "X-Odd"} {
		for range rapid.IntRange(0, 2).Draw(t, name+"#") {
			header.Add(name, text(t, name))
		}
	}
	if rapid.Bool().Draw(t, "binary") {
		header.Set("Content-Type", "image/png")
		header.Set("Accept", "image/png, */*")
	}
	body := text(t, "body")
	return func() *http.Request {
		r := httptest.NewRequest(method, "http://example.test"+strings.SplitN(target, "?", 2)[0], strings.NewReader(body))
		r.URL.RawQuery = strings.TrimPrefix(query, "?")
		r.Header = header.Clone()
		return r
	}
}

func drawPair(t *rapid.T) *pair {
	texts := func(name string) string { return text(t, name) }
	p := &pair{decision: events.APIGatewayCustomAuthorizerResponse{
		PrincipalID: texts("principal"),
		PolicyDocument: events.APIGatewayCustomAuthorizerPolicy{Version: "2012-10-17", Statement: []events.IAMPolicyStatement{{
			Action:   []string{rapid.SampledFrom([]string{"execute-api:Invoke", "execute-api:*", "s3:*", ""}).Draw(t, "action")},
			Effect:   rapid.SampledFrom([]string{"Allow", "Allow", "Allow", "Deny", "Perhaps"}).Draw(t, "effect"),
			Resource: rapid.SampledFrom([][]string{{"*"}, {"arn:aws:execute-api:*:*:*/*/GET/*"}, {}, nil}).Draw(t, "resource"),
		}}},
		Context: rapid.MapOf(rapid.SampledFrom([]string{"code", "message", "odd\xff"}), rapid.SampledFrom([]any{
			"text", "ünï", "broken \xff", 12, 1.5, true, nil, []string{"list"}, map[string]any{"a": 1},
		})).Draw(t, "context"),
	}}
	p.denial = rapid.SampledFrom([]error{nil, nil, nil, errors.New("Unauthorized"), errors.New("broken"), context.DeadlineExceeded}).Draw(t, "denial")
	p.failure = rapid.SampledFrom([]error{nil, nil, nil, errors.New("broken"), context.DeadlineExceeded}).Draw(t, "failure")
	p.answer = events.APIGatewayProxyResponse{
		StatusCode: rapid.SampledFrom([]int{200, 200, 201, 204, 304, 404, 500, 0, 99, 600}).Draw(t, "status"),
		Body:       rapid.SampledFrom([]string{"", "text", "bm8=", "no base64!", "ünï\u2028<b>", "broken \xff"}).Draw(t, "answer"),
	}
	p.answer.IsBase64Encoded = rapid.Bool().Draw(t, "base64")
	names := rapid.SampledFrom([]string{"Content-Type", "x-a", "X-A", "Set-Cookie", "www-authenticate", "Transfer-Encoding", "X-\xff"})
	if rapid.Bool().Draw(t, "headers") {
		p.answer.Headers = rapid.MapOfN(names, rapid.Custom(func(t *rapid.T) string { return text(t, "value") }), 0, 1).Draw(t, "headers")
	}
	if rapid.Bool().Draw(t, "multi") {
		p.answer.MultiValueHeaders = rapid.MapOfN(names, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return text(t, "value") }), 1, 2), 0, 1).Draw(t, "multi")
	}
	return p
}

func openModel(t *testing.T, binary string) *template.Model {
	t.Helper()
	model, err := template.Resolve([]byte(strings.ReplaceAll(stack, "%s", binary)), []byte("Outputs: {}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// What functions see and what clients get must not depend on whether there was
// JSON between gateway and functions.
func TestWithoutJSONEverythingIsAsWithIt(t *testing.T) {
	models := []*template.Model{openModel(t, ""), openModel(t, "image/png"), openModel(t, "'*/*'")}
	direct, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p, request := drawPair(t), drawRequest(t)
		model := models[rapid.IntRange(0, len(models)-1).Draw(t, "binary types")]
		want := p.exchange(model, nil, request())
		got := p.exchange(model, p.call, request())
		if diff := alike(want, got); diff != "" {
			t.Fatalf("%s %s: -with JSON +without:\n%s", request().Method, request().URL, diff)
		}
		if all++; p.byPayload == 0 && len(got.Asked) > 0 {
			direct++
		}
	})
	if direct < all/10 {
		t.Errorf("%d of %d requests spared JSON: the comparison compares nothing", direct, all)
	}
}

func TestPlainRequestsSpareJSON(t *testing.T) {
	p := &pair{
		decision: events.APIGatewayCustomAuthorizerResponse{
			PrincipalID: "p", Context: map[string]any{"a": "b"},
			PolicyDocument: events.APIGatewayCustomAuthorizerPolicy{Statement: []events.IAMPolicyStatement{
				{Action: []string{"execute-api:Invoke"}, Effect: "Allow", Resource: []string{"*"}},
			}},
		},
		answer: events.APIGatewayProxyResponse{StatusCode: 200, Body: "fine"},
	}
	got := p.exchange(openModel(t, ""), p.call, httptest.NewRequest("GET", "/any?a=1", nil))
	if got.Status != 200 || got.Body != "fine" || len(got.Asked) != 2 || p.byPayload != 0 {
		t.Errorf("got %+v with %d calls by payload, want two direct calls", got, p.byPayload)
	}
}

// The limits are those of the JSON text, which may be longer than what it says.
func TestLimitsOfPayloadsHoldWithoutJSON(t *testing.T) {
	large := bytes.Repeat([]byte{1}, 1_200_000) // six bytes each in JSON
	p := &pair{answer: events.APIGatewayProxyResponse{StatusCode: 200, Body: string(large)}}
	if got := p.exchange(openModel(t, ""), p.call, httptest.NewRequest("GET", "/open", nil)); got.Status != http.StatusBadGateway {
		t.Errorf("answer of %d control characters: got %d, want 502", len(large), got.Status)
	}
	p.answer.Body = ""
	if got := p.exchange(openModel(t, ""), p.call, httptest.NewRequest("POST", "/open", bytes.NewReader(large))); got.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("request of %d control characters: got %d, want 413", len(large), got.Status)
	}
	p.answer.Body = strings.Repeat("x", 5_500_000)
	if got := p.exchange(openModel(t, ""), p.call, httptest.NewRequest("GET", "/open", nil)); got.Status != 200 || len(got.Body) != len(p.answer.Body) {
		t.Errorf("answer of %d letters: got %d with %d, want all of it", len(p.answer.Body), got.Status, len(got.Body))
	}
}
