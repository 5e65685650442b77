package webhook

import (
	"time"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/value"
)

const (
	// RotationOverlap is how long a secret is used beside the one that
	// replaced it.
	RotationOverlap = 24 * time.Hour
	// MaxSecrets is the most secrets of an endpoint that are valid at a time.
	MaxSecrets = 5
)

// PreviousSecret is a secret that was replaced and still signs.
type PreviousSecret struct {
	Secret Secret     `json:"secret"`
	Until  value.Time `json:"until"` // exclusive
}

// validPrevious are the replaced secrets that still sign, the newest first.
func (e *Endpoint) validPrevious(now value.Time) []PreviousSecret {
	var valid []PreviousSecret
	for _, p := range e.PreviousSecrets {
		if now < p.Until {
			valid = append(valid, p)
		}
	}
	return valid
}

// Secrets are the secrets that sign at the time, the newest first.
func (e *Endpoint) Secrets(now value.Time) []Secret {
	secrets := []Secret{e.Secret}
	for _, p := range e.validPrevious(now) {
		secrets = append(secrets, p.Secret)
	}
	return secrets
}

// Rotate gives the endpoint a new secret, whose text is returned for the
// answer only, as [NewEndpoint] does. The old one signs beside it for
// [RotationOverlap]. The fault limit_reached tells that [MaxSecrets] are
// valid already.
func (e *Endpoint) Rotate(seal func(plain []byte, purpose string) string, now value.Time) (next *Endpoint, text string, err error) {
	previous := e.validPrevious(now)
	if len(previous)+1 >= MaxSecrets {
		return nil, "", fault.New(fault.Conflict, fault.CodeLimitReached,
			"an endpoint can have %d secrets that are valid at the same time: the oldest of them ends at %s",
			MaxSecrets, previous[len(previous)-1].Until)
	}
	text = NewSecretText()
	rotated := *e
	rotated.PreviousSecrets = append([]PreviousSecret{{Secret: e.Secret, Until: now.Add(RotationOverlap)}}, previous...)
	rotated.Secret = KeepSecret(text, seal([]byte(text), SecretPurpose(e.ID)))
	rotated.UpdatedAt = max(now, e.UpdatedAt+1)
	return &rotated, text, nil
}
