package webhook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// seal stands in for encryption: what was sealed and for what.
func seal(plain []byte, purpose string) string { return purpose + "/" + string(plain) }

func newEndpoint() (*webhook.Endpoint, string) {
	url, events := "https://a.example", []string{"*"}
	return webhook.NewEndpoint(value.NewID(), value.NewID(), webhook.CreateWebhookEndpointDto{URL: &url, Events: &events}, seal, now)
}

// sealed are the secrets as an endpoint keeps them.
func sealed(e *webhook.Endpoint, texts ...string) []webhook.Secret {
	secrets := make([]webhook.Secret, len(texts))
	for i, text := range texts {
		secrets[i] = webhook.KeepSecret(text, seal([]byte(text), webhook.SecretPurpose(e.ID)))
	}
	return secrets
}

func TestAReplacedSecretSignsForTheOverlap(t *testing.T) {
	const day = 24 * time.Hour
	first, a := newEndpoint()
	second, b := first.Rotate(day, seal, now)
	if a == b || !strings.HasPrefix(b, "whsec_") {
		t.Fatalf("rotate: %q after %q", b, a)
	}
	third, c := second.Rotate(7*day, seal, now.Add(23*time.Hour))
	alone, d := third.Rotate(0, seal, now.Add(23*time.Hour))
	for name, tt := range map[string]struct {
		e    *webhook.Endpoint
		at   time.Duration
		want []string
	}{
		"before":                     {first, 0, []string{a}},
		"just rotated":               {second, 0, []string{b, a}},
		"a millisecond before a day": {second, day - time.Millisecond, []string{b, a}},
		"after a day":                {second, day, []string{b}},
		"long after":                 {second, 30 * day, []string{b}},
		"rotated twice":              {third, 23 * time.Hour, []string{c, b}},
		"within a week":              {third, 7*day + 23*time.Hour - time.Millisecond, []string{c, b}},
		"after a week":               {third, 7*day + 23*time.Hour, []string{c}},
		"without an overlap":         {alone, 23 * time.Hour, []string{d}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(sealed(tt.e, tt.want...), tt.e.Secrets(now.Add(tt.at))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
	if first.PreviousSecrets != nil || second.UpdatedAt <= first.UpdatedAt || second.HealthSince != first.HealthSince {
		t.Errorf("from %+v to %+v", first, second)
	}
	if shown := second.Shape(webhook.Counters{}).Secret; shown != "whsec_****"+b[len(b)-4:] {
		t.Errorf("shown as %s, want the end of %s", shown, b)
	}
}

func TestEndpointAtRestReadsBack(t *testing.T) {
	e, _ := newEndpoint()
	e, _ = e.Rotate(time.Hour, seal, now)
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var got webhook.Endpoint
	if err := json.Unmarshal(body, &got); err != nil || cmp.Diff(e, &got) != "" {
		t.Errorf("%v, %s", err, cmp.Diff(e, &got))
	}
	e.Circuit, e.Lane = openSince(0, time.Minute), webhook.LaneSlow
	if beside, err := json.Marshal(e); err != nil || string(beside) != string(body) {
		t.Errorf("the condition is part of the doc: %s, %v", beside, err)
	}
}
