package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/account"
)

// The requests of this test come from 127.0.0.1. The authorizer remembers keys, and
// API Gateway none of its answers about them.
func TestAKeyIsAcceptedFromItsNetworksOnly(t *testing.T) {
	w := newGatewayService(t)
	for name, test := range map[string]struct {
		networks []string
		status   int
	}{
		"from everywhere":   {nil, http.StatusOK},
		"from here":         {[]string{"203.0.113.0/24", "127.0.0.1/32"}, http.StatusOK},
		"from elsewhere":    {[]string{"203.0.113.0/24", "::/0"}, http.StatusForbidden},
		"from next to here": {[]string{"127.0.0.0/32"}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			dto := account.CreateApiKeyDto{Name: &name}
			if test.networks != nil {
				dto.Networks = &test.networks
			}
			key, credential := account.NewKey(&w.client, w.client.UserID, dto, w.Now())
			if err := w.Table.CreateKey(t.Context(), w.Org, key.APIKey, credential); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time the authorizer knows the key
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+"/api/products", nil)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("X-API-Key", key.Key)
				request.Header.Set("X-Forwarded-For", "203.0.113.9")
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if err != nil || answer.StatusCode != test.status {
					t.Fatalf("got %d %s, %v; want %d", answer.StatusCode, body, err, test.status)
				}
				if refused := test.status == http.StatusForbidden; refused != strings.Contains(string(body), `"code":"ip_forbidden","message":"the key is not accepted from 127.0.0.1:`) {
					t.Errorf("got %s", body)
				} else if refused != (answer.Header.Get("X-RateLimit-Limit") == "") {
					t.Errorf("counted against the rate limit: got %v, want %t", answer.Header, !refused)
				}
			}
		})
	}
	keys, err := w.Table.Keys(t.Context(), w.Org, w.client.ID)
	if err != nil || len(keys) != 4 {
		t.Fatalf("the application's keys: %+v, %v", keys, err)
	}
	for _, k := range keys {
		if used := k.Name == "from everywhere" || k.Name == "from here"; used != (k.LastUsedAt != nil) {
			t.Errorf("%s: last used %v, want it to be used: %t", k.Name, k.LastUsedAt, used)
		}
	}
	shown, err := w.Table.Failures(t.Context(), w.Org, w.client.ID)
	if err != nil || len(shown) != 4 || shown[0].Code != "ip_forbidden" || shown[0].Path != "/api/products" {
		t.Errorf("the application's failed requests: got %+v, %v, want the four refusals", shown, err)
	}
	if refusals := trail(t, w.Leaks.Log()); len(refusals) != 4 || refusals[0]["code"] != "ip_forbidden" || refusals[0]["sourceAddress"] != "127.0.0.1" {
		t.Errorf("the log: got %v, want the four refusals", refusals)
	}
}
