package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/commerce-integration/service/pkg/value"
)

// Secrets are written as Standard Webhooks 1.0.0 has them: the prefix and
// the base64 of the key.
const (
	secretPrefix = "whsec_"
	secretBytes  = 32
	secretShown  = 4
)

var errSecret = errors.New("webhook: not a secret: want whsec_ and base64")

// Secret is an endpoint's signing secret at rest: sealed, with the end of
// its text for people to tell one from another.
type Secret struct {
	Sealed string `json:"sealed"`
	Tail   string `json:"tail"`
}

// NewSecretText returns a fresh signing secret in its text form.
func NewSecretText() string {
	key := make([]byte, secretBytes)
	rand.Read(key)
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// KeepSecret pairs the sealed form of a secret with the end of its text.
func KeepSecret(text, sealed string) Secret {
	return Secret{Sealed: sealed, Tail: text[max(0, len(text)-secretShown):]}
}

// Masked shows which secret it is without telling it: whsec_****Jw3k.
func (s Secret) Masked() string { return secretPrefix + "****" + s.Tail }

// SecretPurpose is what an endpoint's secret is sealed for.
func SecretPurpose(endpoint value.ID) string { return "webhook endpoint " + endpoint.String() }

// SecretKey returns the signing key of a secret's text, with or without
// base64 padding.
func SecretKey(text string) ([]byte, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	if !found {
		return nil, errSecret
	}
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil || len(key) == 0 {
		return nil, errSecret
	}
	return key, nil
}
