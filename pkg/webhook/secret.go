package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Secrets are written as Standard Webhooks 1.0.0 has them: the prefix and
// the base64 of the key.
const (
	secretPrefix = "whsec_"
	secretBytes  = 32
	secretShown  = 4

	// DefaultOverlapHours is how long a secret also signs after it was replaced, where
	// nobody says otherwise.
	DefaultOverlapHours = 24
	MaxOverlapHours     = 168
)

var errSecret = errors.New("webhook: not a secret: want whsec_ and base64")

// Secret is a secret at rest that signs webhooks: sealed, with the end of
// its text by which people distinguish secrets.
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

// KeptSecrets are the secrets of an endpoint, which signs with them, or of a shop,
// whose webhooks they sign.
type KeptSecrets struct {
	Secret Secret `json:"secret"`
	// PreviousSecrets were replaced by Secret and also sign for a while,
	// the newest first.
	PreviousSecrets []PreviousSecret `json:"previousSecrets,omitempty"`
}

// PreviousSecret is a secret that was replaced and still signs.
type PreviousSecret struct {
	Secret Secret     `json:"secret"`
	Until  value.Time `json:"until"` // exclusive
}

// validPrevious are the replaced secrets that still sign, the newest first.
func (k *KeptSecrets) validPrevious(now value.Time) []PreviousSecret {
	return slices.DeleteFunc(slices.Clone(k.PreviousSecrets), func(p PreviousSecret) bool { return now >= p.Until })
}

// Secrets are the secrets that sign at the time, the newest first.
func (k *KeptSecrets) Secrets(now value.Time) []Secret {
	secrets := []Secret{k.Secret}
	for _, p := range k.validPrevious(now) {
		secrets = append(secrets, p.Secret)
	}
	return secrets
}

// Replace makes next the secret. The old one also signs for the overlap, in which
// another replacement ends it: of two secrets at most.
func (k *KeptSecrets) Replace(next Secret, overlap time.Duration, now value.Time) {
	old := k.Secret
	k.Secret, k.PreviousSecrets = next, nil
	if overlap > 0 {
		k.PreviousSecrets = []PreviousSecret{{Secret: old, Until: now.Add(overlap)}}
	}
}

// Sealed drops the secrets that sign no more at the time, and returns where the others
// are, each with the purpose that they are sealed for.
func (k *KeptSecrets) Sealed(purpose string, now value.Time) map[*string]string {
	k.PreviousSecrets = k.validPrevious(now)
	purposes := map[*string]string{&k.Secret.Sealed: purpose}
	for i := range k.PreviousSecrets {
		purposes[&k.PreviousSecrets[i].Secret.Sealed] = purpose
	}
	return purposes
}

// Reseal replaces texts that are sealed for purposes by what again makes of them, and
// reports whether that changes one.
func Reseal(purposes map[*string]string, again func(text, purpose string) (string, error)) (changed bool, err error) {
	for sealed, purpose := range purposes {
		text, err := again(*sealed, purpose)
		if err != nil {
			return false, err
		}
		changed = changed || text != *sealed
		*sealed = text
	}
	return changed, nil
}

// Rotate gives the endpoint a new secret, whose text is returned for the
// answer only, as [NewEndpoint] does.
func (e *Endpoint) Rotate(overlap time.Duration, seal func(plain []byte, purpose string) string, now value.Time) (next *Endpoint, text string) {
	text = NewSecretText()
	rotated := *e
	rotated.Replace(KeepSecret(text, seal([]byte(text), SecretPurpose(e.ID))), overlap, now)
	rotated.UpdatedAt = max(now, e.UpdatedAt+1)
	return &rotated, text
}

// Reseal returns the endpoint with its secrets and headers as again seals them, without
// those that sign no more at the time; the endpoint itself when again changes
// none. Only code that opens secrets sees a difference.
func (e *Endpoint) Reseal(again func(text, purpose string) (string, error), now value.Time) (*Endpoint, error) {
	next := *e
	purposes := next.Sealed(SecretPurpose(e.ID), now)
	next.Delivery.Headers = slices.Clone(e.Delivery.Headers)
	for i := range next.Delivery.Headers {
		h := &next.Delivery.Headers[i]
		purposes[&h.Sealed] = HeaderPurpose(e.ID, h.Name)
	}
	if changed, err := Reseal(purposes, again); err != nil || !changed {
		return e, err
	}
	return &next, nil
}
