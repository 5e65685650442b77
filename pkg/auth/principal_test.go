package auth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
)

// handedOn is the context of a principal as the gateway hands it to a function.
func handedOn(p *Principal) map[string]any {
	context := map[string]any{}
	for name, text := range p.Context() {
		context[name] = text
	}
	return context
}

func TestAPrincipalSurvivesTheGatewaysContext(t *testing.T) {
	sites := make([]value.ID, MaxSites)
	for i := range sites {
		sites[i] = value.NewID()
	}
	key := value.NewID()
	for _, p := range []Principal{
		{Kind: KindUser, OrganizationID: org, UserID: user, Scopes: Owner.Scopes(), RateLimit: 600, ExpiresAt: time.Unix(1_795_000_000, 0), Credential: "d"},
		{Kind: KindKey, OrganizationID: org, ApplicationID: user, KeyID: key, Scopes: Scopes{OrdersRead}, SiteIDs: sites, Networks: []string{"203.0.113.0/24", "2001:db8::/32"}, RateLimit: 1_000_000},
		{Kind: KindApplication, OrganizationID: org, ApplicationID: user, Scopes: Scopes{}, RateLimit: 1},
	} {
		texts, typed := map[string]any{}, map[string]any{"unrelated": nil}
		for name, text := range p.Context() {
			texts[name], typed[name] = text, text
		}
		// An emulator hands numbers on as numbers.
		typed[contextRateLimit] = float64(p.RateLimit)
		if !p.ExpiresAt.IsZero() {
			typed[contextExpires] = float64(p.ExpiresAt.Unix())
		}
		for how, context := range map[string]map[string]any{"as text": texts, "typed": typed} {
			got, err := PrincipalFromContext(context)
			if err != nil {
				t.Fatalf("%s %s: %v", p.Kind, how, err)
			}
			if diff := cmp.Diff(p, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", p.Kind, how, diff)
			}
		}
	}
}

func TestADamagedContextHasNoPrincipal(t *testing.T) {
	good := Principal{Kind: KindKey, OrganizationID: org, ApplicationID: user, KeyID: siteA, SiteIDs: []value.ID{siteA}, RateLimit: 5, ExpiresAt: start}
	for name, change := range map[string]func(map[string]any){
		"empty":                 func(c map[string]any) { clear(c) },
		"no kind":               func(c map[string]any) { delete(c, contextKind) },
		"unknown kind":          func(c map[string]any) { c[contextKind] = "root" },
		"no organization":       func(c map[string]any) { delete(c, contextOrganization) },
		"damaged organization":  func(c map[string]any) { c[contextOrganization] = "x" },
		"no application":        func(c map[string]any) { delete(c, contextApplication) },
		"no key":                func(c map[string]any) { c[contextKey] = nil },
		"a user without user":   func(c map[string]any) { c[contextKind] = "user" },
		"limited to no site":    func(c map[string]any) { c[contextSites] = "" },
		"limited to no network": func(c map[string]any) { c[contextNetworks] = " " },
		"damaged site":          func(c map[string]any) { c[contextSites] = siteA.String() + " x" },
		"no rate limit":         func(c map[string]any) { delete(c, contextRateLimit) },
		"a limit that is text":  func(c map[string]any) { c[contextRateLimit] = "many" },
		"an expiry that is not": func(c map[string]any) { c[contextExpires] = true },
	} {
		t.Run(name, func(t *testing.T) {
			context := handedOn(&good)
			change(context)
			if p, err := PrincipalFromContext(context); !errors.Is(err, ErrNoPrincipal) {
				t.Errorf("got %+v, %v, want ErrNoPrincipal", p, err)
			}
		})
	}
}

func TestTheSubjectOfALimitIsTheApplicationOrTheUser(t *testing.T) {
	key := Principal{Kind: KindKey, OrganizationID: org, ApplicationID: siteA, KeyID: siteB}
	token := Principal{Kind: KindApplication, OrganizationID: org, ApplicationID: siteA}
	if key.Subject() != token.Subject() {
		t.Errorf("a key and a token of one application: got %s and %s, want the same", key.Subject(), token.Subject())
	}
	here, there := Principal{Kind: KindUser, OrganizationID: org, UserID: user}, Principal{Kind: KindUser, OrganizationID: siteA, UserID: user}
	if here.Subject() == there.Subject() {
		t.Errorf("a user in two organizations: got %s for both", here.Subject())
	}
}

func TestSites(t *testing.T) {
	limited := Principal{SiteIDs: []value.ID{siteA}}
	if !limited.MaySeeSite(siteA) || limited.MaySeeSite(siteB) {
		t.Error("a principal with one site must see that one only")
	}
	if unlimited := (Principal{}); !unlimited.MaySeeSite(siteB) {
		t.Error("a principal without sites must see every site")
	}
}

// TestScopesOfAccounts compares the scopes that package account names with those of the areas.
func TestScopesOfAccounts(t *testing.T) {
	for what, pair := range map[string][2]string{
		"keys":   {ReadScopes().String(), strings.Join(account.ReadScopes(), " ")},
		"tokens": {NewScopes(append(ReadScopes(), RecordsWrite, WebhooksRead, WebhooksWrite)...).String(), strings.Join(account.TokenScopes(), " ")},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s hold %s, want %s", what, pair[1], pair[0])
		}
	}
}

func TestScopesAreSets(t *testing.T) {
	s := ParseScopes(" orders:read  products:read orders:read ")
	if got, want := s.String(), "orders:read products:read"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.Intersect(Scopes{ProductsRead, WebhooksRead}); cmp.Diff(Scopes{ProductsRead}, got) != "" {
		t.Errorf("intersection: got %v", got)
	}
	if AllScopes().Has(DevelopersAdmin) {
		t.Error("AllScopes, which claims can name, has developers:admin")
	}
	for _, role := range []Role{Owner, Admin, DeveloperRole, Viewer} {
		if diff := cmp.Diff(NewScopes(role.Scopes()...), role.Scopes()); diff != "" {
			t.Errorf("scopes of %s are not a sorted set:\n%s", role, diff)
		}
	}
}
