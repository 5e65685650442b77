package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Names of the headers of a delivery, Standard Webhooks 1.0.0.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// UserAgent is how deliveries introduce themselves.
const UserAgent = "commerce-integration-webhooks/1"

// Sign returns the signature header of a body under one or more keys: for
// each "v1," and the base64 of HMAC-SHA256 over id.timestamp.body, separated
// by spaces.
func Sign(id string, at time.Time, body []byte, keys ...[]byte) string {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

// Headers are the headers of one attempt to deliver the event's body.
func Headers(event value.ID, at time.Time, body []byte, keys ...[]byte) http.Header {
	return http.Header{
		"Content-Type":  {"application/json"},
		"User-Agent":    {UserAgent},
		HeaderID:        {event.String()},
		HeaderTimestamp: {strconv.FormatInt(at.Unix(), 10)},
		HeaderSignature: {Sign(event.String(), at, body, keys...)},
	}
}
