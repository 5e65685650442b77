// Package sealed keeps secrets that the service must be able to read again:
// AES-256-GCM under the service key, with the key's id beside the text, so
// that a new key can take over while texts of the older ones still open. A
// sealed text opens only for the purpose that it was sealed for, so it is
// worth nothing when copied to another item. Where the service key comes
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
)

// KeySize is the length of a service key in bytes.
const KeySize = 32

// version starts every sealed text: version.keyID.base64url(nonce + sealed).
// Sealed bytes are the same without base64url.
const version = "s1"

var (
	errKeySize = fmt.Errorf("sealed: a service key must be %d bytes", KeySize)
	errText    = errors.New("sealed: not a sealed text")
	errKey     = errors.New("sealed: sealed under a service key that is not configured")
	errOpen    = errors.New("sealed: the text was changed, or sealed for another purpose")
)

// Box seals under its first key and opens texts of all of them. It is safe
// for concurrent use.
type Box struct {
	current string
	keys    map[string]cipher.AEAD
}

// NewBox makes a box that seals under current and also opens what was sealed
// under the older keys, each of [KeySize] bytes.
func NewBox(current []byte, older ...[]byte) (*Box, error) {
	b := &Box{current: KeyID(current), keys: make(map[string]cipher.AEAD, 1+len(older))}
	for _, key := range append([][]byte{current}, older...) {
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
		b.keys[KeyID(key)] = aead
	}
	return b, nil
}

// KeyID names a service key: eight hexadecimal digits of a hash of it.
func KeyID(key []byte) string {
	sum := sha256.Sum256(append([]byte("service key id\n"), key...))
	return hex.EncodeToString(sum[:4])
}

// Seal encrypts plain for the purpose, which names what the text belongs to,
// such as "endpoint 0192f0c1-…".
func (b *Box) Seal(plain []byte, purpose string) string {
	return string(b.prefix()) + base64.RawURLEncoding.EncodeToString(b.seal(nil, plain, purpose))
}

// SealBytes is Seal for what is large: base64 would add a third.
func (b *Box) SealBytes(plain []byte, purpose string) []byte {
	return b.seal(b.prefix(), plain, purpose)
}

func (b *Box) prefix() []byte { return []byte(version + "." + b.current + ".") }

// seal appends the nonce and what it seals.
func (b *Box) seal(to, plain []byte, purpose string) []byte {
	aead := b.keys[b.current]
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce)
	to = slices.Grow(to, len(nonce)+len(plain)+aead.Overhead())
	return aead.Seal(append(to, nonce...), nonce, plain, additional(b.current, purpose))
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
	aead, known := b.keys[keyID]
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
