package webhook_test

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestSignaturesAreThoseOfTheVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/standard-webhooks.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		HMAC []struct {
			Secret, ID, Body, Signature string
			Timestamp                   int64
		} `json:"hmac"`
	}
	if err := json.Unmarshal(raw, &vectors, json.MatchCaseInsensitiveNames(true)); err != nil || len(vectors.HMAC) < 2 {
		t.Fatalf("%d vectors, %v", len(vectors.HMAC), err)
	}
	for _, v := range vectors.HMAC {
		key, err := webhook.SecretKey(v.Secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := webhook.Sign(v.ID, time.Unix(v.Timestamp, 0), []byte(v.Body), key); got != v.Signature {
			t.Errorf("Sign(%s) = %s, want %s", v.ID, got, v.Signature)
		}
	}
}

func TestHeadersNameTheEventAndTheAttempt(t *testing.T) {
	at, event := time.Unix(1795242941, 999_000_000), value.NewID()
	header := webhook.Headers(event, at, nil, []byte("key"))
	for name, want := range map[string]string{
		"webhook-id": event.String(), "webhook-timestamp": strconv.Itoa(1795242941), "User-Agent": "commerce-integration-webhooks/1", "Content-Type": "application/json",
	} {
		t.Run(name, func(t *testing.T) {
			if got := header.Get(name); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	for name := range header {
		if name != http.CanonicalHeaderKey(name) {
			t.Errorf("header %q is not canonical", name)
		}
	}
}

func TestSecretsAreReadAndMasked(t *testing.T) {
	text := webhook.NewSecretText()
	if other := webhook.NewSecretText(); other == text {
		t.Errorf("the same secret twice: %s", text)
	}
	key, err := webhook.SecretKey(text)
	if err != nil || len(key) != 32 {
		t.Errorf("SecretKey: %d bytes, %v", len(key), err)
	}
	if unpadded, err := webhook.SecretKey(strings.TrimRight(text, "=")); err != nil || string(unpadded) != string(key) {
		t.Errorf("without padding: %v", err)
	}
	for _, bad := range []string{"", "whsec_", "whsec_!!!", strings.TrimPrefix(text, "whsec_"), "whpk_" + text[6:]} {
		if key, err := webhook.SecretKey(bad); err == nil {
			t.Errorf("SecretKey(%q) = %x, want an error", bad, key)
		}
	}
	if got, want := webhook.KeepSecret(text, "s").Masked(), "whsec_****"+text[len(text)-4:]; got != want {
		t.Errorf("Masked() = %q, want %q", got, want)
	}
}
