package oauth_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/oauth"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	callback = "https://shop.example.com/back?of=us"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)

// newGranting is the harness with a user who may read orders and products, and
// a client with a redirect URI.
func newGranting(t testing.TB) *harness {
	t.Helper()
	h := newHarness(t)
	h.user = &auth.Principal{Kind: auth.KindUser, OrganizationID: h.Org, UserID: value.NewID(), RateLimit: 1000, Scopes: auth.Scopes{auth.OrdersRead, auth.ProductsRead}}
	h.change(t, func(c *account.Client) { c.Application.RedirectURI = new(callback) })
	return h
}

func (h *harness) change(t testing.TB, change func(*account.Client)) {
	t.Helper()
	if _, err := h.Table.ChangeClient(t.Context(), h.Org, h.client.ID, func(c *account.Client) error { change(c); return nil }); err != nil {
		t.Fatal(err)
	}
}

// asked is an authorization request of the client with the changes, pairs of
// names and values; "" leaves a parameter out.
func (h *harness) asked(changes ...string) string {
	challenge := sha256.Sum256([]byte(verifier))
	asked := url.Values{
		"response_type": {"code"}, "client_id": {h.client.ClientID.String()}, "redirect_uri": {callback}, "state": {"a b&c"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"}, "scope": {"orders:read"},
	}
	for i := 0; i < len(changes); i += 2 {
		if asked.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			asked.Del(changes[i])
		}
	}
	return asked.Encode()
}

// authorize sends an authorization request with a decision, nil for none.
func (h *harness) authorize(t testing.TB, request string, allow []string) (answer, oauth.Authorization) {
	t.Helper()
	body := map[string]any{"request": request}
	if allow != nil {
		body["allow"] = allow
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	got := h.do("POST", "/developers/grants", string(text), "Content-Type", "application/json")
	var shown oauth.Authorization
	if got.Status == http.StatusOK {
		if err := json.Unmarshal([]byte(got.Body), &shown, json.RejectUnknownMembers(true)); err != nil {
			t.Fatal(err)
		}
	}
	return got, shown
}

// sentTo reads the query of the redirect.
func sentTo(t testing.TB, shown oauth.Authorization) (uri string, query url.Values) {
	t.Helper()
	if shown.RedirectTo == nil {
		t.Fatalf("%+v: no redirect", shown)
	}
	u, err := url.Parse(*shown.RedirectTo)
	if err != nil {
		t.Fatal(err)
	}
	query = u.Query()
	u.RawQuery = ""
	return u.String(), query
}

// code is one that the user allowed for orders.
func (h *harness) code(t testing.TB) string {
	t.Helper()
	got, shown := h.authorize(t, h.asked(), []string{"orders:read"})
	if got.Status != http.StatusOK {
		t.Fatalf("authorize: %d %s", got.Status, got.Body)
	}
	_, query := sentTo(t, shown)
	return query.Get("code")
}

func (h *harness) exchange(code string, more ...string) answer {
	return h.ask(append([]string{
		"grant_type", "authorization_code", "client_id", h.client.ClientID.String(), "client_secret", h.client.ClientSecret,
		"code", code, "code_verifier", verifier, "redirect_uri", callback,
	}, more...)...)
}

func (h *harness) refresh(refresh string, more ...string) answer {
	return h.ask(append([]string{
		"grant_type", "refresh_token", "client_id", h.client.ClientID.String(), "client_secret", h.client.ClientSecret, "refresh_token", refresh,
	}, more...)...)
}

func tokenIn(t testing.TB, got answer) (token oauth.Token) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.Body), &token); got.Status != http.StatusOK || err != nil {
		t.Fatalf("got %d %s, want a token", got.Status, got.Body)
	}
	return token
}

func refusedAs(t testing.TB, got answer, status int, code string) {
	t.Helper()
	if got.Status != status || !strings.Contains(got.Body, `"error":"`+code+`"`) {
		t.Errorf("got %d %s, want %d %s", got.Status, got.Body, status, code)
	}
}

// principal is whom the access token is accepted as; nil where it is denied.
func (h *harness) principal(t testing.TB, access string) *auth.Principal {
	t.Helper()
	p, denial, err := auth.NewAuthorizer(nil, h.Table, auth.AuthorizerConfig{Clock: h.Time}).
		Authorize(t.Context(), auth.Request{Read: true, Headers: map[string][]string{"Authorization": {"Bearer " + access}}})
	if err != nil {
		t.Fatal(err)
	}
	if denial != nil {
		return nil
	}
	return &p
}

func TestAUserLetsAnApplicationActInTheUsersName(t *testing.T) {
	h := newGranting(t)
	h.user.SiteIDs = []value.ID{value.NewID()}
	h.change(t, func(c *account.Client) {
		c.Application.Website, c.TokenScopes = new("https://shop.example.com"), account.TokenScopes()
	})
	request := h.asked("scope", "orders:read customers:read webhooks:read")
	h.user.Scopes = append(h.user.Scopes, auth.WebhooksRead)
	_, shown := h.authorize(t, request, nil)
	want := oauth.Authorization{
		OrganizationID: h.Org, ApplicationID: h.client.ID, ApplicationName: "shop", Website: new("https://shop.example.com"),
		RedirectURI: callback, Scopes: []string{"orders:read"},
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Fatalf("what is asked, without scopes that the user lacks or that concern every site (-want +got):\n%s", diff)
	}
	if grants, err := h.Table.Grants(t.Context(), h.Org, h.client.ID); err != nil || len(grants) != 0 {
		t.Errorf("before the decision: grants %v, %v", grants, err)
	}
	_, shown = h.authorize(t, request, []string{"orders:read"})
	uri, query := sentTo(t, shown)
	code := query.Get("code")
	query.Del("code")
	if wanted := (url.Values{"of": {"us"}, "state": {"a b&c"}, "iss": {base}}); uri != "https://shop.example.com/back" || cmp.Diff(wanted, query) != "" || code == "" {
		t.Fatalf("redirect: got %s %v", uri, query)
	}
	got := h.exchange(code)
	token := tokenIn(t, got)
	if token.Scope != "orders:read" || token.ExpiresIn != 3600 || token.RefreshToken == "" || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("token: %s %v", got.Body, got.Header)
	}
	p := h.principal(t, token.AccessToken)
	if p == nil || p.UserID != h.user.UserID || p.ApplicationID != h.client.ID || p.Scopes.String() != "orders:read" || !slices.Equal(p.SiteIDs, h.user.SiteIDs) {
		t.Fatalf("principal %+v", p)
	}
	next := tokenIn(t, h.refresh(token.RefreshToken))
	if next.RefreshToken == token.RefreshToken || h.principal(t, next.AccessToken) == nil {
		t.Errorf("refreshed: %+v", next)
	}
	if _, err := h.Table.DeleteGrant(t.Context(), &account.Grant{OrganizationID: h.Org, ApplicationID: h.client.ID, UserID: p.UserID, ID: p.GrantID}, &account.AuditEntry{}); err != nil {
		t.Fatal(err)
	}
	h.Pass(5 * time.Second)
	if p := h.principal(t, next.AccessToken); p != nil {
		t.Errorf("5 s after its revocation: principal %+v", p)
	}
	refusedAs(t, h.refresh(next.RefreshToken), 400, "invalid_grant")
}

func TestWhatIsWrongBeforeTheRedirectIsKnownIsToldToTheUserAlone(t *testing.T) {
	h := newGranting(t)
	stranger := h.Organization(t)
	foreign := account.NewApplication(stranger.Org, value.NewID(), account.CreateApplicationDto{Name: new("x"), RedirectURI: new(callback)}, h.Now())
	h.Leaks.Made(foreign.ClientSecret)
	if err := h.Table.CreateApplication(t.Context(), stranger.Org, foreign, account.ReadScopes()); err != nil {
		t.Fatal(err)
	}
	absent, _ := h.authorize(t, h.asked("client_id", value.NewRandomID().String()), nil)
	for name, tc := range map[string]struct {
		request string
		status  int
	}{
		"another organization's":    {h.asked("client_id", foreign.ClientID.String()), 404},
		"no UUID":                   {h.asked("client_id", "shop"), 404},
		"the application's id":      {h.asked("client_id", h.client.ID.String()), 404},
		"no client":                 {h.asked("client_id", ""), 400},
		"two clients":               {h.asked() + "&client_id=x", 400},
		"two redirects":             {h.asked() + "&redirect_uri=" + url.QueryEscape(callback), 400},
		"another redirect":          {h.asked("redirect_uri", "https://evil.example.com/"), 400},
		"a longer redirect":         {h.asked("redirect_uri", callback+"&more"), 400},
		"another case":              {h.asked("redirect_uri", strings.Replace(callback, "https", "HTTPS", 1)), 400},
		"a port that is no default": {h.asked("redirect_uri", strings.Replace(callback, ".com", ".com:443", 1)), 400},
		"a bad escape":              {"client_id=%zz", 400},
		"too long":                  {h.asked("state", strings.Repeat("x", 8_192)), 400},
	} {
		t.Run(name, func(t *testing.T) {
			for _, allow := range [][]string{nil, {}, {"orders:read"}} {
				got, _ := h.authorize(t, tc.request, allow)
				if got.Status != tc.status || strings.Contains(got.Body, "redirectTo") {
					t.Errorf("got %d %s, want %d", got.Status, got.Body, tc.status)
				}
				if tc.status == 404 && got.Body != absent.Body {
					t.Errorf("got %s, want %s as for an absent one", got.Body, absent.Body)
				}
			}
		})
	}
	h.change(t, func(c *account.Client) { c.Application.RedirectURI = nil })
	if got, _ := h.authorize(t, h.asked(), nil); got.Status != 400 {
		t.Errorf("an application without redirectUri: got %d %s", got.Status, got.Body)
	}
	for body, status := range map[string]int{`{}`: 400, `{"request":"x","scope":1}`: 400, `{"request":null}`: 400} {
		if got := h.do("POST", "/developers/grants", body, "Content-Type", "application/json"); got.Status != status {
			t.Errorf("%s: got %d %s", body, got.Status, got.Body)
		}
	}
}

func TestWhatIsWrongLaterIsToldToTheClient(t *testing.T) {
	h := newGranting(t)
	for name, tc := range map[string]struct {
		request string
		allow   []string
		code    string
	}{
		"declined":                {h.asked(), []string{}, "access_denied"},
		"no response type":        {h.asked("response_type", ""), nil, "unsupported_response_type"},
		"a token at once":         {h.asked("response_type", "token"), nil, "unsupported_response_type"},
		"no challenge":            {h.asked("code_challenge", ""), nil, "invalid_request"},
		"a short challenge":       {h.asked("code_challenge", strings.Repeat("x", 42)), nil, "invalid_request"},
		"a plain challenge":       {h.asked("code_challenge_method", "plain"), nil, "invalid_request"},
		"no method":               {h.asked("code_challenge_method", ""), nil, "invalid_request"},
		"a parameter twice":       {h.asked() + "&nonce=1&nonce=2", nil, "invalid_request"},
		"records":                 {h.asked("scope", "orders:read records:write"), nil, "invalid_scope"},
		"developers":              {h.asked("scope", "developers:read"), nil, "invalid_scope"},
		"not of the application":  {h.asked("scope", "webhooks:read"), nil, "invalid_scope"},
		"none that the user has":  {h.asked("scope", "customers:read"), []string{"customers:read"}, "invalid_scope"},
		"and nothing was decided": {h.asked("scope", "everything"), []string{"orders:read"}, "invalid_scope"},
	} {
		t.Run(name, func(t *testing.T) {
			got, shown := h.authorize(t, tc.request, tc.allow)
			if got.Status != 200 {
				t.Fatalf("got %d %s", got.Status, got.Body)
			}
			uri, query := sentTo(t, shown)
			if uri != "https://shop.example.com/back" || query.Get("error") != tc.code || query.Get("error_description") == "" ||
				query.Get("state") != "a b&c" || query.Get("iss") != base || query.Has("code") {
				t.Errorf("got %s %v, want %s", uri, query, tc.code)
			}
		})
	}
	if got, _ := h.authorize(t, h.asked(), []string{"products:read"}); got.Status != 400 || strings.Contains(got.Body, "redirectTo") {
		t.Errorf("allowed what was not asked for: got %d %s", got.Status, got.Body)
	}
	_, shown := h.authorize(t, h.asked("state", ""), []string{})
	if _, query := sentTo(t, shown); query.Has("state") {
		t.Errorf("a state that was not sent: %v", query)
	}
	h.Suspend(t, h.client.ID)
	_, shown = h.authorize(t, h.asked(), nil)
	if _, query := sentTo(t, shown); query.Get("error") != "unauthorized_client" {
		t.Errorf("a suspended application: %v", query)
	}
}

func TestWhatACodeMustComeWith(t *testing.T) {
	h := newGranting(t)
	other := h.newClient(t, 600)
	code := h.code(t)
	for name, got := range map[string]answer{
		"no code":                 h.exchange(""),
		"no verifier":             h.exchange(code, "code_verifier", ""),
		"two codes":               h.exchange(code, "code", code),
		"a refresh token missing": h.refresh(""),
	} {
		t.Run(name, func(t *testing.T) { refusedAs(t, got, 400, "invalid_request") })
	}
	with := func(changes ...string) answer {
		form := []string{
			"grant_type", "authorization_code", "client_id", h.client.ClientID.String(), "client_secret", h.client.ClientSecret,
			"code", code, "code_verifier", verifier, "redirect_uri", callback,
		}
		for i := 0; i < len(changes); i += 2 {
			form[slices.Index(form, changes[i])+1] = changes[i+1]
		}
		return h.ask(form...)
	}
	grant, err := account.GrantOf(code)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]answer{
		"another verifier":     with("code_verifier", strings.Repeat("x", 43)),
		"no redirect URI":      with("redirect_uri", ""),
		"another redirect URI": with("redirect_uri", "https://shop.example.com/"),
		"another client's":     with("client_id", other.ClientID.String(), "client_secret", other.ClientSecret),
		"no code of ours":      with("code", "x"),
		"a code's form":        with("code", "ac_"+grant.String()+"_"+strings.Repeat("x", 40)),
		"a refresh token":      h.refresh("rt_" + grant.String() + "_x_x"),
		"the code as one":      h.refresh(code),
	} {
		t.Run(name, func(t *testing.T) { refusedAs(t, got, 400, "invalid_grant") })
	}
	refusedAs(t, with("client_secret", "cs_wrong"), 401, "invalid_client")
	h.Pass(account.CodeLifetime - time.Second)
	tokenIn(t, h.exchange(code)) // none of these used it up
	late := h.code(t)
	h.Pass(account.CodeLifetime)
	refusedAs(t, h.exchange(late), 400, "invalid_grant")
}

func TestTheSecondUseOfACodeEndsTheGrant(t *testing.T) {
	h := newGranting(t)
	code := h.code(t)
	token := tokenIn(t, h.exchange(code))
	refusedAs(t, h.exchange(code), 400, "invalid_grant")
	h.Pass(5 * time.Second)
	if h.principal(t, token.AccessToken) != nil {
		t.Error("the access token still works")
	}
	refusedAs(t, h.refresh(token.RefreshToken), 400, "invalid_grant")
}

func TestARefreshTokenIsRotated(t *testing.T) {
	h := newGranting(t)
	h.change(t, func(c *account.Client) { c.TokenScopes = []string{"orders:read", "products:read"} })
	_, shown := h.authorize(t, h.asked("scope", ""), []string{"orders:read", "products:read"})
	_, query := sentTo(t, shown)
	first := tokenIn(t, h.exchange(query.Get("code"), "scope", "orders:read"))
	second := h.refresh(first.RefreshToken, "scope", "orders:read customers:read")
	if got := tokenIn(t, second).Scope; got != "orders:read" {
		t.Errorf("a narrower token: %s", got)
	}
	refusedAs(t, h.refresh(tokenIn(t, second).RefreshToken, "scope", "customers:read"), 400, "invalid_scope")
	h.Pass(account.RefreshOverlap - time.Millisecond)
	if again := h.refresh(first.RefreshToken); again.Body != second.Body {
		t.Errorf("the last one again: got %s, want %s", again.Body, second.Body)
	}
	third := tokenIn(t, h.refresh(tokenIn(t, second).RefreshToken))
	if third.Scope != "orders:read products:read" {
		t.Errorf("after a narrower token: %s", third.Scope)
	}
	h.Pass(account.RefreshOverlap)
	refusedAs(t, h.refresh(tokenIn(t, second).RefreshToken), 400, "invalid_grant")
	refusedAs(t, h.refresh(third.RefreshToken), 400, "invalid_grant")
	if grants, err := h.Table.Grants(t.Context(), h.Org, h.client.ID); err != nil || len(grants) != 0 {
		t.Errorf("after a second use: grants %v, %v", grants, err)
	}
}

func TestAnOldRefreshTokenEndsTheGrantAtOnce(t *testing.T) {
	h := newGranting(t)
	first := tokenIn(t, h.exchange(h.code(t)))
	second := tokenIn(t, h.refresh(first.RefreshToken))
	third := tokenIn(t, h.refresh(second.RefreshToken))
	refusedAs(t, h.refresh(first.RefreshToken), 400, "invalid_grant")
	refusedAs(t, h.refresh(third.RefreshToken), 400, "invalid_grant")
}

func TestTwoRefreshesAtOnceGetTheSameAnswer(t *testing.T) {
	h := newGranting(t)
	token := tokenIn(t, h.exchange(h.code(t)))
	answers := make([]answer, 4)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = h.refresh(token.RefreshToken) })
	}
	all.Wait()
	for _, got := range answers {
		if got.Status != 200 || got.Body != answers[0].Body {
			t.Errorf("got %d %s and %s", got.Status, got.Body, answers[0].Body)
		}
	}
	tokenIn(t, h.refresh(tokenIn(t, answers[0]).RefreshToken))
}

func TestTwoExchangesAtOnceGetOneToken(t *testing.T) {
	h := newGranting(t)
	code := h.code(t)
	answers := make([]answer, 4)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = h.exchange(code) })
	}
	all.Wait()
	given := slices.DeleteFunc(answers, func(got answer) bool { return got.Status != 200 })
	if len(given) != 1 {
		t.Fatalf("got %d tokens, want 1", len(given))
	}
	refusedAs(t, h.refresh(tokenIn(t, given[0]).RefreshToken), 400, "invalid_grant")
}

func TestAGrantEndsAfterThirtyDays(t *testing.T) {
	h := newGranting(t)
	token := tokenIn(t, h.exchange(h.code(t)))
	h.Pass(account.GrantLifetime - time.Second)
	token = tokenIn(t, h.refresh(token.RefreshToken))
	h.Pass(time.Second)
	refusedAs(t, h.refresh(token.RefreshToken), 400, "invalid_grant")
	if h.principal(t, token.AccessToken) != nil {
		t.Error("its access token still works")
	}
}

func TestAPublicClientHasNoSecret(t *testing.T) {
	h := newGranting(t)
	public := func(pairs ...string) answer { return h.ask(append(pairs, "client_id", h.client.ClientID.String())...) }
	exchange := func(code string) answer {
		return public("grant_type", "authorization_code", "code", code, "code_verifier", verifier, "redirect_uri", callback)
	}
	refusedAs(t, exchange(h.code(t)), 401, "invalid_client") // it is confidential yet
	h.change(t, func(c *account.Client) { c.Public = true })
	token := tokenIn(t, exchange(h.code(t)))
	tokenIn(t, public("grant_type", "refresh_token", "refresh_token", token.RefreshToken))
	refusedAs(t, public("grant_type", "client_credentials"), 400, "unauthorized_client")
	refusedAs(t, h.with(h.client), 400, "unauthorized_client")
	refusedAs(t, public("grant_type", "refresh_token", "refresh_token", token.RefreshToken, "client_secret", "cs_wrong"), 401, "invalid_client")
	for range 60 {
		public("grant_type", "refresh_token", "refresh_token", "rt_x")
	}
	refusedAs(t, public("grant_type", "refresh_token", "refresh_token", "rt_x"), 429, "temporarily_unavailable")
	if got := exchange(h.code(t)); got.Status != 200 || got.Header.Get("X-RateLimit-Remaining") < "590" {
		t.Errorf("what is wrong counts apart: got %d %v", got.Status, got.Header)
	}
}

func TestALoopbackRedirectTakesAnyPort(t *testing.T) {
	for registered, uris := range map[string]map[string]bool{
		"http://127.0.0.1/back?x=1": {
			"http://127.0.0.1:51004/back?x=1": true, "http://127.0.0.1/back?x=1": true, "http://127.0.0.1:0/back?x=1": false, "http://127.0.0.1:1/back": false,
			"https://127.0.0.1:1/back?x=1": false, "http://[::1]:1/back?x=1": false, "http://localhost:1/back?x=1": false, "http://127.0.0.1:1@evil.example.com/back?x=1": false,
		},
		"http://[::1]:9/":          {"http://[::1]:51004/": true, "http://[::1]/": true, "http://[::1]:1": false},
		"https://shop.example.com": {"https://shop.example.com:8443": false, "https://shop.example.com/": false},
	} {
		app := account.Application{RedirectURI: &registered}
		for uri, want := range uris {
			if got := app.Redirects(uri); got != want {
				t.Errorf("%s for %s: got %v", uri, registered, got)
			}
		}
	}
}

func TestAUserGrantsAnApplicationTwentyTimes(t *testing.T) {
	h := newGranting(t)
	h.user.RateLimit = 10_000
	for range account.MaxGrants {
		tokenIn(t, h.exchange(h.code(t)))
	}
	if got, _ := h.authorize(t, h.asked(), []string{"orders:read"}); got.Status != 409 || !strings.Contains(got.Body, "limit_reached") {
		t.Errorf("one more: got %d %s", got.Status, got.Body)
	}
	another := *h.user
	another.UserID = value.NewID()
	h.user = &another
	h.code(t)
	if _, err := h.Table.DeleteApplication(t.Context(), h.Org, h.client.ID, func(*account.Application) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if left, err := h.Table.Grants(t.Context(), h.Org, h.client.ID); err != nil || len(left) != 0 {
		t.Errorf("after the application's deletion: grants %v, %v", left, err)
	}
}
