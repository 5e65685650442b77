package auth

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/base/value"
)

// KeyStore finds API keys.
type KeyStore interface {
	// Credential reads the credential of the key with the text id, and its
	// application; either is nil when it does not exist.
	Credential(ctx context.Context, textID string) (*account.Credential, *account.Application, error)
	// RefreshCredential is Credential for one that was found before. The answer
	// may be a moment behind.
	RefreshCredential(ctx context.Context, known *account.Credential) (*account.Credential, *account.Application, error)
	// TouchKey writes the time of the key's last use, unless the stored time is
	// less than the interval ago.
	TouchKey(ctx context.Context, c *account.Credential, interval time.Duration) error
}

// Store keeps what an authorizer checks credentials against.
type Store interface {
	KeyStore
	ClientStore
	SigningKeyStore
}

// AuthorizerConfig configures an authorizer.
type AuthorizerConfig struct {
	Clock  func() time.Time
	Logger *slog.Logger // gets last uses that could not be written
}

// Authorizer turns the credentials of a request into a principal. It is safe
// for concurrent use.
type Authorizer struct {
	users        *Verifier
	tokens       *applicationTokens
	applications *Applications
	keys         *keyCache
	cfg          AuthorizerConfig
}

// NewAuthorizer makes an authorizer of users' tokens, which the verifier
// checks, and of API keys and applications' tokens, which the store knows.
func NewAuthorizer(users *Verifier, store Store, cfg AuthorizerConfig) *Authorizer {
	return &Authorizer{
		users: users, keys: newKeyCache(store, cfg.Clock), cfg: cfg,
		tokens:       &applicationTokens{verifier: apptoken.NewVerifier(cfg.Clock), keys: newPublishedKeys(store, cfg.Clock)},
		applications: NewApplications(store, cfg.Clock),
	}
}

// Request is a request as an authorizer sees it.
type Request struct {
	Headers map[string][]string // names in any case
	Read    bool                // of the read API, which takes API keys too

	SourceAddress string
}

// Authorize returns the principal, or a denial when the credentials are not
// acceptable, or an error when it cannot decide: then the request must be
// answered as unavailable, and no decision about the credentials may be cached.
//
// On the read API only the key counts when a token comes with it: a bad key
// is denied even with a good token. Elsewhere a key is ignored.
func (a *Authorizer) Authorize(ctx context.Context, r Request) (Principal, *Denial, error) {
	c, denial := presented(r.Headers, r.Read)
	if denial != nil {
		return Principal{}, denial, nil
	}
	judge := a.token
	if c.isKey {
		judge = a.key
	}
	p, denial, err := judge(ctx, r, c.text)
	p.Credential = Digest(c.text)
	if denial != nil {
		denial.Of.Credential = p.Credential
	}
	return p, denial, err
}

// token checks a bearer token. Its key id decides who may have signed it: the
// service, or the issuer of users' tokens. Neither's keys verify the other's
// tokens. API Gateway keeps the answer for minutes unless it is for the read API:
// then nothing of the application's present state may be in it, be it good or
// bad, and the function asks for it by [Applications.Refresh].
func (a *Authorizer) token(ctx context.Context, r Request, token string) (Principal, *Denial, error) {
	if account.LooksLikeKey(token) {
		return Principal{}, deny("the bearer token is an API key: send it in the X-API-Key header, which /api and /mcp read; elsewhere send a token"), nil
	}
	if !isApplicationToken(token) {
		return a.users.Verify(ctx, token)
	}
	p, denial, err := a.tokens.verify(ctx, token)
	if denial != nil || err != nil || !r.Read {
		return p, denial, err
	}
	return a.applications.Refresh(ctx, p)
}

// looksLikeToken reports whether a text other than an API key may be a JWT, with or
// without its scheme. Nothing of it is checked.
func looksLikeToken(text string) bool {
	return !account.LooksLikeKey(text) && strings.Count(text, ".") == strings.Count("header.claims.signature", ".")
}

const (
	// touchInterval is the least time between two writes of a key's last use.
	touchInterval = 10 * time.Minute
	// touchTimeout bounds that write, which must not hold up a request.
	touchTimeout = 500 * time.Millisecond
)

// key checks an API key. The state of a key is told only to a caller that
// presented the whole key.
func (a *Authorizer) key(ctx context.Context, r Request, text string) (Principal, *Denial, error) {
	id, err := account.ParseKeyText(text)
	if err != nil && looksLikeToken(text) {
		return Principal{}, deny("the X-API-Key header has a token: send it in the Authorization header as Bearer, a space and the token"), nil
	}
	if err != nil {
		return Principal{}, deny("the API key is not well formed: copy it again, it starts with cis_live_ and has 55 characters"), nil //nolint:nilerr // the denial is the answer
	}
	found, err := a.keys.get(ctx, id)
	if err != nil {
		return Principal{}, nil, err
	}
	c, app := found.credential, found.application
	if c == nil || !c.Hash.Equal(account.HashSecret(text)) || app == nil {
		denial := deny("the API key is not known")
		denial.KeyText = id
		return Principal{}, denial, nil
	}
	p := keyPrincipal(c, app)
	if denial := denialOfState(c, app, p, value.TimeOf(a.cfg.Clock())); denial != nil {
		denial.KeyText = id
		return Principal{}, denial, nil
	}
	if p.MayComeFrom(r.SourceAddress) { // the function refuses it otherwise
		a.touch(ctx, c)
	}
	return p, nil, nil
}

// denialOfState denies a genuine key, the principal's, that does not work any more.
func denialOfState(c *account.Credential, app *account.Application, p Principal, now value.Time) *Denial {
	switch {
	case c.Revoked:
		return &Denial{Code: CodeKeyRevoked, Of: p, Message: "the API key was revoked; create another one"}
	case c.ExpiresAt != nil && *c.ExpiresAt <= now:
		return &Denial{Code: CodeKeyExpired, Of: p, Message: "the API key has expired; create another one"}
	case app.Status == account.Suspended:
		return suspended(p)
	}
	return nil
}

func keyPrincipal(c *account.Credential, app *account.Application) Principal {
	p := Principal{
		Kind: KindKey, OrganizationID: c.OrganizationID, ApplicationID: c.ApplicationID, KeyID: c.KeyID,
		Scopes: ScopesNamed(c.Scopes).Intersect(ReadScopes()), SiteIDs: c.SiteIDs, Networks: c.Networks, RateLimit: app.RateLimit,
	}
	if c.ExpiresAt != nil {
		p.ExpiresAt = c.ExpiresAt.Std()
	}
	return p
}

// touch writes the last use when that is due. A failure is only logged: it must
// not fail the request.
func (a *Authorizer) touch(ctx context.Context, c *account.Credential) {
	if !a.keys.claimTouch(c) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, touchTimeout)
	defer cancel()
	if err := a.keys.store.TouchKey(ctx, c, touchInterval); err != nil {
		a.cfg.Logger.WarnContext(ctx, "the last use of a key was not written", "keyId", c.KeyID.String(), "error", err)
	}
}
