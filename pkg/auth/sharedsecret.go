package auth

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SharedSecrets reads the secrets of HS256 tokens, any of which may have signed
// one: two while an issuer changes over.
type SharedSecrets func(context.Context) ([]string, error)

// sharedAges bound for how long a removed secret verifies.
var sharedAges = ages{fresh: 5 * time.Minute, stale: 10 * time.Minute, unknown: 10 * time.Second, failed: 10 * time.Second}

// newSecretSource keeps the shared secrets, of which there is at least one and none
// is shorter than [MinSecret].
func newSecretSource(read SharedSecrets, now func() time.Time) *source[[]string] {
	checked := func(ctx context.Context) ([]string, error) {
		secrets, err := read(ctx)
		if err != nil {
			return nil, err
		}
		return secrets, checkSecrets(secrets)
	}
	return &source[[]string]{what: "the HS256 secrets", read: checked, now: now, ages: sharedAges}
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
