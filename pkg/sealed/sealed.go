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
	"strings"
)

// KeySize is the length of a service key in bytes.
const KeySize = 32

// version starts every sealed text: version.keyID.base64url(nonce + sealed).
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
	aead := b.keys[b.current]
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	rand.Read(nonce)
	text := aead.Seal(nonce, nonce, plain, additional(b.current, purpose))
	return version + "." + b.current + "." + base64.RawURLEncoding.EncodeToString(text)
}

// Open decrypts a text that Seal made for the same purpose.
func (b *Box) Open(text, purpose string) ([]byte, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || parts[0] != version {
		return nil, errText
	}
	aead, known := b.keys[parts[1]]
	if !known {
		return nil, fmt.Errorf("%w: %q", errKey, parts[1])
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(raw) < aead.NonceSize() {
		return nil, errText
	}
	plain, err := aead.Open(nil, raw[:aead.NonceSize()], raw[aead.NonceSize():], additional(parts[1], purpose))
	if err != nil {
		return nil, errOpen
	}
	return plain, nil
}

func additional(keyID, purpose string) []byte {
	return []byte(version + "\n" + keyID + "\n" + purpose)
}
