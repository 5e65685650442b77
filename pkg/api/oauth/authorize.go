package oauth

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// maxRequest bounds the query of an authorization request, in code points.
const maxRequest = 8_192

// AuthorizationDto is an authorization request, and what the user decides.
type AuthorizationDto struct {
	Request *string   `json:"request" nullable:"false" maxLength:"8192" doc:"The query of the authorization request, as the application wrote it (RFC 6749, section 4.1.1)."`
	Allow   *[]string `json:"allow" required:"false" doc:"The scopes that you allow, of those that the answer without allow has; [] declines. Absent or null: nothing is decided."`
}

// Authorization is what an application asks a user for, and where the user's
// browser goes after the decision.
type Authorization struct {
	OrganizationID  value.ID `json:"organizationId"`
	ApplicationID   value.ID `json:"applicationId" doc:"The application that asks."`
	ApplicationName string   `json:"applicationName" doc:"The application's name."`
	Website         *string  `json:"website" doc:"The URL of its website. null if none."`
	RedirectURI     string   `json:"redirectUri" format:"uri" doc:"Where the answer goes."`
	Scopes          []string `json:"scopes" doc:"What it asks for and you have, sorted: what you can allow."`
	RedirectTo      *string  `json:"redirectTo" doc:"Where to send the browser, with the code or the error. null: decide first."`
}

func (a *area) authorizeOperation() api.Operation {
	return api.Operation{
		ID: "authorizeApplication", Method: http.MethodPost, Path: "/developers/grants", Access: api.User,
		Summary: "Let an application act in your name",
		Description: "What the page of the authorization endpoint uses: OAuth 2.0's authorization code (RFC 6749, section 4.1) " +
			"with PKCE by S256 (RFC 7636). Without allow it answers what the application asks for, and changes nothing; with allow, where to send the browser. " +
			"redirect_uri is required and has to be the application's redirectUri exactly, on a loopback address with any port; " +
			"the application is one of your organization. Until both are certain, what is wrong is an error of this request; after that it is sent to the application, in redirectTo. " +
			"The code works once, for 60 s. You grant no more than you have. 409 limit_reached after 20 grants to one application.",
		Body: AuthorizationDto{}, Result: Authorization{}, Errors: []int{http.StatusNotFound, http.StatusConflict},
		Audit: audit.GrantCreated, Handle: a.authorize,
	}
}

func (a *area) authorize(r *api.Request) (*api.Response, error) {
	dto, asked, err := parseAuthorization(r.Body)
	if err != nil {
		return nil, err
	}
	client, redirectURI, err := a.asking(r, asked)
	if err != nil {
		return nil, err
	}
	app := client.Application
	shown := Authorization{
		OrganizationID: app.OrganizationID, ApplicationID: app.ID, ApplicationName: app.Name, Website: app.Website, RedirectURI: redirectURI,
	}
	var refused *refusal
	shown.Scopes, refused = askedScopes(asked, client, &r.Principal)
	if refused == nil && dto.Allow != nil && len(*dto.Allow) == 0 {
		refused = &refusal{code: "access_denied", description: "the user declined"}
	}
	parameters := url.Values{"iss": {r.BaseURL}} // RFC 9207
	if asked.Has("state") {
		parameters.Set("state", asked.Get("state"))
	}
	switch {
	case refused != nil:
		parameters.Set("error", refused.code)
		parameters.Set("error_description", printable(refused.description))
	case dto.Allow == nil:
		return api.OK(shown)
	case slices.ContainsFunc(*dto.Allow, func(s string) bool { return !slices.Contains(shown.Scopes, s) }):
		return nil, fault.Field(fault.InBody, "allow", fault.DetailUnknown, "must be of %s", strings.Join(shown.Scopes, ", "))
	default:
		code, err := a.grant(r, client, asked, *dto.Allow)
		if err != nil {
			return nil, err
		}
		parameters.Set("code", code)
	}
	shown.RedirectTo = new(withParameters(redirectURI, parameters))
	return api.OK(shown)
}

// grant stores what the user allows, and returns the code that it gets.
func (a *area) grant(r *api.Request, client *account.Client, asked url.Values, scopes []string) (code string, err error) {
	app := client.Application
	grant := account.Grant{
		OrganizationID: app.OrganizationID, ApplicationID: app.ID, ApplicationName: app.Name, UserID: r.Principal.UserID,
		Scopes: slices.Compact(slices.Sorted(slices.Values(scopes))),
	}
	if r.Principal.SiteIDs != nil {
		grant.SiteIDs = &r.Principal.SiteIDs
	}
	family, code := account.NewFamily(grant, account.GrantLifetime, a.now())
	family.Challenge, family.RedirectURI, family.Public = asked.Get("code_challenge"), asked.Get("redirect_uri"), client.Public
	family.ChangedBy = r.Change(app.ID, family.ID)
	return code, a.store.CreateGrant(r.Context(), family)
}

func parseAuthorization(body []byte) (dto AuthorizationDto, asked url.Values, err error) {
	var c account.Checks
	if err := c.Read(body, &dto); err != nil {
		return dto, nil, err
	}
	switch {
	case dto.Request == nil:
		c.Add("request", fault.DetailRequired, "is required")
	case len([]rune(*dto.Request)) > maxRequest:
		c.Add("request", fault.DetailOutOfRange, "must have at most %d characters", maxRequest)
	default:
		if asked, err = url.ParseQuery(*dto.Request); err != nil {
			c.Add("request", fault.DetailFormat, "must be the query of a URL")
		}
	}
	return dto, asked, c.Err()
}

// asking returns the client that asks, and where its answer goes. An error is for
// the user: nothing proves yet that the redirect URI is the client's.
func (a *area) asking(r *api.Request, asked url.Values) (client *account.Client, redirectURI string, err error) {
	// Without redirect_uri the code could go elsewhere than the user saw, where the application's changes meanwhile.
	if len(asked["client_id"]) != 1 || len(asked["redirect_uri"]) != 1 {
		return nil, "", fault.Field(fault.InBody, "request", fault.DetailRequired, "must have client_id and redirect_uri once each")
	}
	if id, err := value.ParseID(asked.Get("client_id")); err == nil {
		if client, err = a.store.ClientByID(r.Context(), id); err != nil {
			return nil, "", err
		}
	}
	if client == nil || client.Application.OrganizationID != r.Organization() {
		return nil, "", fault.Missing("application")
	}
	app := client.Application
	switch redirectURI = asked.Get("redirect_uri"); {
	case app.RedirectURI == nil:
		return nil, "", fault.Field(fault.InBody, "request", fault.DetailNotAllowed, "the application has no redirectUri: its owner sets it first")
	case !app.Redirects(redirectURI):
		return nil, "", fault.Field(fault.InBody, "request", fault.DetailNotAllowed, "redirect_uri must be the application's redirectUri")
	}
	return client, redirectURI, nil
}

// challenge is a code challenge by S256: 32 bytes in base64url.
var challenge = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// askedScopes checks the rest of an authorization request, and returns the scopes
// that it asks for and the user has.
func askedScopes(asked url.Values, client *account.Client, user *auth.Principal) ([]string, *refusal) {
	none := []string{}
	for name, values := range asked {
		if len(values) > 1 {
			return none, &refusal{code: codeInvalidRequest, description: name + " must be given once"}
		}
	}
	switch {
	case asked.Get("response_type") != "code":
		return none, &refusal{code: "unsupported_response_type", description: "response_type must be code"}
	case asked.Get("code_challenge_method") != "S256" || !challenge.MatchString(asked.Get("code_challenge")):
		return none, &refusal{code: codeInvalidRequest, description: "code_challenge must have 43 characters, with code_challenge_method=S256"}
	case client.Application.Status == account.Suspended:
		return none, errSuspended
	}
	allowed := auth.ScopesNamed(account.GrantScopes()).Intersect(auth.ScopesNamed(client.TokenScopes))
	text, refused := scopeOf(asked.Get("scope"), allowed.Names())
	if refused != nil {
		return none, refused
	}
	held := user.Scopes
	if user.SiteIDs != nil {
		held = held.Intersect(auth.ReadScopes()) // webhooks concern every site
	}
	scopes := auth.ParseScopes(text).Intersect(held)
	if len(scopes) == 0 {
		return none, &refusal{code: codeInvalidScope, description: "the user has none of the scopes"}
	}
	return scopes.Names(), nil
}

// withParameters adds parameters to a URI, which may have some (RFC 6749, section
// 3.1.2).
func withParameters(uri string, parameters url.Values) string {
	if strings.Contains(uri, "?") {
		return uri + "&" + parameters.Encode()
	}
	return uri + "?" + parameters.Encode()
}
