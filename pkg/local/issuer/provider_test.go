package issuer

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"

	"github.com/commerce-integration/service/pkg/auth"
)

const (
	portalURL = "http://127.0.0.1:3000/portal"
	verifier  = "a-verifier-of-43-characters-that-nobody-guesses"
)

// browser is a browser with the page of the portal.
type browser struct {
	t        *testing.T
	provider string
	client   *http.Client
}

// newBrowser starts a provider whose clock can be moved.
func newBrowser(t *testing.T, clock *time.Time) *browser {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i, err := New(Config{Issuer: server.URL, Audience: "commerce", Clock: func() time.Time { return *clock }})
	if err != nil {
		t.Fatal(err)
	}
	owner := User{Name: "Owner", Grant: Grant{Subject: user.String(), OrganizationID: org, Roles: []auth.Role{auth.Owner}}}
	NewProvider(i, ProviderConfig{ClientID: "portal", Redirects: []string{portalURL}, Users: []User{owner}}).Handle(mux)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{t, server.URL, &http.Client{Jar: jar, CheckRedirect: stay}}
}

// request is the query of a good authorization request with other values for some parameters.
func request(changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"client_id": {"portal"}, "redirect_uri": {portalURL}, "response_type": {"code"}, "state": {"s"}, "nonce": {"n"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	return with(q, changes...)
}

func with(values url.Values, changes ...string) url.Values {
	for i := 0; i < len(changes); i += 2 {
		values.Set(changes[i], changes[i+1])
	}
	return values
}

// authorize asks for a code as the user, or without choosing one, and returns the parameters of the answer.
func (b *browser) authorize(name string, q url.Values) (status int, answer url.Values) {
	b.t.Helper()
	method, body := http.MethodGet, ""
	if name != "" {
		method, body = http.MethodPost, "user="+url.QueryEscape(name)
	}
	r := b.send(method, "/authorize?"+q.Encode(), body)
	to, err := r.Location()
	if err != nil {
		return r.StatusCode, nil
	}
	if got := to.Scheme + "://" + to.Host + to.Path; got != portalURL {
		b.t.Errorf("the answer goes to %s, want %s", got, portalURL)
	}
	return r.StatusCode, to.Query()
}

func (b *browser) send(method, path, body string) *http.Response {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.provider+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

type tokens struct {
	Access  string `json:"access_token"`
	ID      string `json:"id_token"`
	Refresh string `json:"refresh_token"`
	Error   string `json:"error"`
}

func (b *browser) token(form url.Values) (got tokens) {
	b.t.Helper()
	r := b.send(http.MethodPost, "/token", form.Encode())
	if err := json.UnmarshalRead(r.Body, &got); err != nil {
		b.t.Fatal(err)
	}
	return got
}

func codeForm(code string, changes ...string) url.Values {
	return with(url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {portalURL}, "client_id": {"portal"},
	}, changes...)
}

func refreshForm(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {"portal"}}
}

// signIn signs in as the owner.
func (b *browser) signIn() tokens {
	b.t.Helper()
	_, answer := b.authorize("Owner", request())
	return b.token(codeForm(answer.Get("code")))
}

func TestASignInGivesTokensThatTheServiceAccepts(t *testing.T) {
	clock := start
	b := newBrowser(t, &clock)
	v, err := auth.NewVerifier(auth.VerifierConfig{Issuer: b.provider, Audience: "commerce", JWKSURL: b.provider + "/.well-known/jwks.json", Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	got := b.signIn()
	p, denial, err := v.Verify(t.Context(), got.Access)
	if denial != nil || err != nil || p.UserID != user || p.OrganizationID != org || !p.Scopes.Has(auth.DevelopersAdmin) {
		t.Errorf("the access token: got %v, %v, %v", p, denial, err)
	}
	if _, denial, _ := v.Verify(t.Context(), got.ID); denial == nil {
		t.Error("the ID token is accepted as a bearer")
	}
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(got.ID, claims); err != nil || claims["nonce"] != "n" || claims["aud"] != "portal" {
		t.Errorf("the ID token: got %v, %v", claims, err)
	}
}

func TestAuthorizationRequestsAreAnsweredToTheClientAlone(t *testing.T) {
	b := newBrowser(t, &start)
	for name, c := range map[string]struct {
		q      url.Values
		user   string
		status int
		error  string
	}{
		"another client":   {request("client_id", "x"), "Owner", http.StatusBadRequest, ""},
		"another redirect": {request("redirect_uri", portalURL+"/../x"), "Owner", http.StatusBadRequest, ""},
		"no PKCE":          {request("code_challenge", ""), "Owner", http.StatusSeeOther, "invalid_request"},
		"plain PKCE":       {request("code_challenge_method", "plain"), "Owner", http.StatusSeeOther, "invalid_request"},
		"an implicit flow": {request("response_type", "token"), "Owner", http.StatusSeeOther, "invalid_request"},
		"an unknown user":  {request(), "Nobody", http.StatusSeeOther, "access_denied"},
		"nobody signed in": {request("prompt", "none"), "", http.StatusSeeOther, "login_required"},
		"the page":         {request(), "", http.StatusOK, ""},
	} {
		status, answer := b.authorize(c.user, c.q)
		if status != c.status || answer.Get("error") != c.error || answer.Get("code") != "" {
			t.Errorf("%s: got %d %v, want %d %s", name, status, answer, c.status, c.error)
		}
		if answer != nil && (answer.Get("state") != "s" || answer.Get("iss") != b.provider) {
			t.Errorf("%s: got %v, want state and issuer", name, answer)
		}
	}
}

func TestACodeIsGoodOnceInTimeAndForWhoAskedForIt(t *testing.T) {
	clock := start
	b := newBrowser(t, &clock)
	for name, c := range map[string]struct {
		changes []string
		after   time.Duration
		want    string
	}{
		"at the last moment": {nil, codeTTL - 1, ""},
		"too late":           {nil, codeTTL, "invalid_grant"},
		"another verifier":   {[]string{"code_verifier", verifier + "x"}, 0, "invalid_grant"},
		"another redirect":   {[]string{"redirect_uri", "http://127.0.0.1:3000/"}, 0, "invalid_grant"},
		"another client":     {[]string{"client_id", "x"}, 0, "invalid_grant"},
		"another code":       {[]string{"code", "x"}, 0, "invalid_grant"},
		"no known grant":     {[]string{"grant_type", "password"}, 0, "invalid_grant"},
	} {
		clock = start
		_, answer := b.authorize("Owner", request())
		clock = start.Add(c.after)
		form := codeForm(answer.Get("code"), c.changes...)
		if got := b.token(form); got.Error != c.want || (got.Access == "") == (c.want == "") {
			t.Errorf("%s: got %+v, want %q", name, got, c.want)
		}
		if got := b.token(form); got.Error != "invalid_grant" {
			t.Errorf("%s, again: got %+v", name, got)
		}
	}
}

func TestARefreshTokenIsGoodOnceAndUntilTheSessionEnds(t *testing.T) {
	b := newBrowser(t, &start)
	first := b.signIn()
	second := b.token(refreshForm(first.Refresh))
	if second.Access == "" || second.Refresh == first.Refresh || b.token(refreshForm(first.Refresh)).Error == "" {
		t.Errorf("a refresh token is not replaced: %+v", second)
	}
	b.send(http.MethodPost, "/revoke", "token="+second.Refresh)
	if got := b.token(refreshForm(second.Refresh)); got.Error == "" {
		t.Errorf("a revoked one: got %+v", got)
	}
	third := b.signIn()
	if _, answer := b.authorize("", request("prompt", "none")); answer.Get("code") == "" {
		t.Errorf("signed in, without a page: got %v", answer)
	}
	if status, _ := b.authorize("", request("prompt", "login")); status != http.StatusOK {
		t.Errorf("asked to sign in again: got %d, want the page", status)
	}
	for back, want := range map[string]string{"http://elsewhere.example/": "", portalURL: portalURL} {
		r := b.send(http.MethodGet, "/logout?post_logout_redirect_uri="+url.QueryEscape(back), "")
		if got := r.Header.Get("Location"); got != want {
			t.Errorf("after the sign-out to %s: got %q, want %q", back, got, want)
		}
	}
	if got := b.token(refreshForm(third.Refresh)); got.Error == "" {
		t.Errorf("after the sign-out: got %+v", got)
	}
	if _, answer := b.authorize("", request("prompt", "none")); answer.Get("error") != "login_required" {
		t.Errorf("after the sign-out, without a page: got %v", answer)
	}
}
