package issuer

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

var (
	start = time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)
	org   = value.MustID("018f0000-0000-7000-8000-000000000001")
	user  = value.MustID("018f0000-0000-7000-8000-0000000000b1")
	siteA = value.MustID("018f0000-0000-7000-8000-0000000000a1")
)

func now() time.Time { return start }

func newTestIssuer(t *testing.T) *Issuer {
	t.Helper()
	i, err := New(Config{Issuer: "https://id.example.com/", Audience: "commerce", Clock: now})
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
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(document) }))
	t.Cleanup(keys.Close)
	v, err := auth.NewVerifier(auth.VerifierConfig{Issuer: i.cfg.Issuer, Audience: i.cfg.Audience, JWKSURL: keys.URL, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	scope := "orders:read products:read developers:read"
	token, err := i.Sign(Grant{
		Subject: user.String(), OrganizationID: org, Roles: []auth.Role{auth.Viewer}, Scope: &scope, SiteIDs: []value.ID{siteA}, Lifetime: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, denial, err := v.Verify(t.Context(), token)
	if denial != nil || err != nil {
		t.Fatal(denial, err)
	}
	want := auth.Principal{
		Kind: auth.KindUser, OrganizationID: org, UserID: user, Scopes: auth.Scopes{auth.DevelopersRead, auth.OrdersRead, auth.ProductsRead},
		SiteIDs: []value.ID{siteA}, RateLimit: auth.UserRateLimit, ExpiresAt: start.Add(time.Hour + auth.Leeway),
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("principal (-want +got):\n%s", diff)
	}
	plain, err := i.Sign(Grant{Subject: "x", OrganizationID: org, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, denial, err := v.Verify(t.Context(), plain); denial != nil || err != nil {
		t.Errorf("a grant without roles, scope and sites: got %v, %v", denial, err)
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
	loaded, err := Load(text, i.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(i.public, loaded.public); diff != "" {
		t.Errorf("public key (-saved +loaded):\n%s", diff)
	}
	for name, bad := range map[string]string{
		"empty":          "",
		"no PEM":         "key",
		"another type":   strings.ReplaceAll(string(text), "PRIVATE", "PUBLIC"),
		"damaged inside": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	} {
		if _, err := Load([]byte(bad), i.cfg); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}
