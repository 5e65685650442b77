package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	testIssuer   = "https://id.example.com/"
	testAudience = "commerce"
	testSecret   = "0123456789abcdef0123456789abcdef"
)

var (
	start = time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)
	org   = value.MustID("018f0000-0000-7000-8000-000000000001")
	user  = value.MustID("018f0000-0000-7000-8000-0000000000b1")
	siteA = value.MustID("018f0000-0000-7000-8000-0000000000a1")
	siteB = value.MustID("018f0000-0000-7000-8000-0000000000a2")
)

// clock is moved by the test, from any goroutine.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time          { return start.Add(time.Duration(c.offset.Load())) }
func (c *clock) forward(d time.Duration) { c.offset.Add(int64(d)) }

// signers are keys of every accepted type, made once.
type signers struct {
	rsa, weakRSA *rsa.PrivateKey
	ecdsa        *ecdsa.PrivateKey
	ed25519      ed25519.PrivateKey
}

var makeSigners = sync.OnceValue(func() signers {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	var s signers
	var err error
	s.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	s.weakRSA, err = rsa.GenerateKey(rand.Reader, 1024)
	must(err)
	s.ecdsa, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	_, s.ed25519, err = ed25519.GenerateKey(rand.Reader)
	must(err)
	return s
})

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func rsaJWK(kid string, key *rsa.PrivateKey) jwk {
	return jwk{Kty: "RSA", Kid: kid, N: b64(key.N.Bytes()), E: b64(big.NewInt(int64(key.E)).Bytes())}
}

func ecJWK(kid string, key *ecdsa.PrivateKey) jwk {
	point, err := key.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	return jwk{Kty: "EC", Crv: "P-256", Kid: kid, X: b64(point[1:33]), Y: b64(point[33:])}
}

func edJWK(kid string, key ed25519.PrivateKey) jwk {
	return jwk{Kty: "OKP", Crv: "Ed25519", Kid: kid, X: b64(key.Public().(ed25519.PublicKey))}
}

// provider is an identity provider's JWKS URL.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	document string
	status   int
	requests int
}

func newProvider(t testing.TB, keys ...jwk) *provider {
	t.Helper()
	p := &provider{}
	p.publish(t, keys...)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests++
		w.WriteHeader(p.status)
		fmt.Fprint(w, p.document)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) publish(t testing.TB, keys ...jwk) {
	t.Helper()
	p.answer(http.StatusOK, setOf(t, keys...))
}

func (p *provider) answer(status int, document string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.document = status, document
}

func (p *provider) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

type claims = jwt.MapClaims

// with returns the claims of a good token, changed; nil removes a claim.
func with(changes claims) claims {
	c := claims{
		"iss": testIssuer, "aud": testAudience, "sub": user.String(), "organizationId": org.String(),
		"exp": start.Add(time.Hour).Unix(),
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func sign(t testing.TB, method jwt.SigningMethod, kid string, key any, c claims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func newTestVerifier(t testing.TB, change func(*VerifierConfig)) *Verifier {
	t.Helper()
	cfg := VerifierConfig{Issuer: testIssuer, Audience: testAudience, HS256Secret: testSecret, Clock: func() time.Time { return start }}
	if change != nil {
		change(&cfg)
	}
	v, err := NewVerifier(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// outcome is "ok" or the denial's code and message.
func outcome(t *testing.T, v *Verifier, token string) string {
	t.Helper()
	_, denial, err := v.Verify(t.Context(), token)
	return outcomeOf(t, denial, err)
}

func outcomeOf(t *testing.T, denial *Denial, err error) string {
	t.Helper()
	switch {
	case err != nil:
		return "error"
	case denial == nil:
		return "ok"
	}
	if !safeText(denial.Code) || !safeText(denial.Message) {
		t.Errorf("denial %+v: has characters that a gateway template cannot carry", denial)
	}
	return denial.Code + ": " + denial.Message
}

func hs256(t testing.TB, changes claims) string {
	t.Helper()
	return sign(t, jwt.SigningMethodHS256, "", []byte(testSecret), with(changes))
}

func TestClaimsAreChecked(t *testing.T) {
	v := newTestVerifier(t, nil)
	many := func(n int) []string {
		sites := make([]string, n)
		for i := range sites {
			sites[i] = value.NewID().String()
		}
		return sites
	}
	at := func(d time.Duration) int64 { return start.Add(d).Unix() }
	for _, tc := range []struct {
		name    string
		changes claims
		want    string // beginning of the outcome
	}{
		{"nothing wrong", nil, "ok"},
		{"expired within the leeway", claims{"exp": at(-29 * time.Second)}, "ok"},
		{"expired past the leeway", claims{"exp": at(-31 * time.Second)}, "token_expired"},
		{"no exp", claims{"exp": nil}, "unauthenticated: the bearer token must have"},
		{"exp as text", claims{"exp": "tomorrow"}, "unauthenticated: the bearer token has a claim of a wrong type"},
		{"nbf within the leeway", claims{"nbf": at(29 * time.Second)}, "ok"},
		{"nbf past the leeway", claims{"nbf": at(31 * time.Second)}, "unauthenticated: the bearer token is not valid yet"},
		{"iat in the future", claims{"iat": at(time.Hour)}, "ok"},
		{"another issuer", claims{"iss": "https://id.example.com"}, "unauthenticated: the bearer token is from another issuer"},
		{"no issuer", claims{"iss": nil}, "unauthenticated: the bearer token must have"},
		{"another audience", claims{"aud": "else"}, "unauthenticated: the bearer token is for another audience"},
		{"another audience and expired", claims{"aud": "else", "exp": at(-time.Hour)}, "unauthenticated: the bearer token is for another audience"},
		{"several audiences", claims{"aud": []string{"else", testAudience}}, "ok"},
		{"no audience", claims{"aud": nil}, "unauthenticated"},
		{"no sub", claims{"sub": nil}, "unauthenticated: the bearer token must have the claim sub"},
		{"empty sub", claims{"sub": ""}, "unauthenticated: the bearer token must have the claim sub"},
		{"sub that is no text", claims{"sub": 5}, "unauthenticated: the bearer token must have the claim sub"},
		{"no organization", claims{"organizationId": nil}, "unauthenticated: the bearer token must have the claim organizationId"},
		{"organization that is no UUID", claims{"organizationId": "acme"}, "unauthenticated: the bearer token must have the claim organizationId"},
		{"the nil UUID", claims{"organizationId": value.ID{}.String()}, "unauthenticated: the bearer token must have the claim organizationId"},
		{"organization in capitals", claims{"organizationId": strings.ToUpper(org.String())}, "ok"},
		{"roles as an object", claims{"roles": claims{}}, "unauthenticated: the claim roles"},
		{"a role that is no text", claims{"roles": []any{"OWNER", 1}}, "unauthenticated: the claim roles"},
		{"scope as an array", claims{"scope": []string{"orders:read"}}, "unauthenticated: the claim scope"},
		{"100 sites", claims{"siteIds": many(100)}, "ok"},
		{"101 sites", claims{"siteIds": many(101)}, "unauthenticated: the claim siteIds of the bearer token names more than 100 sites"},
		{"no sites", claims{"siteIds": []string{}}, "unauthenticated: the claim siteIds"},
		{"sites that are null", claims{"siteIds": jsontext.Value("null")}, "unauthenticated: the claim siteIds"},
		{"a site that is no UUID", claims{"siteIds": []string{"berlin"}}, "unauthenticated: the claim siteIds"},
		{"sites as a number", claims{"siteIds": 5}, "unauthenticated: the claim siteIds"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := outcome(t, v, hs256(t, tc.changes)); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAUsersPrincipal(t *testing.T) {
	v := newTestVerifier(t, nil)
	token := hs256(t, claims{"sub": "auth0|5f7c8ec7", "roles": []string{"VIEWER"}, "siteIds": []string{siteB.String(), siteA.String(), siteB.String()}})
	got, denial, err := v.Verify(t.Context(), token)
	if denial != nil || err != nil {
		t.Fatal(denial, err)
	}
	want := Principal{
		// The user's id is computed by uuid5 of Python's standard library.
		Kind: KindUser, OrganizationID: org, UserID: value.MustID("b14b132d-a78a-539b-aed9-85afaceccb65"), Scopes: Viewer.Scopes(), SiteIDs: []value.ID{siteA, siteB},
		RateLimit: 600, ExpiresAt: start.Add(time.Hour + Leeway),
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("principal (-want +got):\n%s", diff)
	}
}

func TestTheOrganizationClaimIsConfigurable(t *testing.T) {
	v := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.OrganizationClaim = "https://example.com/org" })
	if got := outcome(t, v, hs256(t, claims{"https://example.com/org": org.String(), "organizationId": nil})); got != "ok" {
		t.Errorf("got %s, want ok", got)
	}
	if got, want := outcome(t, v, hs256(t, nil)), "unauthenticated: the bearer token must have the claim https://example.com/org, a UUID"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDamagedTokensAreDenied(t *testing.T) {
	v := newTestVerifier(t, nil)
	good := hs256(t, nil)
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"empty":             "",
		"no JWT":            "secret",
		"two parts":         parts[0] + "." + parts[1],
		"four parts":        good + ".x",
		"no JSON":           "e30.e30.e30",
		"no alg":            b64([]byte("{}")) + "." + parts[1] + "." + parts[2],
		"no signature":      parts[0] + "." + parts[1] + ".",
		"another signature": parts[0] + "." + parts[1] + "." + parts[2][1:] + "A",
		"other claims":      parts[0] + "." + b64([]byte(`{"sub":"x"}`)) + "." + parts[2],
		"HS512":             sign(t, jwt.SigningMethodHS512, "", []byte(testSecret), with(nil)),
		"another secret":    sign(t, jwt.SigningMethodHS256, "", []byte(testSecret+"x"), with(nil)),
		"padding":           parts[0] + "=." + parts[1] + "." + parts[2],
		"too long":          hs256(t, claims{"x": strings.Repeat("x", 20_000)}),
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, v, token); !strings.HasPrefix(got, "unauthenticated: ") {
				t.Errorf("got %s, want unauthenticated", got)
			}
		})
	}
}

func TestEveryAlgorithmMeetsItsOwnKeysOnly(t *testing.T) {
	s := makeSigners()
	p := newProvider(t, rsaJWK("r", s.rsa), ecJWK("e", s.ecdsa), edJWK("o", s.ed25519))
	both := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL = p.URL })
	jwksOnly := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL, cfg.HS256Secret = p.URL, "" })
	secretOnly := newTestVerifier(t, nil)
	for _, tc := range []struct {
		name                string
		token               string
		both, jwks, secrets bool
	}{
		{"RS256", sign(t, jwt.SigningMethodRS256, "r", s.rsa, with(nil)), true, true, false},
		{"ES256", sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(nil)), true, true, false},
		{"EdDSA", sign(t, jwt.SigningMethodEdDSA, "o", s.ed25519, with(nil)), true, true, false},
		{"without a key id", sign(t, jwt.SigningMethodES256, "", s.ecdsa, with(nil)), true, true, false},
		{"HS256", hs256(t, nil), true, false, true},
		{"HS256 with a key id", sign(t, jwt.SigningMethodHS256, "r", []byte(testSecret), with(nil)), true, false, true},
		{"RS256 with the id of another type", sign(t, jwt.SigningMethodRS256, "e", s.rsa, with(nil)), false, false, false},
		{"RS512", sign(t, jwt.SigningMethodRS512, "r", s.rsa, with(nil)), false, false, false},
		{"PS256", sign(t, jwt.SigningMethodPS256, "r", s.rsa, with(nil)), false, false, false},
		{"RS256 by another key", sign(t, jwt.SigningMethodRS256, "r", s.weakRSA, with(nil)), false, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, v := range []struct {
				name     string
				verifier *Verifier
				accepted bool
			}{{"both", both, tc.both}, {"JWKS only", jwksOnly, tc.jwks}, {"secret only", secretOnly, tc.secrets}} {
				got := outcome(t, v.verifier, tc.token)
				if accepted := got == "ok"; accepted != v.accepted || !accepted && !strings.HasPrefix(got, CodeUnauthenticated) {
					t.Errorf("%s under %s: got %s, want accepted %v", tc.name, v.name, got, v.accepted)
				}
			}
		})
	}
}

func TestAVerifierRefusesAConfigurationThatIsNotSafe(t *testing.T) {
	good := VerifierConfig{Issuer: testIssuer, Audience: testAudience, HS256Secret: testSecret, Clock: time.Now}
	for name, change := range map[string]func(*VerifierConfig){
		"no issuer":           func(c *VerifierConfig) { c.Issuer = "" },
		"no audience":         func(c *VerifierConfig) { c.Audience = "" },
		"no keys":             func(c *VerifierConfig) { c.HS256Secret = "" },
		"a short secret":      func(c *VerifierConfig) { c.HS256Secret = testSecret[1:] },
		"a claim with quotes": func(c *VerifierConfig) { c.OrganizationClaim = `org"` },
		"an unknown role":     func(c *VerifierConfig) { c.DefaultRole = "ROOT" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			change(&cfg)
			if _, err := NewVerifier(cfg); err == nil {
				t.Error("accepted")
			}
		})
	}
	if _, err := NewVerifier(good); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

func TestRolesAndScopeDecideTheScopes(t *testing.T) {
	v := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.DefaultRole = Viewer })
	reading := append(ReadScopes(), "developers:read", "webhooks:read")
	changing := append(reading, "developers:write", "webhooks:write")
	viewer, all := NewScopes(reading...).String(), NewScopes(changing...).String()
	admin := NewScopes(append(changing, "developers:admin", "records:write")...).String()
	for _, tc := range []struct {
		name    string
		changes claims
		want    string
	}{
		{"neither claim: the default role", nil, viewer},
		{"owner", claims{"roles": []string{"OWNER"}}, admin},
		{"admin", claims{"roles": []string{"ADMIN"}}, admin},
		{"developer", claims{"roles": []string{"DEVELOPER"}}, all},
		{"viewer", claims{"roles": []string{"VIEWER"}}, viewer},
		{"one role as text", claims{"roles": "DEVELOPER"}, all},
		{"several are a union", claims{"roles": []string{"VIEWER", "DEVELOPER", "COOK"}}, all},
		{"an unknown role", claims{"roles": []string{"COOK", "owner"}}, ""},
		{"no roles in the list", claims{"roles": []string{}}, ""},
		{"scope narrows a role", claims{"roles": []string{"VIEWER"}, "scope": "orders:read webhooks:write"}, "orders:read"},
		{"scope alone", claims{"scope": "openid orders:read developers:write"}, "developers:write orders:read"},
		{"scope alone, nothing known", claims{"scope": "openid profile"}, ""},
		{"scope alone names it", claims{"scope": "records:write"}, "records:write"},
		{"only an owner or admin changes records", claims{"roles": []string{"DEVELOPER"}, "scope": "records:write"}, ""},
		{"empty scope", claims{"roles": []string{"OWNER"}, "scope": ""}, ""},
		{"scope cannot name what only roles give", claims{"scope": "developers:admin"}, ""},
		{"nor widen a role", claims{"roles": []string{"DEVELOPER"}, "scope": "developers:admin developers:write"}, "developers:write"},
		{"an owner keeps it with developers:write", claims{"roles": []string{"OWNER"}, "scope": "developers:write"}, "developers:admin developers:write"},
		{"and loses it without", claims{"roles": []string{"OWNER"}, "scope": "developers:read"}, "developers:read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, denial, err := v.Verify(t.Context(), hs256(t, tc.changes))
			if denial != nil || err != nil {
				t.Fatalf("%v, %v", denial, err)
			}
			if got := p.Scopes.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	for _, claim := range []string{"roles", "scope"} {
		c := with(nil)
		c[claim] = nil
		p, _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, "", []byte(testSecret), c))
		if err != nil || len(p.Scopes) != 0 {
			t.Errorf("%s null: got %v, %v, want no scopes", claim, p.Scopes, err)
		}
	}
}

// step fails unless the token has the outcome after so many requests for keys.
func (p *provider) step(t *testing.T, v *Verifier, what, token, want string, requests int) {
	t.Helper()
	_, denial, err := v.Verify(t.Context(), token)
	if got := outcomeOf(t, denial, err); !strings.HasPrefix(got, want) || p.asked() != requests {
		t.Errorf("%s: got %s after %d requests, want %s after %d", what, got, p.asked(), want, requests)
	}
	if err != nil && !fault.Is(err, fault.Unavailable) {
		t.Errorf("%s: got %v, want a fault of kind Unavailable", what, err)
	}
}

func TestRotatedKeysAreFoundAndWithdrawnOnesForgotten(t *testing.T) {
	s := makeSigners()
	var c clock
	p := newProvider(t, ecJWK("old", s.ecdsa))
	v := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL, cfg.Clock = p.URL, c.now })
	long := claims{"exp": start.Add(24 * time.Hour).Unix()}
	older, newer := sign(t, jwt.SigningMethodES256, "old", s.ecdsa, with(long)), sign(t, jwt.SigningMethodRS256, "new", s.rsa, with(long))
	p.step(t, v, "the first token fetches", older, "ok", 1)
	p.step(t, v, "the next does not", older, "ok", 1)
	p.step(t, v, "an unknown key at once after a fetch", newer, "unauthenticated", 1)
	p.publish(t, rsaJWK("new", s.rsa))
	c.forward(11 * time.Second)
	p.step(t, v, "a rotated key", newer, "ok", 2)
	p.step(t, v, "the withdrawn key", older, "unauthenticated", 2)
	c.forward(11 * time.Second)
	p.step(t, v, "an unknown key asks again, at most every 10 s", older, "unauthenticated", 3)
	p.step(t, v, "and not more often", older, "unauthenticated", 3)
	p.publish(t, ecJWK("old", s.ecdsa))
	c.forward(11 * time.Minute)
	p.step(t, v, "keys are fetched again after 10 minutes", newer, "unauthenticated", 4)
}

func TestATokenWithoutKeyIDFindsARotatedKey(t *testing.T) {
	s := makeSigners()
	other := newECKey(t)
	var c clock
	p := newProvider(t, ecJWK("", other))
	v := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL, cfg.Clock = p.URL, c.now })
	token := sign(t, jwt.SigningMethodES256, "", s.ecdsa, with(nil))
	p.step(t, v, "before", token, "unauthenticated", 1)
	p.publish(t, ecJWK("", other), ecJWK("", s.ecdsa))
	c.forward(11 * time.Second)
	p.step(t, v, "after", token, "ok", 2)
}

func TestKeysOutOfReachAreAnErrorAndNeverADenial(t *testing.T) {
	s := makeSigners()
	var c clock
	p := newProvider(t, ecJWK("e", s.ecdsa))
	p.answer(http.StatusInternalServerError, "")
	v := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL, cfg.Clock = p.URL, c.now })
	token := sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(claims{"exp": start.Add(24 * time.Hour).Unix()}))
	unknown := sign(t, jwt.SigningMethodRS256, "x", s.rsa, with(nil))
	p.step(t, v, "no keys yet", token, "error", 1)
	p.step(t, v, "no second try in 5 s", token, "error", 1)
	c.forward(6 * time.Second)
	for i, broken := range []string{"<html>", `{}`, `{"keys":5}`, `{"keys":[]} x`, strings.Repeat(" ", keysMaxLength+1)} {
		p.answer(http.StatusOK, broken)
		p.step(t, v, "an answer that is no JWK Set", token, "error", 2+i)
		c.forward(6 * time.Second)
	}
	p.publish(t, ecJWK("e", s.ecdsa))
	p.step(t, v, "back again", token, "ok", 7)
	p.answer(http.StatusBadGateway, "")
	c.forward(11 * time.Second)
	p.step(t, v, "an unknown key while out of reach", unknown, "error", 8)
	c.forward(11 * time.Minute)
	p.step(t, v, "a known key while out of reach", token, "ok", 9)
	c.forward(50 * time.Minute)
	p.step(t, v, "a known key after an hour out of reach", token, "error", 10)
	if got := outcome(t, v, hs256(t, claims{"exp": start.Add(24 * time.Hour).Unix()})); got != "ok" {
		t.Errorf("HS256 needs no keys: got %s", got)
	}
}

func TestOneFetchServesAllWhoWait(t *testing.T) {
	s := makeSigners()
	p := newProvider(t, ecJWK("e", s.ecdsa))
	v := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL = p.URL })
	token := sign(t, jwt.SigningMethodES256, "e", s.ecdsa, with(nil))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			// That a caller has gone away must not fail the others.
			if _, denial, err := v.Verify(cancelled, token); denial != nil || err != nil {
				t.Error(denial, err)
			}
		})
	}
	group.Wait()
	if p.asked() != 1 {
		t.Errorf("requests: got %d, want 1", p.asked())
	}
}

func TestAKeySetKeepsWhatItUnderstands(t *testing.T) {
	s := makeSigners()
	marshal := func(k jwk) string {
		text, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	changed := func(k jwk, change func(*jwk)) string { change(&k); return marshal(k) }
	good := ecJWK("good", s.ecdsa)
	for _, tc := range []struct {
		name, key string
		want      int
	}{
		{"a good key", marshal(good), 2},
		{"use sig", changed(good, func(k *jwk) { k.Use, k.Alg, k.KeyOps = "sig", "ES256", []string{"verify"} }), 2},
		{"unknown members", `{"x5c":["a"],` + marshal(good)[1:], 2},
		{"for encryption", changed(good, func(k *jwk) { k.Use = "enc" }), 1},
		{"use in capitals", changed(good, func(k *jwk) { k.Use = "SIG" }), 1},
		{"for signing only", changed(good, func(k *jwk) { k.KeyOps = []string{"sign"} }), 1},
		{"for wrapping keys", changed(good, func(k *jwk) { k.KeyOps = []string{"encrypt", "wrapKey"} }), 1},
		{"for nothing", changed(good, func(k *jwk) { k.KeyOps = []string{} }), 1},
		{"of another algorithm", changed(good, func(k *jwk) { k.Alg = "ES384" }), 1},
		{"alg none", changed(good, func(k *jwk) { k.Alg = "none" }), 1},
		{"alg HS256", changed(good, func(k *jwk) { k.Alg = "HS256" }), 1},
		{"kty oct", changed(good, func(k *jwk) { k.Kty = "oct" }), 1},
		{"of another curve", changed(good, func(k *jwk) { k.Crv = "P-384" }), 1},
		{"a curve of another type", changed(good, func(k *jwk) { k.Crv = "Ed25519" }), 1},
		{"symmetric", `{"kty":"oct","k":"c2VjcmV0"}`, 1},
		{"a point off the curve", changed(good, func(k *jwk) { k.X = k.Y }), 1},
		{"a short coordinate", changed(good, func(k *jwk) { k.X = k.X[4:] }), 1},
		{"a short Ed25519 key", changed(edJWK("o", s.ed25519), func(k *jwk) { k.X = k.X[4:] }), 1},
		{"no base64", changed(good, func(k *jwk) { k.X = "!" + k.X[1:] }), 1},
		{"a key id that is a number", `{"kid":5,"kty":"EC"}`, 1},
		{"no object", `"x"`, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			keys, err := parseKeySet([]byte(`{"keys":[` + tc.key + `,` + marshal(ecJWK("beside", s.ecdsa)) + `]}`))
			if err != nil || len(keys) != tc.want {
				t.Errorf("got %d keys, %v, want %d", len(keys), err, tc.want)
			}
		})
	}
}

func FuzzParseKeySet(f *testing.F) {
	s := makeSigners()
	for _, k := range []jwk{rsaJWK("r", s.rsa), ecJWK("e", s.ecdsa), edJWK("o", s.ed25519)} {
		f.Add([]byte(setOf(f, k)))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		keys, err := parseKeySet(document)
		if err != nil {
			return
		}
		for _, k := range keys {
			if k.key == nil || k.algorithm == "" || k.algorithm == algHS256 {
				t.Errorf("%q: got key %+v", document, k)
			}
		}
	})
}
