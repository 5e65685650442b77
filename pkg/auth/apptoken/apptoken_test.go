package apptoken

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

var start = time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)

const (
	firstSecret  = "first-secret-first-secret-first-secret-first"
	secondSecret = "second-secret-second-secret-second-secret-se"
	thirdSecret  = "third-secret-third-secret-third-secret-third"
)

// TestTheDerivationOfAKeyNeverChanges holds what the package documents: another
// derivation would refuse every token that was given.
func TestTheDerivationOfAKeyNeverChanges(t *testing.T) {
	k, err := deriveKey(firstSecret)
	if err != nil {
		t.Fatal(err)
	}
	want := JWK{
		Kty: "EC", Crv: "P-256", Use: "sig", Alg: "ES256",
		X: "gHGym9Jm0lng-qQXNoqEyZ-Wlgf3kV4qbaD97X_uvOo", Y: "yCFJkuBGy4SjLB2QvGXPeeSCEn9hfk8Z6HXaHil9kGU", Kid: "cis-fGAOQX0sj3SCE7QzGepDaYku7dIx7McqNG5Ojt2D8vs",
	}
	if diff := cmp.Diff(want, k.public); diff != "" {
		t.Errorf("key (-want +got):\n%s", diff)
	}
}

func TestAShortSecretIsRefused(t *testing.T) {
	if _, err := deriveKey(strings.Repeat("x", MinSecret-1)); err == nil {
		t.Error("31 bytes: got a key, want an error")
	}
	if _, err := deriveKey(strings.Repeat("x", MinSecret)); err != nil {
		t.Errorf("32 bytes: %v", err)
	}
}

func TestAPublicKeyIsReadOnlyAsItWasWritten(t *testing.T) {
	k, err := deriveKey(firstSecret)
	if err != nil {
		t.Fatal(err)
	}
	public, err := k.public.Public()
	if err != nil || !public.Equal(&k.private.PublicKey) {
		t.Fatalf("got %v, %v, want the key itself", public, err)
	}
	for name, change := range map[string]func(*JWK){
		"another id": func(k *JWK) { k.Kid = KeyIDPrefix + "x" }, "another curve": func(k *JWK) { k.Crv = "P-384" },
		"a point off the curve": func(k *JWK) { k.X = k.Y }, "no coordinate": func(k *JWK) { k.Y = "" }, "no base64": func(k *JWK) { k.X = "?" },
	} {
		t.Run(name, func(t *testing.T) {
			bad := k.public
			change(&bad)
			if _, err := bad.Public(); err == nil {
				t.Errorf("%+v: got a key, want an error", bad)
			}
		})
	}
}

// shelf is a key store in memory, and the secrets.
type shelf struct {
	mu        sync.Mutex
	secrets   Secrets
	published Published
	reads     int
	err       error
}

func (s *shelf) read(context.Context) (Secrets, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.secrets, s.err
}

func (s *shelf) SigningKeys(context.Context) (Published, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.published, nil
}

func (s *shelf) PublishSigningKeys(_ context.Context, p Published) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.published.Created.After(p.Created) {
		return false, nil
	}
	s.published = p
	return true, nil
}

func (s *shelf) find(id string, _ time.Time) (*ecdsa.PublicKey, error) {
	i := slices.IndexFunc(s.published.Keys, func(k JWK) bool { return k.Kid == id })
	if i < 0 {
		return nil, errors.New("no such key")
	}
	return s.published.Keys[i].Public()
}

func grant() *Grant {
	return &Grant{Issuer: "https://api.example.com/prod", ClientID: value.NewRandomID(), OrganizationID: value.NewID(), ApplicationID: value.NewID(), Scope: "orders:read"}
}

func TestATokenSaysWhatItWasGrantedAndEndsAfterAnHour(t *testing.T) {
	now := start
	clock := func() time.Time { return now }
	s := &shelf{secrets: Secrets{Current: firstSecret}}
	g := grant()
	token, err := NewSigner(s.read, s, clock).Sign(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	v := NewVerifier(clock)
	now = start.Add(time.Hour - time.Second)
	got, err := v.Verify(token, s.find)
	if err != nil {
		t.Fatal(err)
	}
	want := &Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: g.Issuer, Subject: g.ClientID.String(), Audience: jwt.ClaimStrings{Audience},
			IssuedAt: jwt.NewNumericDate(start), ExpiresAt: jwt.NewNumericDate(start.Add(time.Hour)), ID: got.ID,
		},
		ClientID: g.ClientID, Scope: g.Scope, OrganizationID: g.OrganizationID, ApplicationID: g.ApplicationID,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if _, err := value.ParseID(got.ID); err != nil {
		t.Errorf("jti %q: %v", got.ID, err)
	}
	now = start.Add(time.Hour)
	if _, err := v.Verify(token, s.find); !errors.Is(err, jwt.ErrTokenExpired) {
		t.Errorf("after an hour: got %v, want it expired", err)
	}
}

func TestARotationActsWithinFiveMinutesAndTwoKeysAreLive(t *testing.T) {
	now := start
	s := &shelf{secrets: Secrets{Current: firstSecret}}
	signer, v := NewSigner(s.read, s, func() time.Time { return now }), NewVerifier(func() time.Time { return now })
	sign := func() string {
		t.Helper()
		token, err := signer.Sign(t.Context(), grant())
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	works := func(token string) bool { _, err := v.Verify(token, s.find); return err == nil }
	first := sign()
	s.secrets = Secrets{Current: secondSecret, Previous: firstSecret, Created: start}
	now = start.Add(keysMaxAge - time.Nanosecond)
	if sign(); s.reads != 1 || len(s.published.Keys) != 1 {
		t.Errorf("within 5 min: %d reads, %d keys, want 1 and 1", s.reads, len(s.published.Keys))
	}
	now = start.Add(keysMaxAge)
	second := sign()
	if s.reads != 2 || len(s.published.Keys) != 2 || !works(first) || !works(second) {
		t.Errorf("after 5 min: %d reads, keys %+v, want both tokens to work", s.reads, s.published.Keys)
	}
	s.secrets = Secrets{Current: thirdSecret, Previous: secondSecret, Created: start.Add(time.Minute)}
	now = now.Add(keysMaxAge)
	if third := sign(); works(first) || !works(second) || !works(third) {
		t.Error("after a second rotation: want the tokens of the last two keys to work, and no others")
	}
	set, err := signer.KeySet(t.Context())
	if diff := cmp.Diff(s.published.KeySet, set); err != nil || diff != "" {
		t.Errorf("key set: %v (-published +got):\n%s", err, diff)
	}
}

// TestSecretsThatWereReadLateDoNotReplaceNewerKeys is about instances that
// refresh at the same time as a rotation.
func TestSecretsThatWereReadLateDoNotReplaceNewerKeys(t *testing.T) {
	clock := func() time.Time { return start }
	s := &shelf{secrets: Secrets{Current: secondSecret, Previous: firstSecret, Created: start}}
	if _, err := NewSigner(s.read, s, clock).KeySet(t.Context()); err != nil {
		t.Fatal(err)
	}
	newest := s.published
	s.secrets = Secrets{Current: firstSecret, Created: start.Add(-time.Hour)}
	token, err := NewSigner(s.read, s, clock).Sign(t.Context(), grant())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewVerifier(clock).Verify(token, s.find); err != nil {
		t.Errorf("a token of the key before: %v", err)
	}
	s.secrets = Secrets{Current: thirdSecret, Created: start.Add(-2 * time.Hour)}
	if _, err := NewSigner(s.read, s, clock).Sign(t.Context(), grant()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a key that is not published: got %v, want it unavailable", err)
	}
	if diff := cmp.Diff(newest, s.published); diff != "" {
		t.Errorf("published (-before +after):\n%s", diff)
	}
}

func TestSecretsThatCannotBeReadAreOurFaultAndAreAskedForAgain(t *testing.T) {
	s := &shelf{secrets: Secrets{Current: firstSecret}, err: errors.New("no answer")}
	signer := NewSigner(s.read, s, func() time.Time { return start })
	if _, err := signer.Sign(t.Context(), grant()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want it unavailable", err)
	}
	s.err = nil
	if _, err := signer.Sign(t.Context(), grant()); err != nil {
		t.Errorf("later: %v", err)
	}
}

func TestOnlyApplicationTokensAreVerified(t *testing.T) {
	s := &shelf{secrets: Secrets{Current: firstSecret}}
	clock := func() time.Time { return start }
	if _, err := NewSigner(s.read, s, clock).KeySet(t.Context()); err != nil {
		t.Fatal(err)
	}
	k, err := deriveKey(firstSecret)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(header map[string]any, claims *Claims){
		"":                     func(map[string]any, *Claims) {},
		"another type":         func(h map[string]any, _ *Claims) { h["typ"] = "JWT" },
		"a critical parameter": func(h map[string]any, _ *Claims) { h["crit"] = []string{"exp"} },
		"no key id":            func(h map[string]any, _ *Claims) { delete(h, "kid") },
		"an unknown key id":    func(h map[string]any, _ *Claims) { h["kid"] = KeyIDPrefix + "x" },
		"no expiry":            func(_ map[string]any, c *Claims) { c.ExpiresAt = nil },
		"no time of issue":     func(_ map[string]any, c *Claims) { c.IssuedAt = nil },
		"another audience":     func(_ map[string]any, c *Claims) { c.Audience = jwt.ClaimStrings{"commerce"} },
	} {
		t.Run(name, func(t *testing.T) {
			token := jwt.NewWithClaims(jwt.SigningMethodES256, nil)
			claims := &Claims{RegisteredClaims: jwt.RegisteredClaims{
				Audience: jwt.ClaimStrings{Audience}, IssuedAt: jwt.NewNumericDate(start), ExpiresAt: jwt.NewNumericDate(start.Add(time.Hour)),
			}}
			token.Header["kid"], token.Header["typ"] = k.public.Kid, tokenType
			change(token.Header, claims)
			token.Claims = claims
			text, err := token.SignedString(k.private)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := NewVerifier(clock).Verify(text, s.find); (err == nil) != (name == "") {
				t.Errorf("got %v", err)
			}
		})
	}
}
