package listener

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/webhook"
)

// Tolerance is how far a webhook's timestamp may be from the receiver's clock.
const Tolerance = 300 * time.Second

// Reasons to refuse a webhook.
var (
	ErrHeader    = errors.New("webhook-id, webhook-timestamp and webhook-signature are required once each")
	ErrTimestamp = errors.New("webhook-timestamp must be whole seconds since 1970")
	ErrStale     = errors.New("webhook-timestamp is more than 300 seconds away")
	ErrSignature = errors.New("no signature matches the secret")
)

// readSecret reads a secret, base64 with or without padding. The prefix whsec_
// may be left out.
func readSecret(secret string) (*standardwebhooks.Webhook, error) {
	key, err := webhook.SecretKey("whsec_" + strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	return standardwebhooks.NewWebhookRaw(key)
}

// checkTime reads the headers that do not need the secret.
func checkTime(header http.Header, now time.Time) error {
	for _, name := range []string{
		standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature,
	} {
		if values := header.Values(name); len(values) != 1 || values[0] == "" {
			return ErrHeader
		}
	}
	text := header.Get(standardwebhooks.HeaderWebhookTimestamp)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strings.Trim(text, "0123456789") != "" {
		return ErrTimestamp
	}
	if away := now.Sub(time.Unix(seconds, 0)); away > Tolerance || away < -Tolerance {
		return ErrStale
	}
	return nil
}
