package oauth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	clientCredentials = "client_credentials"
	authorizationCode = "authorization_code"
	refreshToken      = "refresh_token"
	// portalSession is an extension (RFC 6749, section 4.5): the page of the session
	// presents the code, which is all that it has.
	portalSession = "urn:commerce-integration:grant-type:portal-session"

	// maxAttempts is how many wrong secrets, codes and refresh tokens in 60 s are looked at for a client.
	// They count apart from the application's own requests, so that who knows a
	// client id alone cannot use these up.
	maxAttempts = 60
)

// TokenRequest documents the form of a request for a token.
type TokenRequest struct {
	GrantType    string `json:"grant_type" enum:"client_credentials,authorization_code,refresh_token,urn:commerce-integration:grant-type:portal-session" doc:"client_credentials: for the application itself. authorization_code, refresh_token: in the name of a user who allowed it. The last one: for the page of a portal session, which sends client_id and code alone."`
	Scope        string `json:"scope" required:"false" doc:"Scopes separated by spaces, each one of the application's token scopes; in the name of a user those of the grant count. Absent: all of them."`
	ClientID     string `json:"client_id" required:"false" format:"uuid" doc:"The application's clientId, unless it is sent by HTTP Basic."`
	ClientSecret string `json:"client_secret" required:"false" doc:"The application's clientSecret, unless it is sent by HTTP Basic or the application is PUBLIC."`
	Code         string `json:"code" required:"false" doc:"The code of the authorization response."`
	CodeVerifier string `json:"code_verifier" required:"false" doc:"The text whose SHA-256 was the code_challenge (RFC 7636)."`
	RedirectURI  string `json:"redirect_uri" required:"false" format:"uri" doc:"The redirect_uri of the authorization request."`
	RefreshToken string `json:"refresh_token" required:"false" doc:"The refresh token of the last answer."`
}

// Token is the answer to a request for a token (RFC 6749, section 5.1).
type Token struct {
	AccessToken  string `json:"access_token" doc:"Send it as Authorization: Bearer."`
	TokenType    string `json:"token_type" doc:"Bearer."`
	ExpiresIn    int    `json:"expires_in" doc:"Seconds until it expires: 3600, or those that a portal session still lasts."`
	Scope        string `json:"scope" doc:"The granted scopes, separated by spaces."`
	RefreshToken string `json:"refresh_token,omitzero" required:"false" doc:"Only in the name of a user: gets the next token, once."`
}

func (a *area) tokenOperation() api.Operation {
	return api.Operation{
		ID: "createToken", Method: http.MethodPost, Path: tokenPath,
		Summary: "Get a token for an application",
		Description: "The token endpoint of OAuth 2.0 (RFC 6749) for the grants client_credentials, authorization_code with PKCE, " +
			"and refresh_token. Its body is a form, and its errors are those of RFC 6749. Authenticate by HTTP Basic, clientId and clientSecret each form-encoded before, or by client_id and " +
			"client_secret in the body; both together are invalid_request; " +
			"a PUBLIC application sends its client_id alone, and takes no client_credentials. An unknown client and a wrong secret get the same answer: " +
			"401 invalid_client. After Basic the answer challenges; API Gateway renames its WWW-Authenticate to x-amzn-remapped-www-authenticate. " +
			"A suspended application is unauthorized_client; after temporarily_unavailable, wait as Retry-After says. The request counts against " +
			"the application's rate limit. A token works for an hour. It ends within 5 s after the application is suspended or deleted; a rotation of the client secret leaves it valid. " +
			"A token in the name of a user also ends with the grant. Each refresh token works once; the one before the newest gets " +
			"the same answer again for 10 s, and any older one, or a second use of the code, ends the grant: invalid_grant. " +
			"A grant ends after 30 days. The page of a portal session gets one token, by its code alone.",
		Body: TokenRequest{}, BodyType: formType, Result: Token{},
		Errors: []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable},
		Handle: a.token, Counted: true, Refuse: &api.Refusals{Shape: TokenError{}, Answer: answerError},
	}
}

func (a *area) token(r *api.Request) (*api.Response, error) {
	form, presented, err := presentedBy(r)
	if err != nil {
		return nil, err
	}
	give := a.ownToken
	switch form["grant_type"] {
	case "":
		return nil, invalidRequest("grant_type is required: send client_credentials, authorization_code or refresh_token")
	case clientCredentials:
	case authorizationCode, refreshToken, portalSession:
		give = a.grantedToken
	default:
		return nil, &refusal{
			code: unsupportedGrantType, description: "grant_type must be client_credentials, authorization_code or refresh_token",
		}
	}
	presented.needless = form["grant_type"] == portalSession
	client, err := a.authenticate(r, presented)
	if err != nil {
		return nil, err
	}
	token, err := give(r, client, form)
	if err != nil {
		return nil, err
	}
	r.Issued()
	return &api.Response{Header: notStored(), JSON: token}, nil
}

// ownToken gives an application a token of its own.
func (a *area) ownToken(r *api.Request, client *account.Client, form map[string]string) (Token, error) {
	if client.Public {
		return Token{}, &refusal{code: codeUnauthorizedClient, description: "the application is PUBLIC: it gets tokens in the name of users only"}
	}
	if err := a.admit(r, client.Application); err != nil {
		return Token{}, err
	}
	scope, refused := scopeOf(form["scope"], client.TokenScopes)
	if refused != nil {
		return Token{}, refused
	}
	return a.sign(r, client.Application, scope, nil, apptoken.Lifetime)
}

// admit counts the request against the application's limit, and refuses one that
// is suspended.
func (a *area) admit(r *api.Request, app *account.Application) error {
	if err := r.Admit(auth.Principal{
		Kind: auth.KindApplication, OrganizationID: app.OrganizationID, ApplicationID: app.ID, RateLimit: app.RateLimit,
	}); err != nil {
		return err
	}
	if app.Status == account.Suspended {
		return errSuspended
	}
	return nil
}

// sign makes a token of the application, in the user's name unless that is nil.
func (a *area) sign(r *api.Request, app *account.Application, scope string, user *apptoken.ForUser, lifetime time.Duration) (Token, error) {
	token, err := a.cfg.Signer.Sign(r.Context(), &apptoken.Grant{
		Issuer: r.BaseURL, ClientID: app.ClientID, OrganizationID: app.OrganizationID, ApplicationID: app.ID, Scope: scope, User: user, Lifetime: lifetime,
	})
	return Token{AccessToken: token, TokenType: "Bearer", ExpiresIn: int(lifetime.Seconds()), Scope: scope}, err
}

// notStored is demanded by RFC 6749, section 5.1, and due to errors, too.
func notStored() http.Header {
	return http.Header{"Cache-Control": {"no-store"}, "Pragma": {"no-cache"}}
}

// presentedBy reads the form of a request, and the credentials of its client.
func presentedBy(r *api.Request) (form map[string]string, c credentials, err error) {
	if form, err = parseForm(r.Body); err == nil {
		c, err = credentialsOf(r.Header, form)
	}
	return form, c, err
}

// parseForm reads the form. A parameter without a value counts as absent, and
// one that is not known is ignored, as RFC 6749, section 3.2, demands.
func parseForm(body []byte) (map[string]string, error) {
	values, err := url.ParseQuery(string(body))
	if err != nil || !utf8.Valid(body) {
		return nil, invalidRequest("the body is not a valid form: encode it as application/x-www-form-urlencoded")
	}
	form := map[string]string{}
	for _, name := range []string{
		"grant_type", "scope", "client_id", "client_secret", "code", "code_verifier", "redirect_uri", "refresh_token", "token",
	} {
		if len(values[name]) > 1 {
			return nil, invalidRequest(name + " must be given once")
		}
		form[name] = values.Get(name)
	}
	return form, nil
}

// credentials are what a client presents.
type credentials struct {
	id, secret string
	basic      bool // by HTTP Basic, which an answer challenges
	needless   bool // the code alone is enough
}

func credentialsOf(header http.Header, form map[string]string) (c credentials, err error) {
	given := header.Values("Authorization")
	switch {
	case len(given) == 0:
		c.id, c.secret = form["client_id"], form["client_secret"]
	case len(given) > 1:
		return c, invalidRequest("send one Authorization header")
	case form["client_secret"] != "":
		return c, invalidRequest("send the client's secret by HTTP Basic or in the body, not both")
	default:
		c.basic = true
		if c.id, c.secret, err = basic(given[0]); err != nil {
			return c, err
		}
		if id := form["client_id"]; id != "" && id != c.id {
			return c, invalidRequest("client_id must be that of HTTP Basic: send one of them")
		}
	}
	if c.id == "" || c.basic && c.secret == "" {
		return c, invalidClient(c.basic, "send the client's id and secret by HTTP Basic, or as client_id and client_secret in the body")
	}
	return c, nil
}

// basic reads HTTP Basic, in which id and secret are form-encoded (RFC 6749,
// section 2.3.1).
func basic(header string) (id, secret string, err error) {
	user, password, ok := (&http.Request{Header: http.Header{"Authorization": {header}}}).BasicAuth()
	if !ok {
		return "", "", invalidClient(true, "the Authorization header must be HTTP Basic with the client's id and secret")
	}
	id, errID := url.QueryUnescape(user)
	secret, errSecret := url.QueryUnescape(password)
	if errID != nil || errSecret != nil {
		return "", "", invalidClient(true, "form-encode the client's id and secret before HTTP Basic encodes them")
	}
	return id, secret, nil
}

// authenticate returns the client whose secret is presented, or one that presents
// none and is public or need not.
func (a *area) authenticate(r *api.Request, c credentials) (*account.Client, error) {
	refused := invalidClient(c.basic, "the client is not known or its secret is wrong")
	if c.needless && c.secret == "" { // a code that is wrong looks the same
		refused = unknownGrant()
	}
	id, err := value.ParseID(c.id)
	if err != nil {
		return nil, refused
	}
	client, err := a.store.ClientByID(r.Context(), id)
	switch {
	case err != nil:
		return nil, err
	case client == nil:
		return nil, refused
	case c.secret == "" && (client.Public || c.needless), client.Secrets.Accept(c.secret, value.TimeOf(a.cfg.Clock())):
		return client, nil
	}
	return nil, a.wrong(r, client, refused)
}

// wrong counts something wrong that was presented for the client, and returns how
// it is refused.
func (a *area) wrong(r *api.Request, client *account.Client, refused error) error {
	r.Claim(client.Application.OrganizationID, client.Application.ID)
	d, err := a.cfg.Attempts.Admit(r.Context(), 1, ratelimit.Subject{ID: client.Application.ID.String() + "#attempts", Limit: maxAttempts})
	switch {
	case err != nil:
		return err
	case !d.Allowed:
		return &refusal{
			code: temporarilyUnavailable, status: http.StatusTooManyRequests, retryAfter: d.RetryAfter,
			description: "too many wrong secrets, codes or refresh tokens for this client; wait as Retry-After says",
		}
	}
	return refused
}

// scopeOf checks the scopes that are asked for, and returns them sorted.
func scopeOf(asked string, allowed []string) (string, *refusal) {
	if strings.TrimSpace(asked) == "" && len(allowed) > 0 {
		return strings.Join(allowed, " "), nil
	}
	scopes := strings.Fields(asked)
	slices.Sort(scopes)
	scopes = slices.Compact(scopes)
	if len(scopes) == 0 || slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(allowed, s) }) {
		return "", &refusal{code: codeInvalidScope, description: "the application's tokens may have: " + strings.Join(allowed, " ")}
	}
	return strings.Join(scopes, " "), nil
}
