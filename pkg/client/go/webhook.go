package commerce

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// ParseDelivery verifies the body and the header of a delivery by the endpoint's
// secret, and returns its payload, by which a type switch tells events apart: an
// [*OrderEvent], for instance, whose Type says what happened. Of a type that this
// version does not know it is a [*WebhookPayload].
//
// It refuses a delivery that another secret signed, that was changed, or whose
// timestamp is more than five minutes off. A delivery can come twice: drop a
// repeated header webhook-id. While you change over to a new secret, try both.
func ParseDelivery(secret string, header http.Header, body []byte) (any, error) {
	if strings.TrimPrefix(secret, "whsec_") == "" {
		return nil, errors.New("the endpoint's secret is empty")
	}
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, err
	}
	if err := webhook.Verify(body, header); err != nil {
		return nil, err
	}
	var event struct{ Type string }
	if err := json.Unmarshal(body, &event); err != nil {
		return nil, err
	}
	payload := newPayload(event.Type)
	return payload, decode(bytes.NewReader(body), payload)
}
