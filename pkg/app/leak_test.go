package app_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// TestASecretThatIsSentToTheWrongPlaceIsNotRepeated sends every kind of secret
// where clients put it by mistake. The fixture looks for it in the answers, the log and
// the table.
func TestASecretThatIsSentToTheWrongPlaceIsNotRepeated(t *testing.T) {
	w := newTour(t)
	w.base.Config.JWTIssuer, w.base.Config.JWTAudience, w.base.Config.HS256Secret = "i", "a", strings.Repeat("Hs256Secret", 3)
	w.Leaks.Made(w.base.Config.HS256Secret, w.base.Config.SigningSecrets)
	authorize, err := app.Authorizer(t.Context(), w.base)
	if err != nil {
		t.Fatal(err)
	}
	application := map[string]string{"id": "application"}
	w.take(&step{operation: "createApplication", keep: "application", body: `{"name": "ERP connector"}`})
	secrets := map[string]string{
		"a client secret":  w.kept["applicationSecret"],
		"an API key":       w.shown(&step{operation: "createApiKey", path: application, keep: "key", body: `{"name": "Nightly copy"}`}, "key"),
		"a webhook secret": w.shown(&step{operation: "createWebhookEndpoint", query: "applicationId={application}", body: `{"url": "https://erp.example.com/", "events": ["*"]}`}, "secret"),
		"a token": w.shown(&step{
			operation: "createToken",
			body:      `{"grant_type": "client_credentials", "client_id": "{applicationClient}", "client_secret": "{applicationSecret}"}`,
		}, "access_token"),
	}
	list := w.operations["listApplications"]
	for name, secret := range secrets {
		t.Run(name, func(t *testing.T) {
			for _, r := range misplaced(w.kept["application"], secret) {
				servicetest.Authorize(&r, w.caller(&list))
				request, err := http.NewRequestWithContext(t.Context(), r.HTTPMethod, "/", nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := w.functions["listApplications"](t.Context(), r)
				if err != nil || answer.StatusCode >= http.StatusInternalServerError {
					t.Errorf("%s %s: got %d %s, %v", r.HTTPMethod, r.Path, answer.StatusCode, answer.Body, err)
				}
				w.Leaks.Answered(request, answer.MultiValueHeaders, answer.Body)
			}
			for _, header := range []string{"X-API-Key", "Authorization", "authorization"} {
				for _, text := range []string{secret + "x", "Bearer " + secret + "x", "Basic " + secret, "Bearer  " + secret + " " + secret} {
					denial, err := authorize(t.Context(), events.APIGatewayCustomAuthorizerRequestTypeRequest{
						MethodArn: "arn:aws:execute-api:eu-central-1:1:api/prod/GET/api/products", Resource: "/api/products", Path: "/api/" + secret,
						Headers: map[string]string{header: text},
					})
					if err != nil || denial.Context["code"] == nil {
						t.Errorf("%s: %s: got %v, %v; want a denial", header, text, denial, err)
					}
					for _, v := range denial.Context {
						w.Leaks.Answered(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), nil, v.(string))
					}
				}
			}
		})
	}
}

// shown makes the request and returns the member of its answer.
func (w *tour) shown(s *step, name string) string {
	w.t.Helper()
	var made node
	if err := json.Unmarshal(w.take(s).Response, &made); err != nil {
		w.t.Fatal(err)
	}
	text, _ := made[name].(string)
	return text
}

// misplaced are requests to the developers function with the secret in the wrong
// place.
func misplaced(application, secret string) []events.APIGatewayProxyRequest {
	const applications = "/developers/applications"
	quoted, escaped := `"`+secret+`"`, url.QueryEscape(secret)
	jsonType, formType := "application/json", "application/x-www-form-urlencoded"
	all := []events.APIGatewayProxyRequest{
		{HTTPMethod: "GET", Path: applications + "/" + url.PathEscape(secret)},
		{HTTPMethod: "PUT", Path: applications + "/" + url.PathEscape(secret)},
		{HTTPMethod: "GET", Path: "/" + url.PathEscape(secret)},
		{HTTPMethod: "POST", Path: applications + "/" + application + "/api-keys/" + url.PathEscape(secret) + "/revoke"},
		{HTTPMethod: "GET", Path: applications, QueryStringParameters: map[string]string{"limit": secret}},
		{HTTPMethod: "GET", Path: applications, QueryStringParameters: map[string]string{"apiKey": secret}},
		{HTTPMethod: "GET", Path: applications, QueryStringParameters: map[string]string{"orderBy": secret, "status": secret, "createdFrom": secret, "ids": secret}},
		{HTTPMethod: "GET", Path: applications, Headers: map[string]string{"X-Site-Id": secret}},
		{HTTPMethod: "PATCH", Path: applications + "/" + application, Body: `{"name": "x"}`, Headers: map[string]string{"If-Match": secret, "Content-Type": jsonType}},
		{HTTPMethod: "POST", Path: applications, Body: `{"name": "x"}`, Headers: map[string]string{"Content-Type": secret}},
		{HTTPMethod: "POST", Path: applications, Body: `{"name": "x"}`, Headers: map[string]string{"Content-Encoding": secret, "Content-Type": jsonType}},
		{HTTPMethod: "POST", Path: applications, Body: `{"name": "x"}`, Headers: map[string]string{"Idempotency-Key": secret + " x", "Content-Type": jsonType}},
		{HTTPMethod: "GET", Path: applications, Headers: map[string]string{"Accept": secret + "/x"}},
	}
	for _, body := range []string{
		quoted, `{"name": ` + quoted + `, "x": 1}`, `{"name": 1, "website": ` + quoted + `}`, `{"redirectUri": ` + quoted + `}`, `{"name": ` + secret + `}`, secret,
	} {
		all = append(all, events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: applications, Body: body, Headers: map[string]string{"Content-Type": jsonType}})
	}
	for _, body := range []string{
		"grant_type=" + escaped, "grant_type=client_credentials&client_id=" + escaped + "&client_secret=" + escaped, "%zz" + secret,
		"grant_type=client_credentials&client_secret=" + escaped + "x&client_id=" + application, "client_secret=" + escaped + "&client_secret=" + escaped,
	} {
		all = append(all, events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/oauth/token", Body: body, Headers: map[string]string{"Content-Type": formType}})
	}
	for _, credentials := range []string{secret, secret + ":" + secret, application + ":" + secret + "x", "%zz:" + secret} {
		header := "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
		all = append(all, events.APIGatewayProxyRequest{
			HTTPMethod: "POST", Path: "/oauth/token", Body: "grant_type=client_credentials", Headers: map[string]string{"Content-Type": formType, "Authorization": header},
		})
	}
	return all
}
