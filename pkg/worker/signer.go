package worker

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/sealed"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// signer signs deliveries. It remembers the keys of opened secrets.
type signer struct {
	box *sealed.Box

	mu   sync.Mutex
	keys bounded[sealedKey, []byte]
}

// sealedKey names an opened secret. A sealed text is worth nothing at another
// endpoint than its own.
type sealedKey struct {
	endpoint value.ID
	sealed   string
}

func newSigner(box *sealed.Box) *signer {
	return &signer{box: box, keys: newBounded[sealedKey, []byte](remembered, nil)}
}

// header is the header of an attempt at the given time, signed with every
// secret of the endpoint that is valid then.
func (s *signer) header(e *webhook.Endpoint, event value.ID, at time.Time, body []byte) (http.Header, error) {
	secrets := e.Secrets(value.TimeOf(at))
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, err := s.key(e.ID, secret)
		if err != nil {
			return nil, fmt.Errorf("secret of endpoint %s: %w", e.ID, err)
		}
		keys[i] = key
	}
	return webhook.Headers(event, at, body, keys...), nil
}

func (s *signer) key(endpoint value.ID, secret webhook.Secret) ([]byte, error) {
	name := sealedKey{endpoint, secret.Sealed}
	s.mu.Lock()
	key, known := s.keys.get(name)
	s.mu.Unlock()
	if known {
		return key, nil
	}
	text, err := s.box.Open(secret.Sealed, webhook.SecretPurpose(endpoint))
	if err != nil {
		return nil, err
	}
	if key, err = webhook.SecretKey(string(text)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.keys.put(name, key)
	s.mu.Unlock()
	return key, nil
}
