package auth

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/base/value"
)

// ClientStore finds applications and what users granted them.
type ClientStore interface {
	// Client reads an application of the organization with the scopes of its
	// tokens; nil when there is none.
	Client(ctx context.Context, organization, application value.ID) (*account.Client, error)
	// EventualClient is Client, but may be a moment behind.
	EventualClient(ctx context.Context, organization, application value.ID) (*account.Client, error)
	// Grant reads a grant to the application; nil when there is none.
	Grant(ctx context.Context, organization, application, id value.ID) (*account.Family, error)
}

// Applications says what the tokens of applications may do now: what it says is
// at most 3 s old, and as much older as the table's eventually consistent reads are
// behind, usually less than a second. It is safe for concurrent use.
type Applications struct {
	clients *recent[applicationKey, *account.Client]
	grants  *recent[grantKey, *account.Grant] // nil: there is none
}

type (
	applicationKey struct{ organization, application value.ID }
	grantKey       struct {
		applicationKey

		grant value.ID
	}
)

// NewApplications makes the checks of applications in the store.
func NewApplications(store ClientStore, clock func() time.Time) *Applications {
	read := func(ctx context.Context, k applicationKey, _ *account.Client, current bool) (*account.Client, error) {
		if current {
			return store.Client(ctx, k.organization, k.application)
		}
		return store.EventualClient(ctx, k.organization, k.application)
	}
	readGrant := func(ctx context.Context, k grantKey, _ *account.Grant, _ bool) (*account.Grant, error) {
		f, err := store.Grant(ctx, k.organization, k.application, k.grant)
		if f == nil || err != nil {
			return nil, err
		}
		g := f.Grant // without what its codes are checked against
		return &g, nil
	}
	return &Applications{newRecent(read, clock), newRecent(readGrant, clock)}
}

// Refresh returns the principal of an application's token as the application is
// now: without scopes that it may no longer have, and with its rate limit. The
// scopes of a portal session do not depend on those of the application's tokens. It
// is a denial when the application is suspended or deleted, or the token's grant was
// revoked. A principal of another kind stays as it is.
func (a *Applications) Refresh(ctx context.Context, p Principal) (Principal, *Denial, error) {
	if p.Kind != KindApplication {
		return p, nil, nil
	}
	key := applicationKey{p.OrganizationID, p.ApplicationID}
	bounded := Scopes.grantedTo
	var grant *account.Grant
	if !p.GrantID.IsZero() {
		// No token is older than its grant, and the reading is strongly consistent.
		var err error
		if grant, err = a.grants.get(ctx, grantKey{key, p.GrantID}); err != nil {
			return Principal{}, nil, err
		}
		if grant != nil && grant.OfPortal() {
			p.EventScopes = ScopesNamed(*grant.EventScopes)
			bounded = func(s Scopes, _ *account.Client) Scopes { return s }
		}
	}
	c, err := a.clients.get(ctx, key)
	scopes := bounded(p.Scopes, c)
	if err == nil && (c == nil || len(scopes) < len(p.Scopes)) {
		// What was read may be older than the token, and than what it was made of.
		c, err = a.clients.since(ctx, key, a.settled(p))
		scopes = bounded(p.Scopes, c)
	}
	switch {
	case err != nil:
		return Principal{}, nil, err
	case c == nil:
		denial := deny("the application of the bearer token was deleted")
		denial.Of = p
		return Principal{}, denial, nil
	case c.Application.Status == account.Suspended:
		return Principal{}, suspended(p), nil
	case grant == nil && !p.GrantID.IsZero():
		denial := deny("the grant of the bearer token was revoked or has expired; ask the user again")
		denial.Of = p
		return Principal{}, denial, nil
	}
	p.Scopes, p.RateLimit = scopes, c.Application.RateLimit
	return p, nil, nil
}

// settled is a time at which the token had been made, so that a reading since then
// shows every scope that it was made with. A token has whole seconds. How long a
// portal session's works is its own.
func (a *Applications) settled(p Principal) time.Time {
	made := p.ExpiresAt.Add(time.Second - apptoken.Lifetime)
	if now := a.clients.now(); now.Before(made) || p.OfPortal() {
		return now
	}
	return made
}

// grantedTo returns the scopes of the set that the client's tokens may have;
// none for no client.
func (s Scopes) grantedTo(c *account.Client) Scopes {
	if c == nil {
		return nil
	}
	return s.Intersect(ScopesNamed(c.TokenScopes))
}
