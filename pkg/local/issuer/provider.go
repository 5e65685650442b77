package issuer

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"
)

const (
	tokenTTL = time.Hour
	codeTTL  = time.Minute
	cookie   = "issuer_session"
)

//go:embed signin.html
var signInText string

var signInPage = template.Must(template.New("sign-in").Parse(signInText))

// User is someone whom the sign-in page offers.
type User struct {
	Name  string
	Grant Grant // its lifetime does not count
}

// ProviderConfig is what a provider knows; all of it is required.
type ProviderConfig struct {
	ClientID  string
	Redirects []string // URLs of the client, to which answers may go
	Users     []User
}

// Provider is the issuer as an OpenID provider for one public client: authorization code with PKCE, refresh tokens that
// are replaced with each use, and sign-out. Its users have no passwords, so it must listen on loopback only. It forgets
// its sessions when the process ends.
type Provider struct {
	issuer *Issuer
	cfg    ProviderConfig

	mu       sync.Mutex       // held by each request, since there are few
	sessions map[string]User  // by the cookie
	grants   map[string]grant // by the code or refresh token
}

// grant is what a code or a refresh token stands for.
type grant struct {
	kind, session              string
	redirect, challenge, nonce string // of the authorization request
	issued                     time.Time
}

// The kinds of grants, as requests for tokens name them.
const (
	byCode    = "authorization_code"
	byRefresh = "refresh_token"
)

// NewProvider makes a provider, whose address is the issuer's name.
func NewProvider(i *Issuer, cfg ProviderConfig) *Provider {
	return &Provider{issuer: i, cfg: cfg, sessions: map[string]User{}, grants: map[string]grant{}}
}

// Handle adds the provider's routes.
func (p *Provider) Handle(mux *http.ServeMux) {
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /.well-known/openid-configuration": p.discover, "GET /.well-known/jwks.json": p.keys,
		"/authorize": p.authorize, "POST /token": p.token, "POST /revoke": p.revoke, "GET /logout": p.signOut,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			p.mu.Lock()
			defer p.mu.Unlock()
			handle(w, r)
		})
	}
}

// discover answers the document of OpenID Connect Discovery 1.0.
func (p *Provider) discover(w http.ResponseWriter, _ *http.Request) {
	name, none := p.issuer.cfg.Issuer, []string{"none"}
	answer(w, http.StatusOK, map[string]any{
		"issuer": name, "jwks_uri": name + "/.well-known/jwks.json",
		"authorization_endpoint": name + "/authorize", "token_endpoint": name + "/token",
		"revocation_endpoint": name + "/revoke", "end_session_endpoint": name + "/logout",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"token_endpoint_auth_methods_supported": none, "revocation_endpoint_auth_methods_supported": none,
		"id_token_signing_alg_values_supported": []string{jwt.SigningMethodES256.Alg()}, "code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, p.issuer.keySet())
}

// authorize answers an authorization request at once when the browser has a session. Otherwise it asks who it is by a
// page, which posts the request again with a user, or with none to cancel. An answer to an address that is not the
// client's would give the code to somebody else.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q, session := r.URL.Query(), p.session(r)
	switch prompt := q.Get("prompt"); {
	case q.Get("client_id") != p.cfg.ClientID || !slices.Contains(p.cfg.Redirects, q.Get("redirect_uri")):
		http.Error(w, "this client or redirect_uri is not known here", http.StatusBadRequest)
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "":
		p.goBack(w, r, "error", "invalid_request")
	case r.Method == http.MethodPost:
		if session = p.signIn(w, r.PostFormValue("user")); session == "" {
			p.goBack(w, r, "error", "access_denied")
			return
		}
		p.giveCode(w, r, session)
	case session != "" && prompt != "login":
		p.giveCode(w, r, session)
	case prompt == "none":
		p.goBack(w, r, "error", "login_required")
	default:
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		_ = signInPage.Execute(w, p.cfg.Users) // it fails only when the client has gone
	}
}

// signIn begins the session of the user, "" for a name that nobody has.
func (p *Provider) signIn(w http.ResponseWriter, name string) string {
	i := slices.IndexFunc(p.cfg.Users, func(u User) bool { return u.Name == name })
	if i < 0 {
		return ""
	}
	session := rand.Text()
	p.sessions[session] = p.cfg.Users[i]
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	return session
}

func (p *Provider) giveCode(w http.ResponseWriter, r *http.Request, session string) {
	q := r.URL.Query()
	p.goBack(w, r, "code", p.keep(grant{byCode, session, q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("nonce"), p.issuer.cfg.Clock()}))
}

// goBack answers an authorization request, with the issuer's name against mix-ups (RFC 9207).
func (p *Provider) goBack(w http.ResponseWriter, r *http.Request, name, value string) {
	q := r.URL.Query()
	answer := url.Values{name: {value}, "iss": {p.issuer.cfg.Issuer}, "state": {q.Get("state")}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusSeeOther)
}

// token answers tokens for a code or a refresh token. Either is good once, and no longer than its session.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	of, user, signedIn := p.take(cmp.Or(r.PostFormValue("code"), r.PostFormValue("refresh_token")))
	wrong := r.PostFormValue("client_id") != p.cfg.ClientID || r.PostFormValue("grant_type") != of.kind
	if !signedIn || wrong || of.kind == byCode && !p.proves(r, of) {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	tokens, err := p.tokens(user, of)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, tokens)
}

// proves reports whether the request is from whoever asked for the code (RFC 7636, section 4.6), and in time.
func (p *Provider) proves(r *http.Request, of grant) bool {
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	return base64.RawURLEncoding.EncodeToString(sum[:]) == of.challenge &&
		r.PostFormValue("redirect_uri") == of.redirect && p.issuer.cfg.Clock().Sub(of.issued) < codeTTL
}

func (p *Provider) tokens(user User, of grant) (map[string]any, error) {
	user.Grant.Lifetime = tokenTTL
	access, accessErr := p.issuer.Sign(user.Grant)
	now := p.issuer.cfg.Clock()
	id, err := p.issuer.sign(jwt.MapClaims{
		"iss": p.issuer.cfg.Issuer, "aud": p.cfg.ClientID, "sub": user.Grant.Subject, "nonce": of.nonce,
		"iat": now.Unix(), "exp": now.Add(tokenTTL).Unix(),
	})
	return map[string]any{
		"access_token": access, "token_type": "Bearer", "expires_in": int(tokenTTL.Seconds()), "id_token": id,
		"refresh_token": p.keep(grant{kind: byRefresh, session: of.session, nonce: of.nonce}),
	}, errors.Join(accessErr, err)
}

// revoke ends a refresh token (RFC 7009).
func (p *Provider) revoke(w http.ResponseWriter, r *http.Request) {
	p.take(r.PostFormValue("token"))
	answer(w, http.StatusOK, map[string]any{})
}

// signOut ends the browser's session (OpenID Connect RP-Initiated Logout 1.0).
func (p *Provider) signOut(w http.ResponseWriter, r *http.Request) {
	delete(p.sessions, p.session(r))
	back := r.URL.Query().Get("post_logout_redirect_uri")
	if !slices.Contains(p.cfg.Redirects, back) {
		answer(w, http.StatusOK, map[string]any{})
		return
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// session is the browser's, "" for none that is known.
func (p *Provider) session(r *http.Request) string {
	given, err := r.Cookie(cookie)
	if err != nil || p.sessions[given.Value].Name == "" {
		return ""
	}
	return given.Value
}

// keep returns a fresh code or refresh token for the grant.
func (p *Provider) keep(of grant) string {
	token := rand.Text()
	p.grants[token] = of
	return token
}

// take returns what a code or refresh token stands for, and whose it is, and ends it.
func (p *Provider) take(token string) (of grant, user User, signedIn bool) {
	of = p.grants[token]
	delete(p.grants, token)
	user, signedIn = p.sessions[of.session]
	return of, user, signedIn
}

// answer answers JSON, to scripts of every origin: what they could ask for, they need a code for.
func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, body) // it fails only when the client has gone
}
