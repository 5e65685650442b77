package auth

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
)

// FuzzAuthorize sends headers, each line a header of its own. {key}, {user} and
// {application} stand for credentials that are good: nothing but one of them is
// accepted, and no denial repeats what was sent.
func FuzzAuthorize(f *testing.F) {
	b := newHarness(f, account.CreateApiKeyDto{})
	application := b.give(f, b.signer(oneSecret, ""), "orders:read")
	good := strings.NewReplacer("{key}", b.key.Key, "{user}", b.token, "{application}", application)
	for _, seed := range []struct{ bearer, key string }{
		{"Bearer {user}", ""},
		{"bearer  {application} ", ""},
		{"Bearer {user}\nBearer {application}", "{key}"},
		{"", " {key}\t"},
		{"Basic eDp5", "{key}\n{key}"},
		{"Bearer {user}, Bearer {user}", "\n"},
		{"Bearer {user}=", "{key}0"},
		{"Bearer eyJhbGciOiJub25lIn0.e30.", ""},
		{"Bearer eyJhbGciOiJIUzI1NiIsImtpZCI6ImFwcF8ifQ.e30.AAAA", "cis_live_"},
		{"Bearer eyJhbGciOiJIUzI1NiIsImNyaXQiOlsiYiJdfQ.e30.AAAA", ""},
	} {
		f.Add(seed.bearer, seed.key, true)
		f.Add(seed.bearer, seed.key, false)
	}
	f.Fuzz(func(t *testing.T, bearer, key string, read bool) {
		sent := map[string][]string{
			"authorization": strings.Split(good.Replace(bearer), "\n"), "x-api-key": strings.Split(good.Replace(key), "\n"),
		}
		p, denial, err := b.Authorize(t.Context(), Request{Headers: sent, Read: read})
		outcome, passing := outcomeOf(t, denial, err), denial != nil && denial.Passing
		again, denial, err := b.Authorize(t.Context(), Request{Headers: sent, Read: read})
		passing = passing || denial != nil && denial.Passing // another token with an unknown key id may have come just before
		if outcome != outcomeOf(t, denial, err) && !passing || again.Subject() != p.Subject() {
			t.Fatalf("%q: %s, and again %+v, %v", sent, outcome, denial, err)
		}
		switch outcome {
		case "error":
			t.Fatalf("%q: %v", sent, err)
		case "ok":
			checkGood(t, b, application, sent, &p)
		}
		for _, v := range slices.Concat(sent["authorization"], sent["x-api-key"]) {
			if len(v) > len("Authorization") && strings.Contains(outcome, v) {
				t.Fatalf("%q: the denial %s repeats it", sent, outcome)
			}
		}
	})
}

// checkGood fails unless the principal is that of a good credential among those
// that were sent, and the same after its way through the gateway.
func checkGood(t *testing.T, b *harness, application string, sent map[string][]string, p *Principal) {
	t.Helper()
	wanted := map[PrincipalKind]string{KindUser: b.token, KindApplication: application, KindKey: b.key.Key}[p.Kind]
	if !slices.ContainsFunc(slices.Concat(sent["authorization"], sent["x-api-key"]), func(v string) bool {
		v = strings.TrimSpace(v)
		if p.Kind != KindKey && len(v) > len("Bearer ") && strings.EqualFold(v[:len("Bearer ")], "Bearer ") {
			v = strings.TrimSpace(v[len("Bearer "):])
		}
		return v == wanted
	}) {
		t.Fatalf("%q is accepted as %+v", sent, p)
	}
	checkContext(t, p)
}

// checkContext sends the principal through the gateway.
func checkContext(t *testing.T, p *Principal) {
	t.Helper()
	handed := handedOn(p)
	got, err := PrincipalFromContext(handed)
	if err != nil {
		t.Fatalf("%+v: the gateway hands on %v: %v", p, handed, err)
	}
	if !got.ExpiresAt.Equal(p.ExpiresAt) {
		t.Fatalf("%+v: expires at %s behind the gateway", p, got.ExpiresAt)
	}
	got.ExpiresAt = p.ExpiresAt // of the same location
	if diff := cmp.Diff(*p, got); diff != "" {
		t.Fatalf("behind the gateway:\n%s", diff)
	}
}

// FuzzClaims signs claims as an issuer does that is trusted but may put anything
// into them. The token is denied, or is its organization's and its scopes are
// known ones.
func FuzzClaims(f *testing.F) {
	const issued = `"iss":"` + testIssuer + `","aud":"` + testAudience + `","sub":"someone","exp":1795243000`
	for _, seed := range []string{
		`"organizationId":"018f0000-0000-7000-8000-000000000001"`,
		`"organizationId":"018F0000-0000-7000-8000-000000000001","roles":["OWNER",5],"scope":"orders:read x"`,
		`"organizationId":"018f0000-0000-7000-8000-000000000001","siteIds":["018f0000-0000-7000-8000-0000000000a1"],"roles":"VIEWER"`,
		`"organizationId":"00000000-0000-0000-0000-000000000000"`, `"organizationId":7,"nbf":1e300,"iat":"x"`,
	} {
		f.Add("{" + issued + "," + seed + "}")
	}
	f.Add(`{"exp":1e999,"aud":[7]}`)
	v := newTestVerifier(f, nil)
	f.Fuzz(func(t *testing.T, text string) {
		var sent jwt.MapClaims
		if json.Unmarshal([]byte(text), &sent) != nil {
			return
		}
		p, denial, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, "", []byte(testSecret), sent))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if outcomeOf(t, denial, err) != "ok" {
			return
		}
		if organization, _ := sent["organizationId"].(string); !strings.EqualFold(p.OrganizationID.String(), organization) || p.OrganizationID.IsZero() || p.UserID.IsZero() {
			t.Fatalf("%s is accepted as %+v", text, p)
		}
		checkContext(t, &p)
	})
}
