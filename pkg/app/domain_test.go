package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// send makes a request with headers, given as names and values, and returns the answer.
func (w *gatewayService) send(t *testing.T, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// userToken signs in a user of the organization.
func (w *gatewayService) userToken(t *testing.T) string {
	t.Helper()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "https://issuer.example", "aud": "commerce", "sub": "somebody", "organizationId": w.Org.String(),
		"exp": w.Time().Add(time.Hour).Unix(), "roles": []string{"OWNER"},
	}).SignedString([]byte(strings.Repeat("s", 32)))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTheServiceWorksBelowABasePath(t *testing.T) {
	w := deployed(t, map[string]string{"BasePath": "v1"})
	w.grant(t, "orders:read")
	cfg := clientcredentials.Config{
		ClientID: w.client.ClientID.String(), ClientSecret: w.client.ClientSecret, TokenURL: w.URL + "/v1/oauth/token",
	}
	client := cfg.Client(t.Context())
	for path, want := range map[string]int{
		"/v1/api/me": 200, "/v1/api/orders": 200, "/v1/api/orders/" + w.App.String(): 404, "/v1/api/products": 403,
		"/v1/health": 200, "/v1/health/": 200, "/v1": 404, "/v1/": 404, "/v1/v1/health": 404, "/health": 404,
	} {
		if got := w.status(t, client, path); got != want {
			t.Errorf("GET %s: got %d, want %d", path, got, want)
		}
	}
	if led := w.send(t, http.MethodGet, "/v1/", "", "Accept", "text/html").Request.URL.Path; led != "/v1/portal" {
		t.Errorf("a browser at /v1/ is led to %s", led)
	}
	links := w.send(t, http.MethodGet, "/v1/api/orders", "", "Authorization", "Bearer "+w.userToken(t)).Header.Get("Link")
	if !strings.HasPrefix(links, "<"+w.URL+"/v1/api/orders?") {
		t.Errorf("links %s, want them below %s/v1", links, w.URL)
	}
	made := w.send(t, http.MethodPost, "/v1/developers/applications", `{"name":"shop"}`,
		"Authorization", "Bearer "+w.userToken(t), "Content-Type", "application/json")
	location := made.Header.Get("Location")
	path, below := strings.CutPrefix(location, w.URL+"/v1/developers/applications/")
	if made.StatusCode != http.StatusCreated || !below || path == "" {
		t.Errorf("creating an application: got %d at %q", made.StatusCode, location)
	}
}

// API Gateway leaves the base path in the event's path, and only there: the context's path has the stage instead below
// the API's own domain.
func TestABasePathIsOfTheCustomDomainOnly(t *testing.T) {
	deps := dependenciesOf(servicetest.New(t))
	deps.Config.BasePath = "v1"
	developers, err := app.Developers(t.Context(), deps)
	if err != nil {
		t.Fatal(err)
	}
	const about = "/.well-known/oauth-authorization-server"
	for name, test := range map[string]struct{ path, context, issuer string }{
		"custom domain":                       {"/v1" + about, "/v1" + about, "https://api.example.com/v1"},
		"own domain":                          {about, "/prod" + about, "https://api.example.com/prod"},
		"own domain with the base path":       {"/v1" + about, "/prod/v1" + about, ""},
		"a segment that only begins like it":  {"/v1x" + about, "/v1x" + about, ""},
		"a custom domain mapped without one":  {about, about, "https://api.example.com"},
		"the base path twice":                 {"/v1/v1" + about, "/v1/v1" + about, ""},
		"the base path alone":                 {"/v1", "/v1", ""},
		"a path that has to be escaped first": {"/v1/%", "/v1/%", ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := developers(t.Context(), events.APIGatewayProxyRequest{
				HTTPMethod: http.MethodGet, Path: test.path, Headers: map[string]string{"Host": "api.example.com"},
				RequestContext: events.APIGatewayProxyRequestContext{Stage: "prod", Path: test.context},
			})
			var got struct {
				Issuer string `json:"issuer"`
			}
			if err == nil {
				err = json.Unmarshal([]byte(answer.Body), &got)
			}
			found := answer.StatusCode == http.StatusOK
			if err != nil || got.Issuer != test.issuer || found != (test.issuer != "") || !found && answer.StatusCode != http.StatusNotFound {
				t.Errorf("got %d, issuer %q, %v; want issuer %q", answer.StatusCode, got.Issuer, err, test.issuer)
			}
		})
	}
}
