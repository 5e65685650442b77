package auth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// issuerSecrets are shared secrets that a test rotates.
type issuerSecrets struct {
	secrets []string
	err     error
	reads   int
}

func (s *issuerSecrets) read(context.Context) ([]string, error) {
	s.reads++
	return s.secrets, s.err
}

const (
	oldSecret = "old-secret-old-secret-old-secret-old-secret"
	newSecret = "new-secret-new-secret-new-secret-new-secret"
)

func sharedVerifier(t *testing.T, s *issuerSecrets, now *time.Time) *Verifier {
	t.Helper()
	return newTestVerifier(t, func(cfg *VerifierConfig) {
		cfg.HS256Secret, cfg.HS256Secrets, cfg.Clock = "", s.read, func() time.Time { return *now }
	})
}

func TestARotatedSharedSecretVerifiesBesideTheOneBefore(t *testing.T) {
	now, s := start, &issuerSecrets{secrets: []string{oldSecret}}
	v := sharedVerifier(t, s, &now)
	accepts := func(secret string, want bool, wantReads int) {
		t.Helper()
		claims := with(map[string]any{"exp": start.Add(time.Hour).Unix()})
		_, denial, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, "", []byte(secret), claims))
		if err != nil || (denial == nil) != want || s.reads != wantReads {
			t.Errorf("%.3s: %+v, %v after %d readings; want accepted %t after %d", secret, denial, err, s.reads, want, wantReads)
		}
	}
	accepts(oldSecret, true, 1)
	accepts(newSecret, false, 1) // it was read a moment ago
	s.secrets = []string{newSecret, oldSecret}
	now = now.Add(sharedAges.unknown)
	accepts(newSecret, true, 2)
	accepts(oldSecret, true, 2)
	accepts(strings.Repeat("x", MinSecret), false, 2)
	s.secrets = []string{newSecret}
	now = now.Add(sharedAges.fresh)
	accepts(oldSecret, false, 3)
	accepts(newSecret, true, 3)
}

func TestABadSharedSecretIsOurFaultAndOnlyOfHS256Tokens(t *testing.T) {
	p := newProvider(t)
	for name, s := range map[string]*issuerSecrets{
		"short": {secrets: []string{newSecret[:MinSecret-1]}}, "none": {}, "away": {err: errors.New("away")},
		"short beside a good one": {secrets: []string{newSecret, "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newTestVerifier(t, func(cfg *VerifierConfig) { cfg.JWKSURL, cfg.HS256Secret, cfg.HS256Secrets = p.URL, "", s.read })
			_, denial, err := v.Verify(t.Context(), hs256(t, nil))
			if denial != nil || !fault.Is(err, fault.Unavailable) {
				t.Errorf("an HS256 token: %+v, %v; want it unavailable", denial, err)
			}
			if _, denial, err := v.Verify(t.Context(), "x.y.z"); denial == nil || err != nil {
				t.Errorf("another credential: %+v, %v; want a denial", denial, err)
			}
		})
	}
}
