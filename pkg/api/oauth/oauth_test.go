package oauth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/oauth"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

const (
	base = "https://api.example.com/prod"
	form = "application/x-www-form-urlencoded"
)

// harness is the area on a real table, with one client.
type harness struct {
	*servicetest.Service
	server  *api.Server
	client  account.Application // with its secret
	user    *auth.Principal     // who asks for operations that take credentials; nil: nobody
	failing error               // of reading the signing secret
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	h := &harness{Service: servicetest.New(t)}
	secrets := func(context.Context) (apptoken.Secrets, error) {
		return apptoken.Secrets{Current: strings.Repeat("s", 64)}, h.failing
	}
	limiter := ratelimit.New(h.Table, h.Time)
	box, err := sealed.NewBox(make([]byte, sealed.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	h.server = api.NewServer(oauth.Operations(h.Table, oauth.Config{
		Clock: h.Time, Signer: apptoken.NewSigner(secrets, h.Table, h.Time), Attempts: limiter, Answers: box,
	}), api.Config{
		Caller: func(*http.Request) api.Caller {
			if h.user != nil {
				return api.Caller{Principal: *h.user, RequestID: "r", BaseURL: base}
			}
			return api.Caller{Err: auth.ErrNoPrincipal, RequestID: "r", BaseURL: base}
		},
		Limiter: limiter, Clock: h.Time, Logger: h.Leaks.Logger(),
	})
	h.client = h.newClient(t, 600)
	return h
}

func (h *harness) newClient(t testing.TB, rateLimit int) account.Application {
	t.Helper()
	name := "shop"
	app := account.NewApplication(h.Org, value.NewID(), account.CreateApplicationDto{Name: &name}, h.Now())
	app.RateLimit = rateLimit
	h.Leaks.Made(app.ClientSecret)
	if err := h.Table.CreateApplication(t.Context(), h.Org, app, account.ReadScopes()); err != nil {
		t.Fatal(err)
	}
	return app
}

type answer = servicetest.Answer

func (h *harness) do(method, path, body string, headers ...string) answer {
	return h.Ask(h.server, method, path, body, headers...)
}

// ask asks for a token with the pairs as the form.
func (h *harness) ask(pairs ...string) answer {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return h.do("POST", "/oauth/token", values.Encode(), "Content-Type", form)
}

// with asks for a token with the client's secret in the body.
func (h *harness) with(client account.Application, more ...string) answer {
	return h.ask(append([]string{"grant_type", "client_credentials", "client_id", client.ClientID.String(), "client_secret", client.ClientSecret}, more...)...)
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

func TestAClientGetsAToken(t *testing.T) {
	h := newHarness(t)
	reading := strings.Join(account.ReadScopes(), " ")
	for name, tc := range map[string]struct {
		got   answer
		scope string
	}{
		"secret in the body": {h.with(h.client), reading},
		"HTTP Basic": {h.do("POST", "/oauth/token", "grant_type=client_credentials", "Content-Type", form+"; charset=UTF-8",
			"Authorization", basic(h.client.ClientID.String(), h.client.ClientSecret)), reading},
		"HTTP Basic and the same id": {h.do("POST", "/oauth/token/", "grant_type=client_credentials&client_secret=&client_id="+h.client.ClientID.String(),
			"Content-Type", form, "Authorization", basic(h.client.ClientID.String(), h.client.ClientSecret)), reading},
		"fewer scopes":                {h.with(h.client, "scope", " products:read  orders:read products:read"), "orders:read products:read"},
		"an empty scope":              {h.with(h.client, "scope", ""), reading},
		"a parameter that is unknown": {h.with(h.client, "audience", "x"), reading},
		"the client id in upper case": {h.ask("grant_type", "client_credentials", "client_id", strings.ToUpper(h.client.ClientID.String()), "client_secret", h.client.ClientSecret), reading},
	} {
		t.Run(name, func(t *testing.T) {
			var token oauth.Token
			if tc.got.Status != 200 || json.Unmarshal([]byte(tc.got.Body), &token, json.RejectUnknownMembers(true)) != nil {
				t.Fatalf("got %d %s", tc.got.Status, tc.got.Body)
			}
			if token.TokenType != "Bearer" || token.ExpiresIn != 3600 || token.Scope != tc.scope {
				t.Errorf("got %s, want Bearer, 3600 and %q", tc.got.Body, tc.scope)
			}
			if h := tc.got.Header; h.Get("Cache-Control") != "no-store" || h.Get("Pragma") != "no-cache" || h.Get("X-RateLimit-Limit") != "600" || h.Get("Content-Type") != "application/json" {
				t.Errorf("headers: got %v", h)
			}
			p, denial, err := auth.NewAuthorizer(nil, h.Table, auth.AuthorizerConfig{Clock: h.Time}).
				Authorize(t.Context(), auth.Request{Read: true, Headers: map[string][]string{"Authorization": {"Bearer " + token.AccessToken}}})
			if denial != nil || err != nil || p.ApplicationID != h.client.ID || p.OrganizationID != h.Org || p.Scopes.String() != tc.scope {
				t.Errorf("principal %+v, %v, %v", p, denial, err)
			}
		})
	}
}

func TestEveryErrorHasTheShapeOfRFC6749(t *testing.T) {
	h := newHarness(t)
	id, secret := h.client.ClientID.String(), h.client.ClientSecret
	send := func(body string, headers ...string) answer {
		return h.do("POST", "/oauth/token", body, append([]string{"Content-Type", form}, headers...)...)
	}
	good := "grant_type=client_credentials&client_id=" + id + "&client_secret=" + secret
	for name, tc := range map[string]struct {
		got       answer
		status    int
		code      string
		challenge bool
	}{
		"nothing":                        {send(""), 401, "invalid_client", false},
		"no grant type":                  {h.ask("client_id", id, "client_secret", secret), 400, "invalid_request", false},
		"another grant type":             {h.ask("grant_type", "password", "client_id", id, "client_secret", secret), 400, "unsupported_grant_type", false},
		"no secret":                      {h.ask("grant_type", "client_credentials", "client_id", id), 401, "invalid_client", false},
		"no id":                          {h.ask("grant_type", "client_credentials", "client_secret", secret), 401, "invalid_client", false},
		"a wrong secret":                 {h.with(account.Application{ClientID: h.client.ClientID, ClientSecret: "cs_wrong"}), 401, "invalid_client", false},
		"an unknown client":              {h.with(account.Application{ClientID: value.NewRandomID(), ClientSecret: secret}), 401, "invalid_client", false},
		"an id that is no UUID":          {h.ask("grant_type", "client_credentials", "client_id", "shop", "client_secret", secret), 401, "invalid_client", false},
		"the application's id":           {h.with(account.Application{ClientID: h.client.ID, ClientSecret: secret}), 401, "invalid_client", false},
		"a wrong secret by Basic":        {send("grant_type=client_credentials", "Authorization", basic(id, "x")), 401, "invalid_client", true},
		"an unknown client by Basic":     {send("grant_type=client_credentials", "Authorization", basic(value.NewRandomID().String(), secret)), 401, "invalid_client", true},
		"no secret by Basic":             {send("grant_type=client_credentials", "Authorization", basic(id, "")), 401, "invalid_client", true},
		"another scheme":                 {send("grant_type=client_credentials", "Authorization", "Bearer x"), 401, "invalid_client", true},
		"Basic that is no base64":        {send("grant_type=client_credentials", "Authorization", "Basic ?"), 401, "invalid_client", true},
		"Basic that is not form-encoded": {send("grant_type=client_credentials", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("%zz:x"))), 401, "invalid_client", true},
		"both":                           {send(good, "Authorization", basic(id, secret)), 400, "invalid_request", false},
		"two Authorization headers":      {send(good, "Authorization", basic(id, secret), "Authorization", basic(id, secret)), 400, "invalid_request", false},
		"Basic and another id":           {send("grant_type=client_credentials&client_id=x", "Authorization", basic(id, secret)), 400, "invalid_request", false},
		"a parameter twice":              {send(good + "&grant_type=client_credentials"), 400, "invalid_request", false},
		"a bad escape":                   {send(good + "&scope=%zz"), 400, "invalid_request", false},
		"invalid UTF-8":                  {send(good + "&scope=\xff"), 400, "invalid_request", false},
		"a semicolon":                    {send(good + ";scope=x"), 400, "invalid_request", false},
		"a parameter in the query":       {h.do("POST", "/oauth/token?client_id="+id, good, "Content-Type", form), 400, "invalid_request", false},
		"JSON":                           {h.do("POST", "/oauth/token", `{}`, "Content-Type", "application/json"), 415, "invalid_request", false},
		"no media type":                  {h.do("POST", "/oauth/token", good), 415, "invalid_request", false},
		"compressed":                     {send(good, "Content-Encoding", "gzip"), 415, "invalid_request", false},
		"too large":                      {send(good + "&scope=" + strings.Repeat("x", api.MaxBody)), 413, "invalid_request", false},
		"no JSON wanted":                 {send(good, "Accept", "text/html"), 406, "invalid_request", false},
		"an unknown scope":               {h.with(h.client, "scope", "orders:read everything"), 400, "invalid_scope", false},
		"a scope that is not granted":    {h.with(h.client, "scope", "webhooks:read"), 400, "invalid_scope", false},
	} {
		t.Run(name, func(t *testing.T) {
			var shape oauth.TokenError
			if err := json.Unmarshal([]byte(tc.got.Body), &shape, json.RejectUnknownMembers(true)); err != nil {
				t.Fatalf("%s: %v", tc.got.Body, err)
			}
			if tc.got.Status != tc.status || shape.Error != tc.code || shape.Description == "" {
				t.Errorf("got %d %s, want %d %s", tc.got.Status, tc.got.Body, tc.status, tc.code)
			}
			if got := strings.HasPrefix(tc.got.Header.Get("WWW-Authenticate"), "Basic "); got != tc.challenge {
				t.Errorf("WWW-Authenticate: got %q", tc.got.Header.Get("WWW-Authenticate"))
			}
			if tc.got.Header.Get("Cache-Control") != "no-store" || tc.got.Header.Get("X-Request-Id") == "" {
				t.Errorf("headers: got %v", tc.got.Header)
			}
			if strings.Contains(tc.got.Body, secret) || strings.ContainsAny(shape.Description, "\"\\") {
				t.Errorf("the answer holds the secret or characters that RFC 6749 does not allow: %s", tc.got.Body)
			}
		})
	}
	for _, got := range []answer{h.do("GET", "/oauth/token", ""), h.do("POST", "/oauth/tokens", good, "Content-Type", form)} {
		if !strings.Contains(got.Body, `"statusCode":40`) {
			t.Errorf("a wrong method or path: got %d %s, want the service's own shape", got.Status, got.Body)
		}
	}
}

func TestAnUnknownClientAndAWrongSecretAreAnsweredAlike(t *testing.T) {
	h := newHarness(t)
	wrong := h.with(account.Application{ClientID: h.client.ClientID, ClientSecret: "cs_" + strings.Repeat("x", 40)})
	unknown := h.with(account.Application{ClientID: value.NewRandomID(), ClientSecret: h.client.ClientSecret})
	if wrong.Status != unknown.Status || wrong.Body != unknown.Body || !maps.EqualFunc(wrong.Header, unknown.Header, slices.Equal) {
		t.Errorf("a wrong secret: %d %s %v\nan unknown client: %d %s %v", wrong.Status, wrong.Body, wrong.Header, unknown.Status, unknown.Body, unknown.Header)
	}
}

func TestAnApplicationsStateAndSecrets(t *testing.T) {
	h := newHarness(t)
	var second string
	if _, err := h.Table.ChangeClient(t.Context(), h.Org, h.client.ID, func(c *account.Client) error { second = c.RotateSecret(h.Now()); return nil }); err != nil {
		t.Fatal(err)
	}
	first, rotated := h.client, h.client
	rotated.ClientSecret = second
	h.Pass(24*time.Hour - time.Millisecond)
	for name, c := range map[string]account.Application{"old": first, "new": rotated} {
		if got := h.with(c); got.Status != 200 {
			t.Errorf("the %s secret a day after the rotation: got %d %s", name, got.Status, got.Body)
		}
	}
	h.Pass(time.Millisecond)
	if old, now := h.with(first), h.with(rotated); old.Status != 401 || now.Status != 200 {
		t.Errorf("24 h after: got %d by the old secret, %d by the new one", old.Status, now.Status)
	}
	h.Suspend(t, h.client.ID)
	if got := h.with(rotated); got.Status != 400 || !strings.Contains(got.Body, `"unauthorized_client"`) {
		t.Errorf("a suspended application: got %d %s", got.Status, got.Body)
	}
	if got := h.with(first); got.Status != 401 {
		t.Errorf("a wrong secret of a suspended application: got %d %s, want what a stranger gets", got.Status, got.Body)
	}
	if _, err := h.Table.DeleteApplication(t.Context(), h.Org, h.client.ID, func(*account.Application) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := h.with(rotated); got.Status != 401 {
		t.Errorf("a deleted application: got %d %s", got.Status, got.Body)
	}
}

func TestRequestsForTokensCountAgainstTheApplicationAndGuessesApart(t *testing.T) {
	h := newHarness(t)
	client := h.newClient(t, 3)
	wrong := client
	wrong.ClientSecret = "cs_wrong"
	for n := range 60 {
		if got := h.with(wrong); got.Status != 401 || got.Header.Get("X-RateLimit-Limit") != "" {
			t.Fatalf("guess %d: got %d %v", n, got.Status, got.Header)
		}
	}
	limited := func(got answer) {
		t.Helper()
		if got.Status != 429 || got.Header.Get("Retry-After") == "" || !strings.Contains(got.Body, `"temporarily_unavailable"`) {
			t.Errorf("got %d %v %s, want 429", got.Status, got.Header, got.Body)
		}
	}
	limited(h.with(wrong))
	for n := range 3 {
		if got := h.with(client); got.Status != 200 {
			t.Fatalf("request %d: got %d %s", n, got.Status, got.Body)
		}
	}
	limited(h.with(client))
	if d, err := ratelimit.New(h.Table, h.Time).Admit(t.Context(), 1, ratelimit.Subject{ID: client.ID.String(), Limit: 3}); err != nil || d.Allowed {
		t.Errorf("a request with a key of the application: got %+v, %v, want it refused too", d, err)
	}
}

func TestARefusedRequestForATokenIsAClientErrorOfTheApplication(t *testing.T) {
	h := newHarness(t)
	for range 20 { // the last lease may not show all
		if got := h.with(h.client, "scope", "everything"); got.Status != 400 {
			t.Fatalf("got %d %s, want 400", got.Status, got.Body)
		}
	}
	today := h.Now()
	counted, err := h.Table.Usage(t.Context(), h.Org, h.client.ID, today, today)
	if u := counted[today.Std().Format(time.DateOnly)]; err != nil || u.Requests < 20 || u.ClientErrors < 10 {
		t.Errorf("usage: got %+v, %v, want 20 requests and most of them client errors", u, err)
	}
}

func TestASigningSecretThatCannotBeReadIsUnavailable(t *testing.T) {
	h := newHarness(t)
	h.failing = fault.Busy(errors.New("secret name inside"))
	got := h.with(h.client)
	if got.Status != 503 || got.Header.Get("Retry-After") == "" || !strings.Contains(got.Body, `"temporarily_unavailable"`) || strings.Contains(got.Body, "inside") {
		t.Errorf("got %d %v %s", got.Status, got.Header, got.Body)
	}
}

func TestKeysAndMetadataArePublic(t *testing.T) {
	h := newHarness(t)
	keys := h.do("GET", "/.well-known/jwks.json", "")
	var set apptoken.KeySet
	if err := json.Unmarshal([]byte(keys.Body), &set, json.RejectUnknownMembers(true)); err != nil || keys.Status != 200 || len(set.Keys) != 1 {
		t.Fatalf("got %d %s, %v", keys.Status, keys.Body, err)
	}
	published, err := h.Table.SigningKeys(t.Context())
	if diff := cmp.Diff(published.KeySet, set); err != nil || diff != "" {
		t.Errorf("keys: %v (-published +answered):\n%s", err, diff)
	}
	meta := h.do("GET", "/.well-known/oauth-authorization-server", "")
	want := `{"issuer":"https://api.example.com/prod","authorization_endpoint":"https://api.example.com/prod/portal/authorize",` +
		`"token_endpoint":"https://api.example.com/prod/oauth/token","revocation_endpoint":"https://api.example.com/prod/oauth/revoke",` +
		`"jwks_uri":"https://api.example.com/prod/.well-known/jwks.json",` +
		`"scopes_supported":["` + strings.Join(account.TokenScopes(), `","`) + `"],"response_types_supported":["code"],"response_modes_supported":["query"],` +
		`"grant_types_supported":["client_credentials","authorization_code","refresh_token"],"code_challenge_methods_supported":["S256"],` +
		`"authorization_response_iss_parameter_supported":true,` +
		`"token_endpoint_auth_methods_supported":["client_secret_basic","client_secret_post","none"],` +
		`"revocation_endpoint_auth_methods_supported":["client_secret_basic","client_secret_post","none"],"service_documentation":"https://api.example.com/prod/docs"}`
	if meta.Status != 200 || meta.Body != want {
		t.Errorf("metadata: got %d %s\nwant %s", meta.Status, meta.Body, want)
	}
	for _, got := range []answer{keys, meta} {
		if got.Header.Get("Cache-Control") != "public, max-age=300" {
			t.Errorf("Cache-Control: got %q", got.Header.Get("Cache-Control"))
		}
	}
}
