package auth

import (
	"context"
	"crypto/ecdsa"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth/apptoken"
	"github.com/commerce-integration/service/pkg/base/fault"
)

// SigningKeyStore reads the public keys of application tokens.
type SigningKeyStore interface {
	SigningKeys(ctx context.Context) (apptoken.Published, error)
}

// How long published keys are used.
const (
	publishedMaxAge = time.Minute
	// publishedUnknown is the least time between two reads for unknown key ids.
	publishedUnknown = time.Second
	// publishedSkew is how far the clocks of two instances may differ.
	publishedSkew = time.Minute
)

// publishedKeys keeps the public keys of application tokens. A key is published
// before anything is signed with it, so that keys that were read after a token
// was made settle whether its key exists.
type publishedKeys struct {
	store SigningKeyStore
	now   func() time.Time

	mu   sync.Mutex
	keys map[string]*ecdsa.PublicKey
	read time.Time // before the keys were read; zero: never
}

var errReadTooOften = errors.New("auth: the signing keys were read just now, for another unknown key id")

// find returns the key with the id of a token that says that it was made at
// the time issued. It fails with errNoKey when the key does not exist, and with
// errReadTooOften when that cannot be told yet: then nothing may be cached.
func (k *publishedKeys) find(ctx context.Context, id string, issued time.Time) (*ecdsa.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	age := now.Sub(k.read)
	old := k.read.IsZero() || age >= publishedMaxAge
	undecided := k.keys[id] == nil && k.read.Sub(issued) < publishedSkew
	switch {
	case !old && undecided && age < publishedUnknown:
		return nil, errReadTooOften
	case old, undecided:
		if err := k.load(ctx, now); err != nil {
			return nil, err
		}
	}
	if key := k.keys[id]; key != nil {
		return key, nil
	}
	return nil, errNoKey
}

// load reads the keys. It serves later requests too, so it outlives this one.
func (k *publishedKeys) load(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	published, err := k.store.SigningKeys(ctx)
	if err != nil {
		return fault.Busy(err)
	}
	keys := make(map[string]*ecdsa.PublicKey, len(published.Keys))
	for _, key := range published.Keys {
		if keys[key.Kid], err = key.Public(); err != nil {
			return err
		}
	}
	k.keys, k.read = keys, now
	return nil
}

// applicationTokens checks the tokens of applications.
type applicationTokens struct {
	verifier *apptoken.Verifier
	keys     *publishedKeys
}

// isApplicationToken reports whether the token's header names a key of
// application tokens. Whatever it is, only those keys can verify it then.
func isApplicationToken(token string) bool {
	text, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(token) > maxTokenLength {
		return false
	}
	var header struct {
		Kid string `json:"kid"`
	}
	return json.Unmarshal(raw, &header) == nil && apptoken.IsKeyID(header.Kid)
}

// verify checks the token and returns its application as the token describes
// it.
func (a *applicationTokens) verify(ctx context.Context, token string) (Principal, *Denial, error) {
	claims, err := a.verifier.Verify(token, func(id string, issued time.Time) (*ecdsa.PublicKey, error) {
		return a.keys.find(ctx, id, issued)
	})
	if err != nil {
		denial, err := denialOf(err)
		return Principal{}, denial, err
	}
	return Principal{
		Kind: KindApplication, OrganizationID: claims.OrganizationID, ApplicationID: claims.ApplicationID,
		Scopes: ParseScopes(claims.Scope), ExpiresAt: claims.ExpiresAt.Time,
	}, nil, nil
}
