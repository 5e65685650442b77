package auth

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
)

// PrincipalKind is the kind of a principal.
type PrincipalKind string

// The kinds of principal.
const (
	KindUser        PrincipalKind = "user"        // a person, by a user JWT
	KindKey         PrincipalKind = "key"         // an API key of an application
	KindApplication PrincipalKind = "application" // a token of an application, its own or by a user's grant
	KindSource      PrincipalKind = "source"      // a shop that signed a webhook; no authorizer establishes it
)

// MaxSites is the most sites that one credential may name.
const MaxSites = 100

// Principal is the caller of a request, as the authorizer verified it. Every
// access to a record, an index or a cache takes its organization from here.
type Principal struct {
	Kind           PrincipalKind
	OrganizationID value.ID
	UserID         value.ID // zero unless Kind is KindUser or GrantID is set
	ApplicationID  value.ID // zero for users
	KeyID          value.ID // zero unless Kind is KindKey
	GrantID        value.ID // zero unless an application acts in a user's name
	SourceID       value.ID // zero unless Kind is KindSource
	Scopes         Scopes
	EventScopes    Scopes     // read scopes that a portal session has for events alone; nil: it is none
	SiteIDs        []value.ID // nil: every site; never empty
	Networks       []string   // from which the credential is accepted; nil: from every address; never empty
	RateLimit      int        // requests per 60 s of the subject
	ExpiresAt      time.Time  // zero: does not expire
	Credential     string     // [Digest] of the credential that the authorizer judged
}

// Subject is the key of the rate limit: the application, or the user or source
// within the organization.
func (p *Principal) Subject() string {
	switch p.Kind {
	case KindUser:
		return p.OrganizationID.String() + "#" + p.UserID.String()
	case KindSource:
		return p.OrganizationID.String() + "#source#" + p.SourceID.String()
	}
	return p.ApplicationID.String()
}

// OfPortal reports whether it is a portal session.
func (p *Principal) OfPortal() bool { return p.EventScopes != nil }

// OrganizationSubject is the key of the rate limit of the whole organization.
func (p *Principal) OrganizationSubject() string { return p.OrganizationID.String() + "#organization" }

// MaySeeSite reports whether the credential covers the site.
func (p *Principal) MaySeeSite(site value.ID) bool {
	return p.SiteIDs == nil || slices.Contains(p.SiteIDs, site)
}

// MayComeFrom reports whether the credential is accepted from the address.
func (p *Principal) MayComeFrom(address string) bool {
	return p.Networks == nil || account.InNetworks(p.Networks, address)
}

// Lacks returns those of the scopes that the credential does not hold. What a
// request mints, grants, rotates, subscribes to or shows takes every scope that
// can be reached by it: nobody gets more by a detour than he has. Sites need no
// such look: what a detour makes reaches every site, and the operations that make
// it refuse a credential that is limited to sites.
func (p *Principal) Lacks(scopes ...Scope) Scopes {
	return slices.DeleteFunc(NewScopes(scopes...), func(s Scope) bool { return p.Scopes.Has(s) || p.EventScopes.Has(s) })
}

// Keys of the authorizer context. API Gateway hands every value on as text.
const (
	contextKind         = "principalKind"
	contextOrganization = "organizationId"
	contextUser         = "userId"
	contextApplication  = "applicationId"
	contextKey          = "keyId"
	contextGrant        = "grantId"
	contextScopes       = "scopes"
	contextSites        = "siteIds"
	contextNetworks     = "networks"
	contextRateLimit    = "rateLimit"
	contextExpires      = "expiresAt"
	contextCredential   = "credential"
)

// Context writes the principal as the authorizer context of API Gateway,
// strings only.
func (p *Principal) Context() map[string]string {
	ctx := map[string]string{
		contextKind:         string(p.Kind),
		contextOrganization: p.OrganizationID.String(),
		contextScopes:       p.Scopes.String(),
		contextRateLimit:    strconv.Itoa(p.RateLimit),
		contextCredential:   p.Credential,
	}
	setID := func(key string, id value.ID) {
		if !id.IsZero() {
			ctx[key] = id.String()
		}
	}
	setID(contextUser, p.UserID)
	setID(contextApplication, p.ApplicationID)
	setID(contextKey, p.KeyID)
	setID(contextGrant, p.GrantID)
	if p.SiteIDs != nil {
		sites := make([]string, len(p.SiteIDs))
		for i, id := range p.SiteIDs {
			sites[i] = id.String()
		}
		ctx[contextSites] = strings.Join(sites, " ")
	}
	if p.Networks != nil {
		ctx[contextNetworks] = strings.Join(p.Networks, " ")
	}
	if !p.ExpiresAt.IsZero() {
		ctx[contextExpires] = strconv.FormatInt(p.ExpiresAt.Unix(), 10)
	}
	return ctx
}

// ErrNoPrincipal means that the authorizer context holds no principal.
var ErrNoPrincipal = errors.New("auth: no principal in the authorizer context")

// PrincipalFromContext reads what [Principal.Context] wrote, whatever type
// the gateway gave the values. A context without a principal, or with a damaged
// one, is an error, so that no request is served without a principal.
func PrincipalFromContext(ctx map[string]any) (Principal, error) {
	get := func(key string) string {
		if ctx[key] == nil {
			return ""
		}
		return fmt.Sprint(ctx[key])
	}
	p := Principal{Kind: PrincipalKind(get(contextKind)), Scopes: ParseScopes(get(contextScopes)), Credential: get(contextCredential)}
	if p.Kind != KindUser && p.Kind != KindKey && p.Kind != KindApplication {
		return Principal{}, ErrNoPrincipal
	}
	var err error
	id := func(key string, required bool) (out value.ID) {
		text := get(key)
		if text == "" && !required {
			return out
		}
		out, parseErr := value.ParseID(text)
		err = errors.Join(err, parseErr)
		return out
	}
	p.OrganizationID = id(contextOrganization, true)
	p.UserID = id(contextUser, p.Kind == KindUser)
	p.ApplicationID = id(contextApplication, p.Kind != KindUser)
	p.KeyID = id(contextKey, p.Kind == KindKey)
	p.GrantID = id(contextGrant, false)
	if _, limited := ctx[contextSites]; limited && strings.TrimSpace(get(contextSites)) == "" {
		err = errors.Join(err, errors.New("limited to no site"))
	}
	if _, limited := ctx[contextNetworks]; limited {
		if p.Networks = strings.Fields(get(contextNetworks)); len(p.Networks) == 0 {
			err = errors.Join(err, errors.New("limited to no network"))
		}
	}
	for _, text := range strings.Fields(get(contextSites)) {
		site, parseErr := value.ParseID(text)
		err = errors.Join(err, parseErr)
		p.SiteIDs = append(p.SiteIDs, site)
	}
	limit, limitErr := strconv.ParseFloat(get(contextRateLimit), 64)
	err = errors.Join(err, limitErr)
	p.RateLimit = int(limit)
	if text := get(contextExpires); text != "" {
		seconds, expiresErr := strconv.ParseFloat(text, 64)
		err = errors.Join(err, expiresErr)
		p.ExpiresAt = time.Unix(int64(seconds), 0)
	}
	if err != nil {
		return Principal{}, fmt.Errorf("%w: %w", ErrNoPrincipal, err)
	}
	return p, nil
}
