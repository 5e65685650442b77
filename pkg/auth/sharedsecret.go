package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// SharedSecrets reads the secrets of HS256 tokens, any of which may have signed
// one: two while an issuer changes over.
type SharedSecrets func(context.Context) ([]string, error)

const (
	// sharedMaxAge is how long shared secrets are used without reading them
	// again, and so how long a removed one verifies.
	sharedMaxAge = 5 * time.Minute
	// sharedPause is the least time between two readings that tokens cause.
	sharedPause = 10 * time.Second
	// sharedTimeout bounds a reading.
	sharedTimeout = 3 * time.Second
)

// sharedSource keeps the shared secrets that were read last. It is safe for
// concurrent use.
type sharedSource struct {
	read  SharedSecrets
	clock func() time.Time

	mu      sync.Mutex
	secrets []string
	err     error     // of the last reading, if it failed
	at      time.Time // of the last reading
	good    time.Time // of the last one that did not fail
}

// get returns the secrets, which are never none: it is an error that they
// cannot be read, or that one is shorter than [MinSecret]. Secrets that cannot
// be read again are used for twice sharedMaxAge.
func (s *sharedSource) get(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	if s.at.IsZero() || now.Sub(s.good) >= sharedMaxAge && now.Sub(s.at) >= sharedPause {
		s.refresh(ctx, now)
	}
	if s.secrets == nil || s.err != nil && now.Sub(s.good) >= 2*sharedMaxAge {
		return nil, s.err
	}
	return s.secrets, nil
}

// newer returns the secrets when a reading finds others than the given ones,
// nil when they are the same or were read a moment ago.
func (s *sharedSource) newer(ctx context.Context, used []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock(); slices.Equal(s.secrets, used) && now.Sub(s.at) >= sharedPause {
		s.refresh(ctx, now)
	}
	if slices.Equal(s.secrets, used) {
		return nil
	}
	return s.secrets
}

// refresh reads the secrets. It serves all who wait, so it outlives the caller.
func (s *sharedSource) refresh(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedTimeout)
	defer cancel()
	secrets, err := s.read(ctx)
	if err == nil {
		err = checkSecrets(secrets)
	}
	s.at, s.err = now, err
	if err == nil {
		s.secrets, s.good = secrets, now
	}
}

func checkSecrets(secrets []string) error {
	for _, secret := range secrets {
		if len(secret) < MinSecret {
			return fmt.Errorf("auth: the HS256 secret must have at least %d bytes", MinSecret)
		}
	}
	if len(secrets) == 0 {
		return errors.New("auth: there is no HS256 secret")
	}
	return nil
}

// keySetOf makes the keys that a parser tries one after the other.
func keySetOf(secrets []string) jwt.VerificationKeySet {
	var set jwt.VerificationKeySet
	for _, secret := range secrets {
		set.Keys = append(set.Keys, []byte(secret))
	}
	return set
}
