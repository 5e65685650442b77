// Package oauth answers the operations by which an application gets tokens, of
// its own or in the name of a user: the consent that the authorization endpoint's
// page asks for, the token endpoint (RFC 6749), the revocation of tokens (RFC 7009),
// the keys that verify them (RFC 7517) and the metadata that describes them all (RFC
// 8414). It gives a token only
// to a client that proves its secret, or by a user's grant to one that is public,
// and shows nobody else whether a confidential client exists. Package apptoken
// signs, and package auth accepts tokens.
package oauth

import (
	"context"
	"net/http"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	tokenPath    = "/oauth/token"
	revokePath   = "/oauth/revoke"
	consentPath  = "/portal/authorize"
	jwksPath     = "/.well-known/jwks.json"
	metadataPath = "/.well-known/oauth-authorization-server"
	formType     = "application/x-www-form-urlencoded"
	tag          = "Tokens"
)

// Store finds clients, and keeps what users granted them.
type Store interface {
	// ClientByID returns nil when there is none.
	ClientByID(ctx context.Context, id value.ID) (*account.Client, error)
	GrantStore
}

// Signer makes tokens.
type Signer interface {
	Sign(ctx context.Context, g *apptoken.Grant) (string, error)
	// Verify returns nil claims of a token that is not good.
	Verify(ctx context.Context, token string) (*apptoken.Claims, error)
	KeySet(ctx context.Context) (apptoken.KeySet, error)
}

// Config configures the operations; everything is required.
type Config struct {
	Clock  func() time.Time
	Signer Signer
	// Attempts limits how often something wrong is presented for a client.
	Attempts api.Limiter
	Answers  *sealed.Box // seals answers that may have to be given again
}

type area struct {
	store Store
	cfg   Config
}

func (a *area) now() value.Time { return value.TimeOf(a.cfg.Clock()) }

// Operations returns every operation of this area.
func Operations(store Store, cfg Config) []api.Operation {
	a := &area{store: store, cfg: cfg}
	operations := []api.Operation{
		a.authorizeOperation(),
		a.tokenOperation(),
		a.revokeOperation(),
		{
			ID: "getJwks", Method: http.MethodGet, Path: jwksPath, Summary: "Read the keys of application tokens",
			Description: "The JWK Set (RFC 7517) that verifies applications' tokens. It has up to two keys: the current one and the one " +
				"before it.",
			Result: apptoken.KeySet{}, Errors: []int{http.StatusServiceUnavailable}, Handle: a.jwks,
		},
		{
			ID: "getOauthMetadata", Method: http.MethodGet, Path: metadataPath, Summary: "Read the metadata of the authorization server",
			Description: "RFC 8414. The issuer is the base URL of this request. The claim aud of every token is " + apptoken.Audience + ".",
			Result:      Metadata{}, Handle: metadata,
		},
	}
	for i := range operations {
		operations[i].Tag = tag
	}
	return operations
}

// published answers what anybody may read and keep for a while.
func published(v any) *api.Response {
	return &api.Response{JSON: v, Header: http.Header{"Cache-Control": {"public, max-age=300"}}}
}

func (a *area) jwks(r *api.Request) (*api.Response, error) {
	set, err := a.cfg.Signer.KeySet(r.Context())
	return published(set), err
}

// Metadata is the authorization server's metadata (RFC 8414, section 2).
type Metadata struct {
	Issuer                string   `json:"issuer" format:"uri" doc:"The base URL of the API, as this request reached it; the claim iss of its tokens."`
	AuthorizationEndpoint string   `json:"authorization_endpoint" format:"uri" doc:"The page that asks a user."`
	TokenEndpoint         string   `json:"token_endpoint" format:"uri" doc:"The token endpoint."`
	RevocationEndpoint    string   `json:"revocation_endpoint" format:"uri" doc:"Where a client ends a grant (RFC 7009)."`
	JWKSURI               string   `json:"jwks_uri" format:"uri" doc:"The keys that verify tokens."`
	Scopes                []string `json:"scopes_supported" doc:"The scopes that an application can be granted; a user grants no records:write."`
	ResponseTypes         []string `json:"response_types_supported" doc:"code."`
	ResponseModes         []string `json:"response_modes_supported" doc:"query."`
	GrantTypes            []string `json:"grant_types_supported" doc:"client_credentials, authorization_code and refresh_token."`
	ChallengeMethods      []string `json:"code_challenge_methods_supported" doc:"S256."`
	NamesIssuer           bool     `json:"authorization_response_iss_parameter_supported" doc:"true: an authorization response names the issuer (RFC 9207)."`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported" doc:"client_secret_basic, client_secret_post and, of a PUBLIC application, none."`
	RevocationMethods     []string `json:"revocation_endpoint_auth_methods_supported" doc:"The same."`
	Documentation         string   `json:"service_documentation" format:"uri" doc:"The documentation for people."`
}

func metadata(r *api.Request) (*api.Response, error) {
	methods := []string{"client_secret_basic", "client_secret_post", "none"}
	return published(Metadata{
		Issuer: r.BaseURL, AuthorizationEndpoint: r.BaseURL + consentPath, TokenEndpoint: r.BaseURL + tokenPath,
		RevocationEndpoint: r.BaseURL + revokePath, JWKSURI: r.BaseURL + jwksPath,
		Scopes: account.TokenScopes(), ResponseTypes: []string{"code"}, ResponseModes: []string{"query"},
		GrantTypes: []string{clientCredentials, authorizationCode, refreshToken}, ChallengeMethods: []string{"S256"}, NamesIssuer: true,
		AuthMethods: methods, RevocationMethods: methods, Documentation: r.BaseURL + "/docs",
	}), nil
}
