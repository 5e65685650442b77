// Package sealed keeps secrets that the service must be able to read again:
// AES-256-GCM under the service key, with the key's id before the text, so
// that a new key can take over while texts of the older ones still open. A
// sealed text opens only for the purpose that it was sealed for, so it is
// worth nothing when copied to another item. A box that reads its keys from a
// source follows a rotation without a restart. Where the service key comes
// from is left to the composition.
package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// KeySize is the length of a service key in bytes.
const KeySize = 32

// version starts every sealed text: version.keyID.base64url(nonce + sealed).
// Sealed bytes are the same without base64url.
const version = "s1"

var (
	errKeySize = fmt.Errorf("sealed: a service key must be %d bytes", KeySize)

	// ErrUnopened is the error of every text that does not open, such as one
	// that was sealed under a key that the box has not.
	ErrUnopened = errors.New("sealed")

	errText = fmt.Errorf("%w: not a sealed text", ErrUnopened)
	errKey  = fmt.Errorf("%w: sealed under a service key that is not configured", ErrUnopened)
	errOpen = fmt.Errorf("%w: the text was changed, or sealed for another purpose", ErrUnopened)
)

// Box seals under its first key and opens texts of all of them. It is safe
// for concurrent use.
type Box struct {
	ring atomic.Pointer[ring]

	source Source // nil: the keys never change
	now    func() time.Time
	mu     sync.Mutex // held while the source is read
	tried  time.Time  // when it was last read for a text of an unknown key
}

// ring is one reading of the keys.
type ring struct {
	current string
	keys    map[string]cipher.AEAD
	read    time.Time // when it was read, or last tried to be
}

// NewBox makes a box that seals under current and also opens texts sealed
// under the older keys, each of [KeySize] bytes.
func NewBox(current []byte, older ...[]byte) (*Box, error) {
	r, err := newRing(slices.Concat([][]byte{current}, older))
	if err != nil {
		return nil, err
	}
	b := &Box{}
	b.ring.Store(r)
	return b, nil
}

func newRing(keys [][]byte) (*ring, error) {
	r := &ring{keys: make(map[string]cipher.AEAD, len(keys))}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, errKeySize
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("sealed: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("sealed: %w", err)
		}
		id := KeyID(key)
		if i == 0 {
			r.current = id
		}
		r.keys[id] = aead
	}
	if len(keys) == 0 {
		return nil, errKeySize
	}
	return r, nil
}

// KeyID names a service key: eight hexadecimal digits of a hash of it.
func KeyID(key []byte) string {
	sum := sha256.Sum256(append([]byte("service key id\n"), key...))
	return hex.EncodeToString(sum[:4])
}

// Seal encrypts plain for the purpose, which names what the text belongs to,
// such as "endpoint 0192f0c1-…".
func (b *Box) Seal(plain []byte, purpose string) string {
	r := b.fresh()
	return string(r.prefix()) + base64.RawURLEncoding.EncodeToString(r.seal(nil, plain, purpose))
}

// SealBytes is Seal for large texts: base64 would add a third.
func (b *Box) SealBytes(plain []byte, purpose string) []byte {
	r := b.fresh()
	return r.seal(r.prefix(), plain, purpose)
}

func (r *ring) prefix() []byte { return []byte(version + "." + r.current + ".") }

// seal appends the nonce and what it seals.
func (r *ring) seal(to, plain []byte, purpose string) []byte {
	aead := r.keys[r.current]
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce)
	to = slices.Grow(to, len(nonce)+len(plain)+aead.Overhead())
	return aead.Seal(append(to, nonce...), nonce, plain, additional(r.current, purpose))
}

// Open decrypts a text that Seal made for the same purpose.
func (b *Box) Open(text, purpose string) ([]byte, error) {
	keyID, encoded, err := parts(text)
	if err != nil {
		return nil, err
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errText
	}
	return b.open(keyID, raw, purpose)
}

// OpenBytes decrypts what SealBytes made for the same purpose.
func (b *Box) OpenBytes(bytes []byte, purpose string) ([]byte, error) {
	keyID, raw, err := parts(string(bytes))
	if err != nil {
		return nil, err
	}
	return b.open(keyID, []byte(raw), purpose)
}

func parts(text string) (keyID, rest string, err error) {
	all := strings.SplitN(text, ".", 3)
	if len(all) != 3 || all[0] != version {
		return "", "", errText
	}
	return all[1], all[2], nil
}

func (b *Box) open(keyID string, raw []byte, purpose string) ([]byte, error) {
	aead, known := b.key(keyID)
	if !known {
		return nil, fmt.Errorf("%w: %q", errKey, keyID)
	}
	if len(raw) < aead.NonceSize() {
		return nil, errText
	}
	plain, err := aead.Open(nil, raw[:aead.NonceSize()], raw[aead.NonceSize():], additional(keyID, purpose))
	if err != nil {
		return nil, errOpen
	}
	return plain, nil
}

func additional(keyID, purpose string) []byte {
	return []byte(version + "\n" + keyID + "\n" + purpose)
}

// Current reports whether the text, of Seal or SealBytes, was sealed under the
// key that the box seals under.
func (b *Box) Current(text string) bool {
	keyID, _, err := parts(text)
	return err == nil && keyID == b.ring.Load().current
}

// Again returns the text sealed under the current key: the text itself when it
// is already.
func (b *Box) Again(text, purpose string) (string, error) {
	if b.Current(text) {
		return text, nil
	}
	plain, err := b.Open(text, purpose)
	if err != nil {
		return "", err
	}
	return b.Seal(plain, purpose), nil
}

// AgainBytes is Again for what SealBytes made.
func (b *Box) AgainBytes(bytes []byte, purpose string) ([]byte, error) {
	if b.Current(string(bytes)) {
		return bytes, nil
	}
	plain, err := b.OpenBytes(bytes, purpose)
	if err != nil {
		return nil, err
	}
	return b.SealBytes(plain, purpose), nil
}
