// Package sender proves who sent records. An organization may have keys for
// its senders; from then on ingest takes its messages only with a signature of
// one of them. An organization without keys takes messages unsigned. The
// signature is over the bytes of the message, which name the organization; it
// has no time, so that a message that is sent again is valid, and only the
// record's version tells that it is old.
package sender

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// MaxKeys is how many keys of an organization are good at a time.
	MaxKeys  = 2
	keyBytes = 32
	idDigits = 8
)

// Keys are the keys of an organization's senders, the newest first, 1 to
// [MaxKeys].
type Keys struct {
	OrganizationID value.ID `json:"organizationId"`
	Keys           []Key    `json:"keys"`
}

// Key is a key at rest.
type Key struct {
	ID        string     `json:"id"` // the first digits of the SHA-256 of the key
	CreatedAt value.Time `json:"createdAt"`
	Sealed    string     `json:"sealed"`
}

// purpose is what the keys of an organization are sealed for.
func purpose(org value.ID) string { return "record sender of " + org.String() }

// Rotate returns the organization's keys with a new one before the newest of
// old, which is nil when there are none, and the new key's text, 64
// hexadecimal digits of 32 random bytes. A key before the newest is good no
// more.
func Rotate(org value.ID, old *Keys, seal func(plain []byte, purpose string) string, now value.Time) (next *Keys, text string) {
	raw := make([]byte, keyBytes)
	rand.Read(raw)
	sum := sha256.Sum256(raw)
	next = &Keys{OrganizationID: org, Keys: []Key{{
		ID: hex.EncodeToString(sum[:])[:idDigits], CreatedAt: now, Sealed: seal(raw, purpose(org)),
	}}}
	if old != nil {
		next.Keys = append(next.Keys, old.Keys[:min(len(old.Keys), MaxKeys-1)]...)
	}
	return next, hex.EncodeToString(raw)
}

// ParseKey reads the text of a key, without repeating it in the error.
func ParseKey(text string) ([]byte, error) {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("a sender key must be %d hexadecimal digits", hex.EncodedLen(keyBytes))
	}
	return key, nil
}

// Open returns the keys themselves, the newest first.
func (k *Keys) Open(open func(text, purpose string) ([]byte, error)) ([][]byte, error) {
	raw := make([][]byte, len(k.Keys))
	for i, one := range k.Keys {
		var err error
		if raw[i], err = open(one.Sealed, purpose(k.OrganizationID)); err != nil {
			return nil, fmt.Errorf("open sender key %s of %s: %w", one.ID, k.OrganizationID, err)
		}
	}
	return raw, nil
}

// Reseal returns the keys as again seals them; the same when again changes
// none.
func (k *Keys) Reseal(again func(text, purpose string) (string, error)) (*Keys, error) {
	next, changed := &Keys{OrganizationID: k.OrganizationID}, false
	for _, one := range k.Keys {
		text, err := again(one.Sealed, purpose(k.OrganizationID))
		if err != nil {
			return nil, err
		}
		changed = changed || text != one.Sealed
		one.Sealed = text
		next.Keys = append(next.Keys, one)
	}
	if !changed {
		return k, nil
	}
	return next, nil
}
