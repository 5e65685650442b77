package apptoken

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// Secrets are the texts that the live keys are derived from.
type Secrets struct {
	Current  string
	Previous string    // "": there was no rotation yet
	Created  time.Time // when the newer of them was made; zero where nobody knows
}

// KeySet is a JWK Set of public keys (RFC 7517, section 5).
type KeySet struct {
	Keys []JWK `json:"keys" doc:"The keys that verify tokens: the current one and the one before it."`
}

// Published are the keys that the table has.
type Published struct {
	KeySet

	Created time.Time // of the secrets that they come from
}

// KeyStore keeps the published keys.
type KeyStore interface {
	// SigningKeys returns no keys when none were published.
	SigningKeys(ctx context.Context) (Published, error)
	// PublishSigningKeys stores the keys unless keys of newer secrets are
	// there already, and reports whether it did.
	PublishSigningKeys(ctx context.Context, keys Published) (bool, error)
}

// Ages of keys that a signer holds.
const (
	// keysMaxAge is how long the secrets are used without reading them again,
	// and so how late a rotation acts.
	keysMaxAge = 5 * time.Minute
	// keysTimeout bounds reading and publishing.
	keysTimeout = 5 * time.Second
)

// Signer signs tokens. It is safe for concurrent use.
type Signer struct {
	secrets func(context.Context) (Secrets, error)
	store   KeyStore
	now     func() time.Time

	mu   sync.Mutex
	live *liveKeys
}

// liveKeys are the keys of one reading of the secrets, which are published.
type liveKeys struct {
	read    time.Time
	current *signingKey
	set     KeySet
}

// NewSigner makes a signer. It reads the secrets when they are first needed.
func NewSigner(secrets func(context.Context) (Secrets, error), store KeyStore, now func() time.Time) *Signer {
	return &Signer{secrets: secrets, store: store, now: now}
}

// Sign makes a token of the grant. Its key is published.
func (s *Signer) Sign(ctx context.Context, g *Grant) (string, error) {
	live, err := s.keys(ctx)
	if err != nil {
		return "", err
	}
	return live.current.sign(g, s.now())
}

// KeySet returns the public keys that tokens can be verified with.
func (s *Signer) KeySet(ctx context.Context) (KeySet, error) {
	live, err := s.keys(ctx)
	if err != nil {
		return KeySet{}, err
	}
	return live.set, nil
}

// Verify returns the claims of a token that is good by the public keys; nil of any
// other text.
func (s *Signer) Verify(ctx context.Context, token string) (*Claims, error) {
	set, err := s.KeySet(ctx)
	if err != nil {
		return nil, err
	}
	claims, _ := NewVerifier(s.now).Verify(token, func(id string, _ time.Time) (*ecdsa.PublicKey, error) {
		i := slices.IndexFunc(set.Keys, func(k JWK) bool { return k.Kid == id })
		if i < 0 {
			return nil, errors.New("apptoken: no public key has the id")
		}
		return set.Keys[i].Public()
	})
	return claims, nil // none with an error: the text is not a good token
}

// keys returns the live keys, read and published anew when they are old. One
// caller does that while the others wait.
func (s *Signer) keys(ctx context.Context) (*liveKeys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != nil && s.now().Sub(s.live.read) < keysMaxAge {
		return s.live, nil
	}
	// It serves all who wait, so it outlives the caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keysTimeout)
	defer cancel()
	live, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	s.live = live
	return live, nil
}

func (s *Signer) load(ctx context.Context) (*liveKeys, error) {
	live := &liveKeys{read: s.now()}
	secrets, err := s.secrets(ctx)
	if err != nil {
		return nil, fault.Busy(err)
	}
	for _, text := range []string{secrets.Previous, secrets.Current} {
		if text == "" {
			continue
		}
		if live.current, err = deriveKey(text); err != nil {
			return nil, err
		}
		live.set.Keys = append(live.set.Keys, live.current.public)
	}
	if live.current == nil {
		return nil, errors.New("apptoken: there is no signing secret")
	}
	return live, s.publish(ctx, live, secrets.Created)
}

var errOldSecrets = errors.New("apptoken: the secrets that were read are older than the published keys")

// publish stores the keys unless they are there. Secrets that were read late
// never replace newer ones: their key may sign as long as it is one of the
// published two.
func (s *Signer) publish(ctx context.Context, live *liveKeys, created time.Time) error {
	published, err := s.store.SigningKeys(ctx)
	if err != nil || sameKeys(published.Keys, live.set.Keys) {
		return err
	}
	done, err := s.store.PublishSigningKeys(ctx, Published{KeySet: live.set, Created: created})
	if done || err != nil {
		return err
	}
	if published, err = s.store.SigningKeys(ctx); err != nil {
		return err
	}
	if !slices.Contains(published.Keys, live.current.public) {
		return fault.Busy(errOldSecrets)
	}
	live.set = published.KeySet
	return nil
}

// sameKeys reports whether both have the same keys, in any order.
func sameKeys(a, b []JWK) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(k JWK) bool { return !slices.Contains(b, k) })
}
