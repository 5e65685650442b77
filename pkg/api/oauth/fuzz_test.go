package oauth_test

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api/oauth"
)

// FuzzToken asks for tokens by any form and any Authorization headers, one on a
// line. {id}, {secret} and {basic} stand for the client's. A token is given to
// who sends its secret and to nobody else; every other answer is an error of RFC
// 6749 in the characters that this permits.
func FuzzToken(f *testing.F) {
	h := newHarness(f)
	good := strings.NewReplacer("{id}", h.client.ClientID.String(), "{secret}", h.client.ClientSecret,
		"{basic}", basic(h.client.ClientID.String(), h.client.ClientSecret))
	const credentials = "&client_id={id}&client_secret={secret}"
	for _, seed := range []struct{ body, header string }{
		{"grant_type=client_credentials" + credentials, ""},
		{"grant_type=client_credentials&scope=orders%3Aread+orders%3Aread" + credentials, ""},
		{"grant_type=client_credentials&scope=%20", "{basic}"},
		{"grant_type=client_credentials" + credentials, "{basic}"},
		{"grant_type=client_credentials&client_id={id}", "{basic}\n{basic}"},
		{"grant_type=password" + credentials, "Basic"},
		{"grant_type=client_credentials&client_id={id}&client_secret={id}", "bearer x"},
		{"grant_type=client_credentials&client_id=%00&client_secret=%ff&x", "Basic JTo="},
		{"scope=%22%5c%e2%82%ac&grant_type=client_credentials&scope=a" + credentials, ""},
		{"&=;%", "Basic Og=="},
	} {
		f.Add(seed.body, seed.header)
	}
	f.Fuzz(func(t *testing.T, body, header string) {
		h.Pass(time.Second) // within the rate limits
		headers := []string{"Content-Type", form}
		for line := range strings.SplitSeq(good.Replace(header), "\n") {
			if line != "" {
				headers = append(headers, "Authorization", line)
			}
		}
		sent := good.Replace(body)
		got := h.do("POST", "/oauth/token", sent, headers...)
		if got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("%q %q: got the headers %v", sent, headers, got.Header)
		}
		known := json.RejectUnknownMembers(true)
		var token oauth.Token
		var refusal oauth.TokenError
		switch {
		case got.Status == 200:
			if err := json.Unmarshal([]byte(got.Body), &token, known); err != nil || token.AccessToken == "" || token.Scope == "" {
				t.Fatalf("%q %q: got %s, %v", sent, headers, got.Body, err)
			}
			checkSecretSent(t, h, sent, headers)
		case got.Status >= 500 || json.Unmarshal([]byte(got.Body), &refusal, known) != nil:
			t.Fatalf("%q %q: got %d %s", sent, headers, got.Status, got.Body)
		case !errorText(refusal.Error) || !errorText(refusal.Description) || strings.Contains(got.Body, h.client.ClientSecret):
			t.Fatalf("%q %q: got the error %s", sent, headers, got.Body)
		}
	})
}

// checkSecretSent fails unless the form or HTTP Basic holds the client's secret.
func checkSecretSent(t *testing.T, h *harness, body string, headers []string) {
	t.Helper()
	values, err := url.ParseQuery(body)
	inBody := err == nil && values.Get("client_secret") == h.client.ClientSecret && strings.EqualFold(values.Get("client_id"), h.client.ClientID.String())
	byBasic := slices.ContainsFunc(headers, func(v string) bool {
		_, encoded, _ := strings.Cut(v, " ")
		decoded, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		text, err := url.QueryUnescape(string(decoded))
		return err == nil && strings.EqualFold(text, h.client.ClientID.String()+":"+h.client.ClientSecret) && strings.HasSuffix(text, h.client.ClientSecret)
	})
	if !inBody && !byBasic {
		t.Fatalf("%q %q get a token", body, headers)
	}
}

// errorText reports whether a text is of the characters of RFC 6749, section 5.2.
func errorText(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
}
