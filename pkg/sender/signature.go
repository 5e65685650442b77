package sender

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

const (
	// Attribute is the message attribute, of type String, that has the
	// signature.
	Attribute = "signature"
	// version begins each signature.
	version = "v1="
)

// Sign returns the signature of a message's body: v1= and the hexadecimal
// HMAC-SHA256 of its bytes.
func Sign(key []byte, body string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(body))
	return version + hex.EncodeToString(mac.Sum(nil))
}

// signed reports whether the signature is of one of the keys.
func signed(keys [][]byte, body, signature string) bool {
	for _, key := range keys {
		if hmac.Equal([]byte(signature), []byte(Sign(key, body))) {
			return true
		}
	}
	return false
}
