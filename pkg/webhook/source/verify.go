package source

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/shop"
)

// Headers of webhooks, of which the systems sign none.
var headers = map[shop.System]struct{ signature, topic, delivery string }{
	shop.Shopify:     {"X-Shopify-Hmac-Sha256", "X-Shopify-Topic", "X-Shopify-Webhook-Id"},
	shop.WooCommerce: {"X-WC-Webhook-Signature", "X-WC-Webhook-Topic", "X-WC-Webhook-Delivery-ID"},
}

const triggeredAt = "X-Shopify-Triggered-At"

// Open decrypts what [Seal] made for the purpose.
type Open = func(text, purpose string) ([]byte, error)

// Open opens the secrets that count at the time.
func (s *Source) Open(open Open, now value.Time) (secrets [][]byte, err error) {
	for _, sealed := range s.Secrets(now) {
		secret, err := open(sealed.Sealed, purpose(s.ID))
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// Verify reports whether one of the secrets signed the body, in a time that says
// nothing about a signature: both systems send the base64 of HMAC-SHA256 over the
// bytes of the body.
func Verify(system shop.System, header http.Header, body []byte, secrets ...[]byte) (signed bool) {
	given, err := base64.StdEncoding.DecodeString(header.Get(headers[system].signature))
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		signed = hmac.Equal(mac.Sum(nil), given) && err == nil || signed
	}
	return signed
}

// Topic is what a webhook is about, and Delivery the id of the delivery.
func (s *Source) Topic(header http.Header) (topic, delivery string) {
	h := headers[s.Kind]
	return header.Get(h.topic), header.Get(h.delivery)
}

// maxAhead is how far a shop's clock is ahead of ours at most. A header that claims
// more, which nobody signed, would hold up the shop's next changes.
const maxAhead = 60_000

// Version orders an event among those of its source, by ms: by when Shopify says
// that it was triggered, else by when the body says that the object changed; nil
// when neither does.
func (s *Source) Version(header http.Header, e *shop.Event, now value.Time) *int64 {
	at, err := value.ParseTime(header.Get(triggeredAt))
	if err != nil || s.Kind != shop.Shopify {
		at = e.Changed
	}
	if at == 0 {
		return nil
	}
	return new(int64(max(0, min(at, now+maxAhead))))
}
