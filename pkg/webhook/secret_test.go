package webhook_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
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

func TestReplacedSecretSignsForADayMore(t *testing.T) {
	first, a := newEndpoint()
	second, b, err := first.Rotate(seal, now)
	if err != nil || a == b || !strings.HasPrefix(b, "whsec_") {
		t.Fatalf("rotate: %q after %q, %v", b, a, err)
	}
	third, c, err := second.Rotate(seal, now.Add(23*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
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
		"rotated twice":              {third, 23 * time.Hour, []string{c, b, a}},
		"the first has ended":        {third, day, []string{c, b}},
		"the second is still valid":  {third, day + 23*time.Hour - time.Millisecond, []string{c, b}},
		"the second has ended":       {third, day + 23*time.Hour, []string{c}},
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

func TestFiveSecretsAreValidAtATime(t *testing.T) {
	e, text := newEndpoint()
	texts := []string{text}
	for i := range 4 {
		next, text, err := e.Rotate(seal, now.Add(time.Duration(i)*time.Hour))
		if err != nil {
			t.Fatalf("rotation %d: %v", i+1, err)
		}
		e, texts = next, append([]string{text}, texts...)
	}
	last := now.Add(24*time.Hour) - 1
	if diff := cmp.Diff(sealed(e, texts...), e.Secrets(last)); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	next, text, err := e.Rotate(seal, last)
	if next != nil || text != "" || !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), now.Add(24*time.Hour).String()) {
		t.Errorf("a sixth: %+v, %q, %v; want a conflict that tells when the oldest ends", next, text, err)
	}
	next, text, err = e.Rotate(seal, last+1)
	if err != nil || len(next.PreviousSecrets) != 4 {
		t.Fatalf("when the oldest has ended: %+v, %v", next, err)
	}
	if diff := cmp.Diff(sealed(e, slices.Concat([]string{text}, texts[:4])...), next.Secrets(last+1)); diff != "" {
		t.Errorf("secrets then (-want +got):\n%s", diff)
	}
}

func TestEndpointAtRestReadsBack(t *testing.T) {
	e, _ := newEndpoint()
	e, _, err := e.Rotate(seal, now)
	if err != nil {
		t.Fatal(err)
	}
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
