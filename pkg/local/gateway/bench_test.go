package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/local/gateway"
	"github.com/commerce-integration/service/pkg/local/template"
)

// BenchmarkRequest measures the gateway's own share of a request of the read
// API: an authorizer that is asked every time and a function's page of 20 KB,
// with JSON between them and without.
func BenchmarkRequest(b *testing.B) {
	model, err := template.Load("../../../template.yaml", map[string]string{"JwtIssuer": "i", "JwtAudience": "a"})
	if err != nil {
		b.Fatal(err)
	}
	page := make([]byte, 20<<10)
	for i := range page {
		page[i] = 'x'
	}
	answers := map[string][]byte{
		"authorizer": []byte(allowAll),
		"api":        []byte(`{"statusCode":200,"multiValueHeaders":{"Content-Type":["application/json"],"Etag":["\"e\""]},"body":"` + string(page) + `"}`),
	}
	invoke := func(_ context.Context, function string, _ []byte) ([]byte, error) { return answers[function], nil }
	var decision events.APIGatewayCustomAuthorizerResponse
	var answer events.APIGatewayProxyResponse
	for _, err := range []error{json.Unmarshal([]byte(plainAllow), &decision), json.Unmarshal(answers["api"], &answer)} {
		if err != nil {
			b.Fatal(err)
		}
	}
	call := func(_ context.Context, function string, _ any) (any, bool, error) {
		if function == "authorizer" {
			return decision, true, nil
		}
		return answer, true, nil
	}
	for _, way := range []struct {
		name   string
		direct gateway.Direct
	}{{"with JSON", nil}, {"without", call}} {
		b.Run(way.name, func(b *testing.B) { serveRequests(b, gateway.New(model, invoke, &gateway.Config{Direct: way.direct})) })
	}
}

const plainAllow = `{"principalId":"p","policyDocument":{"Version":"2012-10-17","Statement":[
	{"Action":["execute-api:Invoke"],"Effect":"Allow","Resource":["arn:aws:execute-api:*:*:*/*/*"]}]},
	"context":{"organizationId":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00","rateLimit":"600","scopes":"products:read"}}`

func serveRequests(b *testing.B, g http.Handler) {
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("GET", "http://127.0.0.1:8080/api/products?limit=20&page=2&isActive=true", nil)
		r.Header.Set("X-API-Key", "cis_live_abcdefgh01234567890123456789012345678901")
		r.Header.Set("Accept", "application/json")
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
}
