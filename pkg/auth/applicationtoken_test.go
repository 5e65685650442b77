package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	oneSecret   = "one-signing-secret-one-signing-secret"
	otherSecret = "another-signing-secret-another-signing-secret"
)

// signer signs application tokens with the keys of the secrets.
func (b *harness) signer(current, previous string) *apptoken.Signer {
	secrets := func(context.Context) (apptoken.Secrets, error) {
		return apptoken.Secrets{Current: current, Previous: previous}, nil
	}
	return apptoken.NewSigner(secrets, b.shelf, b.now)
}

// give returns a token of the harness's application.
func (b *harness) give(t testing.TB, s *apptoken.Signer, scope string) string {
	t.Helper()
	token, err := s.Sign(t.Context(), &apptoken.Grant{
		Issuer: "https://api.example.com", ClientID: b.app.ClientID, OrganizationID: org, ApplicationID: b.app.ID, Scope: scope,
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (b *harness) withToken(t *testing.T, token string) (Principal, string) {
	t.Helper()
	p, denial, err := b.Authorize(t.Context(), Request{Read: true, Headers: map[string][]string{"Authorization": {"Bearer " + token}}})
	return p, outcomeOf(t, denial, err)
}

func TestAnApplicationTokensPrincipal(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	b.shelf.tokenScopes = []string{"orders:read", "webhooks:write"}
	token := b.give(t, b.signer(oneSecret, ""), "orders:read products:read webhooks:write developers:write")
	got, outcome := b.withToken(t, token)
	want := Principal{
		Kind: KindApplication, OrganizationID: org, ApplicationID: b.app.ID, Scopes: Scopes{OrdersRead, WebhooksWrite},
		RateLimit: 1234, ExpiresAt: start.Add(time.Hour), Credential: Digest(token),
	}
	// The token's times are whole seconds of another location.
	got.ExpiresAt = got.ExpiresAt.UTC()
	if diff := cmp.Diff(want, got); diff != "" || outcome != "ok" {
		t.Errorf("%s: principal (-want +got):\n%s", outcome, diff)
	}
	key := Principal{Kind: KindKey, ApplicationID: b.app.ID, KeyID: b.key.ID}
	if got.Subject() != key.Subject() {
		t.Errorf("subject: got %s, want %s as for the application's keys", got.Subject(), key.Subject())
	}
	b.forward(time.Hour)
	if _, outcome := b.withToken(t, token); !strings.HasPrefix(outcome, "token_expired: ") {
		t.Errorf("after an hour: got %s", outcome)
	}
}

// granted returns a token of the harness's application in the name of a user.
func (b *harness) granted(t *testing.T) (token string, user apptoken.ForUser) {
	t.Helper()
	user = apptoken.ForUser{UserID: value.NewID(), GrantID: value.NewID(), SiteIDs: []value.ID{value.NewID()}}
	token, err := b.signer(oneSecret, "").Sign(t.Context(), &apptoken.Grant{
		ClientID: b.app.ClientID, OrganizationID: org, ApplicationID: b.app.ID, Scope: "orders:read products:read", User: &user,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.shelf.grants = map[value.ID]bool{user.GrantID: true}
	return token, user
}

func TestATokenInAUsersNameIsLimitedAsTheUserAndTheApplicationAre(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	b.shelf.tokenScopes = []string{"orders:read"}
	token, user := b.granted(t)
	got, outcome := b.withToken(t, token)
	want := Principal{
		Kind: KindApplication, OrganizationID: org, ApplicationID: b.app.ID, UserID: user.UserID, GrantID: user.GrantID, SiteIDs: user.SiteIDs,
		Scopes: Scopes{OrdersRead}, RateLimit: 1234, ExpiresAt: start.Add(time.Hour), Credential: Digest(token),
	}
	got.ExpiresAt = got.ExpiresAt.UTC()
	if diff := cmp.Diff(want, got); diff != "" || outcome != "ok" {
		t.Errorf("%s: principal (-want +got):\n%s", outcome, diff)
	}
	if got.Subject() != b.app.ID.String() {
		t.Errorf("subject: got %s, want the application", got.Subject())
	}
	sent := map[string]any{}
	for name, v := range got.Context() {
		sent[name] = v
	}
	read, err := PrincipalFromContext(sent)
	read.ExpiresAt = read.ExpiresAt.UTC()
	if diff := cmp.Diff(want, read); diff != "" || err != nil {
		t.Errorf("through the gateway: %v (-want +got):\n%s", err, diff)
	}
}

func TestATokenEndsWithTheUsersGrant(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	token, user := b.granted(t)
	b.shelf.frozen = func() *account.Client { return nil } // a replica lacks application and grant
	if _, got := b.withToken(t, token); got != "ok" {
		t.Errorf("while replicas are behind: got %s", got)
	}
	b.shelf.frozen = nil
	b.shelf.change(func() { delete(b.shelf.grants, user.GrantID) })
	b.forward(recentMaxAge)
	if _, got := b.withToken(t, token); !strings.HasPrefix(got, "unauthenticated: the grant of the bearer token was revoked") {
		t.Errorf("after its end: got %s", got)
	}
	b.shelf.err = errors.New("no answer")
	b.forward(recentMaxAge)
	if _, got := b.withToken(t, token); !strings.HasPrefix(got, "error") {
		t.Errorf("without an answer of the table: got %s, want an error", got)
	}
}

// TestNothingOfAnApplicationsStateIsInAnAnswerThatTheGatewayKeeps is about a
// suspension, and its end, while API Gateway answers from its cache.
func TestNothingOfAnApplicationsStateIsInAnAnswerThatTheGatewayKeeps(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	token := b.give(t, b.signer(oneSecret, ""), "orders:read webhooks:read")
	b.app.Status = account.Suspended
	b.shelf.apps[b.app.ID] = b.app
	got, denial, err := b.Authorize(t.Context(), Request{Headers: map[string][]string{"Authorization": {"Bearer " + token}}})
	if denial != nil || err != nil || got.Kind != KindApplication || got.Scopes.String() != "orders:read webhooks:read" || b.shelf.lookups != 0 {
		t.Errorf("got %+v, %v, %v after %d look-ups, want what the token says", got, denial, err, b.shelf.lookups)
	}
	if _, denial, err := b.applications.Refresh(t.Context(), got); err != nil || denial == nil || denial.Code != CodeApplicationSuspended {
		t.Errorf("refreshed: got %v, %v, want it suspended", denial, err)
	}
}

func TestAScopeThatIsTakenAwayLeavesTokens(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	token := b.give(t, b.signer(oneSecret, ""), "orders:read products:read")
	b.withToken(t, token)
	b.shelf.change(func() { b.shelf.tokenScopes = []string{"products:read"} })
	b.forward(recentMaxAge)
	if p, got := b.withToken(t, token); got != "ok" || p.Scopes.String() != "products:read" {
		t.Errorf("got %s with %s, want products:read", got, p.Scopes)
	}
}

func TestAScopeThatIsGrantedIsInTheNextToken(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	b.shelf.tokenScopes = []string{"orders:read"}
	signer := b.signer(oneSecret, "")
	b.withToken(t, b.give(t, signer, "orders:read"))
	b.forward(300 * time.Millisecond)
	b.shelf.change(func() { b.shelf.tokenScopes = []string{"orders:read", "webhooks:write"} })
	b.forward(time.Millisecond)
	token := b.give(t, signer, "orders:read webhooks:write")
	if p, got := b.withToken(t, token); got != "ok" || p.Scopes.String() != "orders:read webhooks:write" {
		t.Errorf("got %s with %s, want both scopes at once", got, p.Scopes)
	}
	b.shelf.change(func() { b.shelf.tokenScopes = []string{"orders:read"} })
	b.forward(replicaAge + time.Second) // a token tells whole seconds
	lookups := b.shelf.lookups
	for range 10 {
		b.withToken(t, token)
		b.forward(300 * time.Millisecond)
	}
	if got := b.shelf.lookups - lookups; got != 1 {
		t.Errorf("look-ups in 3 s for a token that lost a scope: got %d, want 1", got)
	}
}

// TestATokenIsNotRefusedForWhatAReplicaLacks reads a replica that knows the
// application as it was before the token was made.
func TestATokenIsNotRefusedForWhatAReplicaLacks(t *testing.T) {
	for name, frozen := range map[string]func(*harness) *account.Client{
		"no application": func(*harness) *account.Client { return nil },
		"without the scope": func(b *harness) *account.Client {
			return &account.Client{Application: &b.app, TokenScopes: []string{"products:read"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t, account.CreateApiKeyDto{})
			token := b.give(t, b.signer(oneSecret, ""), "orders:read")
			before := frozen(b)
			b.shelf.frozen = func() *account.Client { return before }
			for range 3 {
				if p, got := b.withToken(t, token); got != "ok" || p.Scopes.String() != "orders:read" {
					t.Fatalf("got %s with %s, want the token's scope", got, p.Scopes)
				}
				b.forward(recentMaxAge)
			}
		})
	}
}

// TestAKeyIDDecidesWhoMaySign holds that neither the service nor an issuer of
// users' tokens can make tokens of the other kind.
func TestAKeyIDDecidesWhoMaySign(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	good := b.give(t, b.signer(oneSecret, ""), "orders:read")
	kid := b.shelf.published.Keys[0].Kid
	keys := makeSigners()
	// The issuer publishes a key under the id of ours, too.
	issuer := newProvider(t, ecJWK(kid, keys.ecdsa), ecJWK("ec", keys.ecdsa), rsaJWK("rsa", keys.rsa))
	verifier := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.Clock, cfg.JWKSURL = b.now, issuer.URL })
	b.Authorizer = NewAuthorizer(verifier, b.shelf, AuthorizerConfig{Clock: b.now})

	application := claims{
		"iss": "https://api.example.com", "aud": apptoken.Audience, "iat": start.Unix(), "exp": start.Add(time.Hour).Unix(),
		"sub": b.app.ClientID.String(), "client_id": b.app.ClientID.String(), "organizationId": org.String(),
		"applicationId": b.app.ID.String(), "scope": "orders:read",
	}
	typed := func(method jwt.SigningMethod, kid string, key any, c claims) string {
		token := jwt.NewWithClaims(method, c)
		token.Header["kid"], token.Header["typ"] = kid, "at+jwt"
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"at+jwt","kid":"`+kid+`"}`)) + "." + parts[1] + "."
	published, err := b.shelf.published.Keys[0].Public()
	if err != nil {
		t.Fatal(err)
	}
	point, err := published.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ token, want string }{
		"ours":                                   {good, "ok"},
		"a user's":                               {typed(jwt.SigningMethodES256, "ec", keys.ecdsa, with(nil)), "ok"},
		"ours by the issuer's key":               {typed(jwt.SigningMethodES256, kid, keys.ecdsa, application), "unauthenticated: "},
		"ours by the issuer's key under its id":  {typed(jwt.SigningMethodES256, "ec", keys.ecdsa, application), "unauthenticated: "},
		"a user's under our id":                  {typed(jwt.SigningMethodES256, kid, keys.ecdsa, with(nil)), "unauthenticated: "},
		"a user's by another algorithm, our id":  {typed(jwt.SigningMethodRS256, kid, keys.rsa, application), "unauthenticated: "},
		"the shared secret under our id":         {typed(jwt.SigningMethodHS256, kid, []byte(testSecret), application), "unauthenticated: "},
		"our public key as a shared secret":      {typed(jwt.SigningMethodHS256, kid, point, application), "unauthenticated: "},
		"no algorithm":                           {none, "unauthenticated: "},
		"our header and signature, other claims": {parts[0] + "." + strings.Split(typed(jwt.SigningMethodES256, "ec", keys.ecdsa, application), ".")[1] + "." + parts[2], "unauthenticated: "},
		"no signature":                           {parts[0] + "." + parts[1] + ".", "unauthenticated: "},
		"our prefix and nothing else":            {typed(jwt.SigningMethodES256, apptoken.KeyIDPrefix, keys.ecdsa, application), "unauthenticated: "},
	} {
		t.Run(name, func(t *testing.T) {
			b.forward(2 * time.Second) // so that keys may be read again
			if _, got := b.withToken(t, tc.token); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAKeyThatIsPublishedLaterIsNeverDeniedForLong(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	first := b.give(t, b.signer(oneSecret, ""), "orders:read")
	if _, got := b.withToken(t, first); got != "ok" {
		t.Fatal(got)
	}
	b.forward(10 * time.Second)
	second := b.give(t, b.signer(otherSecret, oneSecret), "orders:read")
	if _, got := b.withToken(t, second); got != "ok" || b.shelf.keyReads != 2+2 { // the signers read too
		t.Errorf("a token of a key that was published just now: got %s after %d reads", got, b.shelf.keyReads)
	}
	// Whoever makes up key ids makes neither every request a read nor one an error
	// of ours; and nobody keeps a denial that is not settled.
	stranger := newHarness(t, account.CreateApiKeyDto{})
	unknown := stranger.give(t, stranger.signer(strings.Repeat("x", 40), ""), "orders:read")
	unknown = b.later(t, unknown)
	b.forward(publishedAges.unknown)
	reads := b.shelf.keyReads
	if _, got := b.withToken(t, unknown); !strings.HasPrefix(got, "unauthenticated: ") || b.shelf.keyReads != reads+1 {
		t.Errorf("an unknown key: got %s after %d reads, want a denial after one", got, b.shelf.keyReads-reads)
	}
	b.forward(publishedAges.unknown - time.Nanosecond)
	deniedForNow := func(token string) bool {
		_, denial, err := b.Authorize(t.Context(), Request{Headers: map[string][]string{"Authorization": {"Bearer " + token}}})
		return err == nil && denial != nil && denial.Code == CodeUnauthenticated && denial.Passing && safeText(denial.Message)
	}
	if !deniedForNow(unknown) || b.shelf.keyReads != reads+1 {
		t.Errorf("again at once: after %d reads, want a denial for now after no more", b.shelf.keyReads-reads)
	}
	third := b.give(t, b.signer(strings.Repeat("y", 40), otherSecret), "orders:read")
	if !deniedForNow(third) {
		t.Error("a good token of a new key meanwhile: want a denial for now")
	}
	b.forward(time.Nanosecond)
	if _, got := b.withToken(t, third); got != "ok" {
		t.Errorf("the same a little later: got %s", got)
	}
	// The first key is gone by now, and its token is older than the keys.
	b.forward(2 * publishedSkew)
	b.withToken(t, third)
	reads = b.shelf.keyReads
	if _, got := b.withToken(t, first); !strings.HasPrefix(got, "unauthenticated: ") || b.shelf.keyReads != reads {
		t.Errorf("a token of a key that is no longer live: got %s after %d reads, want a denial without one", got, b.shelf.keyReads-reads)
	}
}

// later makes a token with an unknown key claim to be made now.
func (b *harness) later(t *testing.T, token string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	now := b.now()
	parts[1] = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iat":%d,"exp":%d}`, now.Unix(), now.Add(time.Hour).Unix()))
	return strings.Join(parts, ".")
}

func TestKeysThatCannotBeReadAreOurFault(t *testing.T) {
	b := newHarness(t, account.CreateApiKeyDto{})
	token := b.give(t, b.signer(oneSecret, ""), "orders:read")
	b.shelf.err = errors.New("no answer")
	if _, got := b.withToken(t, token); got != "error" {
		t.Errorf("got %s, want an error", got)
	}
	_, err := newPublishedKeys(b.shelf, b.now).find(t.Context(), apptoken.KeyIDPrefix, start)
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want it unavailable", err)
	}
	b.shelf.err = nil
	if _, got := b.withToken(t, token); got != "ok" {
		t.Errorf("later: got %s", got)
	}
}
