package auth

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/value"
)

func newTestIssuer(t *testing.T) *Issuer {
	t.Helper()
	i, err := NewIssuer(IssuerConfig{Issuer: testIssuer, Audience: testAudience, Clock: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestAnIssuersTokensAreVerifiedByItsKeySet(t *testing.T) {
	i := newTestIssuer(t)
	document, err := i.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t)
	p.answer(200, string(document))
	v := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL, cfg.HS256Secret = p.URL, "" })
	scope := "orders:read products:read developers:read"
	token, err := i.Sign(Grant{
		Subject: user.String(), OrganizationID: org, Roles: []Role{Viewer}, Scope: &scope, SiteIDs: []value.ID{siteA}, Lifetime: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, denial, err := v.Verify(t.Context(), token)
	if denial != nil || err != nil {
		t.Fatal(denial, err)
	}
	want := Principal{
		Kind: KindUser, OrganizationID: org, UserID: user, Scopes: Scopes{DevelopersRead, OrdersRead, ProductsRead},
		SiteIDs: []value.ID{siteA}, RateLimit: UserRateLimit, ExpiresAt: start.Add(time.Hour + Leeway),
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("principal (-want +got):\n%s", diff)
	}
	if plain, err := i.Sign(Grant{Subject: "x", OrganizationID: org, Lifetime: time.Hour}); err != nil || outcome(t, v, plain) != "ok" {
		t.Errorf("a grant without roles, scope and sites: got %s, %v", outcome(t, v, plain), err)
	}
	if strings.Contains(string(document), `"d"`) {
		t.Errorf("the key set holds the private key: %s", document)
	}
}

func TestAnIssuerIsLoadedWithItsKey(t *testing.T) {
	i := newTestIssuer(t)
	text, err := i.PEM()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadIssuer(text, i.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(i.jwk, loaded.jwk); diff != "" {
		t.Errorf("public key (-saved +loaded):\n%s", diff)
	}
	for name, bad := range map[string]string{
		"empty":          "",
		"no PEM":         "key",
		"another type":   strings.ReplaceAll(string(text), "PRIVATE", "PUBLIC"),
		"damaged inside": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	} {
		if _, err := LoadIssuer([]byte(bad), i.cfg); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}
