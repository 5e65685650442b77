package account

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
)

// Hash is the SHA-256 of a secret; nothing else of a secret is stored. Secrets
// have over 190 bits of randomness, so that a slow hash would add nothing.
type Hash [sha256.Size]byte

// HashSecret returns the hash of an API key or a client secret.
func HashSecret(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// Equal compares in constant time.
func (h Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

const (
	clientSecretPrefix = "cs_"
	clientSecretLength = 40 // base62 digits after the prefix
	maskedDigits       = 4
)

func newClientSecret() string { return clientSecretPrefix + randomBase62(clientSecretLength) }

// maskClientSecret keeps the last digits; a masked secret stays as it is.
func maskClientSecret(secret string) string {
	return clientSecretPrefix + "****" + secret[len(secret)-maskedDigits:]
}

const base62Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// randomBase62 returns n random digits, each equally likely: bytes above the
// highest multiple of 62 are thrown away.
func randomBase62(n int) string {
	const fair = 256 - 256%len(base62Digits)
	out := make([]byte, 0, n)
	var buf [64]byte
	for len(out) < n {
		// crypto/rand.Read never fails: it ends the program instead.
		_, _ = rand.Read(buf[:])
		for _, b := range buf {
			if int(b) < fair && len(out) < n {
				out = append(out, base62Digits[int(b)%len(base62Digits)])
			}
		}
	}
	return string(out)
}
