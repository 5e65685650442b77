package sender

import (
	"context"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// KeysMaxAge is how long what was read of an organization's keys, or that it
	// has none, is believed, and so how late a change of the keys acts.
	KeysMaxAge = time.Minute
	// maxKnown bounds the organizations of the cache: a full one is emptied.
	maxKnown = 10_000
)

// Store has the keys of organizations.
type Store interface {
	// SenderKeys returns nil when the organization has none.
	SenderKeys(ctx context.Context, org value.ID) (*Keys, error)
}

// Opener opens what was sealed for a purpose.
type Opener func(ctx context.Context, text, purpose string) ([]byte, error)

// Verifier verifies messages. It reads the keys of an organization at most once
// in [KeysMaxAge], apart from calls at the same time. It is safe for concurrent
// use.
type Verifier struct {
	store Store
	open  Opener
	clock func() time.Time

	mu    sync.Mutex
	known map[value.ID]reading
}

type reading struct {
	at   time.Time // before the read, so that the age is never understated
	keys [][]byte  // the newest first, none where the organization has none
}

// NewVerifier returns a verifier.
func NewVerifier(store Store, open Opener, clock func() time.Time) *Verifier {
	return &Verifier{store: store, open: open, clock: clock, known: map[value.ID]reading{}}
}

// Proof is what is known of a message's sender.
type Proof struct {
	Valid bool   // the organization has no keys, or one of them signed the message
	key   []byte // the newest, nil where the organization has none
}

// Sign signs a message that was made of a valid one, "" where the organization
// has no keys.
func (p Proof) Sign(body string) string {
	if !p.Valid || p.key == nil {
		return ""
	}
	return Sign(p.key, body)
}

// Verify checks a message of the organization. An error tells that the keys
// could not be read or opened, and nothing of the message.
func (v *Verifier) Verify(ctx context.Context, org value.ID, body, signature string) (Proof, error) {
	keys, err := v.keys(ctx, org)
	if err != nil {
		return Proof{}, err
	}
	if len(keys) == 0 {
		return Proof{Valid: true}, nil
	}
	return Proof{Valid: signed(keys, body, signature), key: keys[0]}, nil
}

// keys returns the organization's keys. Errors are not remembered.
func (v *Verifier) keys(ctx context.Context, org value.ID) ([][]byte, error) {
	now := v.clock()
	v.mu.Lock()
	last, known := v.known[org]
	v.mu.Unlock()
	if known && now.Sub(last.at) < KeysMaxAge {
		return last.keys, nil
	}
	stored, err := v.store.SenderKeys(ctx, org)
	if err != nil {
		return nil, err
	}
	read := reading{at: now}
	if stored != nil {
		read.keys, err = stored.Open(func(text, purpose string) ([]byte, error) { return v.open(ctx, text, purpose) })
		if err != nil {
			return nil, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= maxKnown && !known {
		clear(v.known)
	}
	v.known[org] = read
	return read.keys, nil
}
