package app_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/gateway"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// accessScene is the service behind the gateway with its real authorizers, with
// one thing of every sort, made over HTTP, and an organization beside it.
type accessScene struct {
	*tour
	url       string
	issuer    *issuer.Issuer
	published atomic.Pointer[[]byte] // what the issuer publishes
	owner     string                 // a token
	other     value.ID
}

const (
	accessIssuer   = "https://id.example.com/"
	accessAudience = "commerce"
)

func newAccessScene(t *testing.T) *accessScene {
	t.Helper()
	w := &accessScene{tour: newTour(t), other: value.NewID()}
	w.issuer = w.newIssuer()
	w.publish(w.issuer)
	jwks := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(*w.published.Load()) }))
	t.Cleanup(jwks.Close)
	cfg := &w.base.Config
	cfg.JWTIssuer, cfg.JWTAudience, cfg.JWKSURL = accessIssuer, accessAudience, jwks.URL
	w.url = behindGateway(t, w.Service, w.base, dynamotest.Model(t), &gateway.Config{Clock: w.Time, Logger: slog.New(slog.DiscardHandler)}).URL
	w.owner = w.user(issuer.Grant{Roles: []auth.Role{auth.Owner}})
	w.furnish()
	return w
}

// publish makes the keys of an issuer those that tokens are verified with.
func (w *accessScene) publish(by *issuer.Issuer) {
	w.t.Helper()
	keys, err := by.JWKS()
	if err != nil {
		w.t.Fatal(err)
	}
	w.published.Store(&keys)
}

func (w *accessScene) newIssuer() *issuer.Issuer {
	w.t.Helper()
	made, err := issuer.New(issuer.Config{Issuer: accessIssuer, Audience: accessAudience, Clock: w.Time})
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// user signs a token of a user of its own, whom no other's rate limit concerns.
func (w *accessScene) user(g issuer.Grant) string {
	w.t.Helper()
	g.Subject = value.NewID().String()
	if g.OrganizationID.IsZero() {
		g.OrganizationID = w.Org
	}
	if g.Lifetime == 0 {
		g.Lifetime = time.Hour
	}
	token, err := w.issuer.Sign(g)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

// send makes a request over HTTP.
func (w *accessScene) send(method, path, body string, header http.Header) (status int, answer string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(read)
}

// made is what answers to creations and actions hold.
type made struct {
	ID           string `json:"id"`
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	Key          string `json:"key"`
	AccessToken  string `json:"access_token"`
	RedirectTo   string `json:"redirectTo"`
	URL          string `json:"url"`
	Payload      any    `json:"payload"`
}

// do makes a request that must succeed.
func (w *accessScene) do(token, method, path, body string) (m made) {
	w.t.Helper()
	header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	if token == "" {
		header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	}
	status, answer := w.send(method, w.expand(path), body, header)
	if status >= http.StatusMultipleChoices {
		w.t.Fatalf("%s %s: got %d %s", method, path, status, answer)
	}
	if err := json.Unmarshal([]byte(answer), &m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// application creates an application whose tokens may do everything.
func (w *accessScene) application(name string, org value.ID) {
	w.t.Helper()
	owner := w.user(issuer.Grant{OrganizationID: org, Roles: []auth.Role{auth.Owner}})
	m := w.do(owner, "POST", "/developers/applications", `{"name":"`+name+`","redirectUri":"https://example.com/back"}`)
	w.kept[name], w.kept[name+"Client"], w.kept[name+"Secret"] = m.ID, m.ClientID, m.ClientSecret
	scopes, err := json.Marshal(account.TokenScopesDto{Scopes: new(account.TokenScopes())})
	if err != nil {
		w.t.Fatal(err)
	}
	w.do(owner, "PUT", "/developers/applications/{"+name+"}/token-scopes", string(scopes))
	// The credentials of one application are many here.
	if _, err := w.Table.ChangeApplication(w.t.Context(), org, value.MustID(m.ID), func(a *account.Application) (bool, error) {
		a.RateLimit = 1_000_000
		return true, nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// furnish makes what the requests name.
func (w *accessScene) furnish() {
	w.t.Helper()
	for _, name := range []string{"application", "another", "suspended", "spare", "modest"} {
		w.application(name, w.Org)
	}
	w.do(w.owner, "PUT", "/developers/applications/{modest}/token-scopes", `{"scopes":["orders:read"]}`)
	w.application("stranger", w.other)
	w.kept["spareKey"] = w.do(w.owner, "POST", "/developers/applications/{spare}/api-keys", `{"name":"spare"}`).ID
	w.kept["endpoint"] = w.do(w.owner, "POST", "/developers/webhooks/endpoints?applicationId={application}",
		`{"url":"https://example.com/hook","events":["order.created"]}`).ID
	w.kept["source"] = w.do(w.owner, "POST", "/developers/sources", `{"kind":"WOOCOMMERCE","name":"Shop"}`).ID
	w.do(w.user(issuer.Grant{OrganizationID: w.other, Roles: []auth.Role{auth.Owner}}), "POST", "/developers/sources", `{"kind":"WOOCOMMERCE","name":"Shop"}`)
	w.granted(&credential{token: w.owner}, "application", "orders:read")
	w.do(w.owner, "PUT", "/developers/applications/{application}/alerts", `{"url":"https://example.com/alerts"}`)
	for _, e := range commerce.EventTypes(webhook.Samples()) {
		if kind, created := strings.CutSuffix(e.Name, ".created"); created {
			w.record(commerce.Kind(kind), e.Example.Data.Object, "A", siteA)
			w.record(commerce.Kind(kind), e.Example.Data.Object, "B", siteB)
		}
	}
	w.records()
	w.kept["receipt"] = w.do(w.token("application", "records:write"), "POST", "/ingest/records",
		`{"records":[{"kind":"order","op":"delete","record":{"id":"`+value.NewID().String()+`"}}]}`).ID
	w.kept["recovery"] = w.do(w.owner, "POST", "/developers/webhooks/endpoints/{endpoint}/recover", "").ID
}

// record stores a copy of a sample record that the site shows.
func (w *accessScene) record(kind commerce.Kind, sample jsontext.Value, name, site string) {
	w.t.Helper()
	var members map[string]jsontext.Value
	if err := json.Unmarshal(sample, &members); err != nil {
		w.t.Fatal(err)
	}
	members["id"] = jsontext.Value(`"` + value.NewID().String() + `"`)
	if kind == commerce.KindStock {
		delete(members, "id")
		members["productId"] = jsontext.Value(`"` + w.kept["product of "+name] + `"`)
	}
	if kind != commerce.KindProduct {
		members["siteId"] = jsontext.Value(`"` + site + `"`)
	}
	record, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	stored := w.Put(w.t, kind, nil, string(record), func(s *commerce.Stored) {
		if kind == commerce.KindProduct {
			s.SiteIDs = []value.ID{value.MustID(site)}
		}
	})
	w.kept[string(kind)+" of "+name] = stored.ID.String()
}

// key creates an API key of the application.
func (w *accessScene) key(application, members string) made {
	w.t.Helper()
	token := w.owner
	if application == "stranger" {
		token = w.user(issuer.Grant{OrganizationID: w.other, Roles: []auth.Role{auth.Owner}})
	}
	return w.do(token, "POST", "/developers/applications/{"+application+"}/api-keys", `{"name":"k"`+members+`}`)
}

// token gets a token of the application; without a scope it has all of the
// application's.
func (w *accessScene) token(application, scope string) string {
	w.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {w.kept[application+"Client"]}, "client_secret": {w.kept[application+"Secret"]}}
	if scope != "" {
		form.Set("scope", scope)
	}
	return w.do("", "POST", "/oauth/token", form.Encode()).AccessToken
}

// granted gets a token of the application in the name of the user whose
// credential it is, "" where the user may not grant the scopes.
func (w *accessScene) granted(user *credential, application, scopes string) string {
	w.t.Helper()
	asked := url.Values{
		"response_type": {"code"}, "client_id": {w.kept[application+"Client"]}, "redirect_uri": {"https://example.com/back"}, "scope": {scopes},
		"code_challenge": {codeChallenge}, "code_challenge_method": {"S256"},
	}
	body, err := json.Marshal(map[string]any{"request": asked.Encode(), "allow": strings.Fields(scopes)})
	if err != nil {
		w.t.Fatal(err)
	}
	_, m := w.try(user, "POST", "/developers/grants", string(body))
	code, grant := codeIn(m.RedirectTo)
	if code == "" {
		return ""
	}
	w.kept["grant"] = grant
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {w.kept[application+"Client"]}, "redirect_uri": {"https://example.com/back"}, "client_secret": {w.kept[application+"Secret"]},
		"code": {code}, "code_verifier": {codeVerifier},
	}
	return w.do("", "POST", "/oauth/token", form.Encode()).AccessToken
}

// group is a table of the page.
type group struct {
	title, text string
	credentials []credential
}

// groups makes every credential.
func (w *accessScene) groups() []group {
	w.t.Helper()
	all := []group{w.users(), w.narrowed(), w.keys(), w.tokens(), w.inUsersNames(), w.portalSessions(), w.refused()}
	w.do(w.owner, "POST", "/developers/applications/{suspended}/suspend", "")
	w.Pass(5 * time.Second) // until everybody knows
	return all
}

func (w *accessScene) users() group {
	roles := func(roles ...auth.Role) string { return w.user(issuer.Grant{Roles: roles}) }
	sites := []value.ID{value.MustID(siteA)}
	return group{"Users by role", "DEVELOPER is the role of a token with neither roles nor scope.", []credential{
		{name: "OWNER", token: roles(auth.Owner), scopes: allScopes + " developers:admin"},
		{name: "ADMIN", token: roles(auth.Admin), scopes: allScopes + " developers:admin"},
		{name: "DEVELOPER", token: roles(auth.DeveloperRole), scopes: ownScopes},
		{name: "VIEWER", token: roles(auth.Viewer), scopes: readScopes + " developers:read webhooks:read"},
		{name: "neither claim", token: roles(), scopes: ownScopes},
		{name: "no known role", token: roles("COOK")},
		{name: "OWNER of site A", token: w.user(issuer.Grant{Roles: []auth.Role{auth.Owner}, SiteIDs: sites}), scopes: allScopes + " developers:admin", sites: true},
		{
			name: "OWNER of another organization", token: w.user(issuer.Grant{OrganizationID: w.other, Roles: []auth.Role{auth.Owner}}),
			scopes: allScopes + " developers:admin", other: true,
		},
	}}
}

func (w *accessScene) narrowed() group {
	g := group{title: "An owner's token that its scope claim narrows", text: "developers:write keeps what only OWNER and ADMIN have; no claim can name that."}
	for _, scope := range append(strings.Fields(allScopes), "developers:admin") {
		c := credential{name: scope, token: w.user(issuer.Grant{Roles: []auth.Role{auth.Owner}, Scope: &scope}), scopes: scope}
		switch scope {
		case "developers:write":
			c.scopes += " developers:admin"
		case "developers:admin":
			c.scopes = ""
		}
		g.credentials = append(g.credentials, c)
	}
	return g
}

func (w *accessScene) keys() group {
	g := group{title: "API keys", text: "Outside the read API a key is ignored: 401, as without credentials.", credentials: []credential{
		{name: "every scope", key: w.key("application", "").Key, scopes: readScopes, application: "application"},
	}}
	for _, scope := range strings.Fields(readScopes) {
		g.credentials = append(g.credentials, credential{
			name: scope, key: w.key("application", `,"scopes":["`+scope+`"]`).Key, scopes: scope, application: "application",
		})
	}
	revoked, soon := w.key("application", ""), w.At(time.Second).String()
	w.do(w.owner, "POST", "/developers/applications/{application}/api-keys/"+revoked.ID+"/revoke", "")
	return group{g.title, g.text, append(
		g.credentials,
		credential{name: "site A", key: w.key("application", `,"siteIds":["`+siteA+`"]`).Key, scopes: readScopes, sites: true, application: "application"},
		credential{name: "another application's", key: w.key("another", "").Key, scopes: readScopes, application: "another"},
		credential{name: "another organization's", key: w.key("stranger", "").Key, scopes: readScopes, application: "stranger", other: true},
		credential{name: "revoked", key: revoked.Key, refused: "api_key_revoked"},
		credential{name: "expired", key: w.key("application", `,"expiresAt":"`+soon+`"`).Key, refused: "api_key_expired"},
		credential{name: "of a suspended application", key: w.key("suspended", "").Key, refused: "application_suspended"},
	)}
}

func (w *accessScene) tokens() group {
	g := group{title: "Tokens of applications", text: "The application has every scope that tokens can be granted.", credentials: []credential{
		{name: "every scope", token: w.token("application", ""), scopes: granted, application: "application"},
	}}
	for _, scope := range strings.Fields(granted) {
		g.credentials = append(g.credentials, credential{name: scope, token: w.token("application", scope), scopes: scope, application: "application"})
	}
	g.credentials = append(
		g.credentials,
		credential{name: "another application's", token: w.token("another", ""), scopes: granted, application: "another"},
		credential{name: "another organization's", token: w.token("stranger", ""), scopes: granted, application: "stranger", other: true},
		credential{name: "of a suspended application", token: w.token("suspended", ""), refused: "application_suspended"},
	)
	return g
}

func (w *accessScene) inUsersNames() group {
	owner := func(sites ...value.ID) *credential {
		return &credential{token: w.user(issuer.Grant{Roles: []auth.Role{auth.Owner}, SiteIDs: sites})}
	}
	most := strings.Replace(granted, " records:write", "", 1)
	kept := w.kept["grant"]
	defer func() { w.kept["grant"] = kept }()
	return group{"Tokens of applications in the name of users", "An OWNER granted what the head says.", []credential{
		{name: "every scope", token: w.granted(owner(), "application", most), scopes: most, application: "application"},
		{name: "orders:read", token: w.granted(owner(), "application", "orders:read"), scopes: "orders:read", application: "application"},
		{name: "site A", token: w.granted(owner(value.MustID(siteA)), "application", readScopes), scopes: readScopes, application: "application", sites: true},
		{name: "another application's", token: w.granted(owner(), "another", most), scopes: most, application: "another"},
	}}
}

// opened gets the token of a portal session of the application, "" where the user
// may not make it.
func (w *accessScene) opened(user *credential, application, scopes string) string {
	w.t.Helper()
	_, m := w.try(user, "POST", "/developers/portal-sessions",
		`{"applicationId":"`+w.kept[application]+`","scopes":["`+strings.ReplaceAll(scopes, " ", `","`)+`"],"expiresInMinutes":1440}`)
	if m.URL == "" {
		return ""
	}
	_, fragment, _ := strings.Cut(m.URL, "#")
	form := url.Values{"grant_type": {"urn:commerce-integration:grant-type:portal-session"}}.Encode() + "&" + fragment
	return w.do("", "POST", "/oauth/token", form).AccessToken
}

func (w *accessScene) portalSessions() group {
	const both = "webhooks:read webhooks:write"
	owner := func(scope ...string) *credential {
		g := issuer.Grant{Roles: []auth.Role{auth.Owner}}
		if len(scope) > 0 {
			g.Scope = &scope[0]
		}
		return &credential{token: w.user(g)}
	}
	session := func(name, token, application, scopes, carries string) credential {
		return credential{name: name, token: token, application: application, scopes: scopes, carries: carries, session: true}
	}
	return group{"Portal sessions", "An OWNER made them with the scopes that the head says, for one application. They see events of all kinds, but for the one in brackets.", []credential{
		session(both, w.opened(owner(), "application", both), "application", both, readScopes),
		session("webhooks:read", w.opened(owner(), "application", "webhooks:read"), "application", "webhooks:read", readScopes),
		session(both+" (orders)", w.opened(owner("developers:write orders:read "+both), "application", both), "application", both, "orders:read"),
		session("another application's", w.opened(owner(), "another", both), "another", both, readScopes),
	}}
}

func (w *accessScene) refused() group {
	w.t.Helper()
	const refused = "unauthenticated"
	forger := &accessScene{tour: w.tour, issuer: w.newIssuer()}
	return group{"No acceptable credentials", "The last is a function that is invoked by itself, without an authorizer before it.", []credential{
		{name: "none", refused: refused},
		{name: "a malformed token", token: "x.y.z", refused: refused},
		{name: "a malformed key", key: "cis_live_x", refused: refused},
		{name: "an expired token", token: w.user(issuer.Grant{Roles: []auth.Role{auth.Owner}, Lifetime: -time.Hour}), refused: "token_expired"},
		{name: "a forged token", token: forger.user(issuer.Grant{Roles: []auth.Role{auth.Owner}}), refused: refused},
		{name: "no authorizer", direct: true, refused: refused},
	}}
}
