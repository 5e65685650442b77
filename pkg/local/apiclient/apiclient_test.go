package apiclient_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/oauth2"

	"github.com/commerce-integration/service/pkg/local/apiclient"
)

func TestNoCredentialGoesWhereARedirectionLeads(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host got %s %s", r.URL, r.Header)
	}))
	defer elsewhere.Close()
	service := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer service.Close()
	for name, c := range map[string]*apiclient.Client{
		"a key": apiclient.NewWithKey(service.URL, "key"), "a token": apiclient.New(service.URL, "token"),
		"tokens": apiclient.NewWithTokens(service.URL, oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token"})),
	} {
		if _, _, err := c.Lines(t.Context(), "/api/changes"); apiclient.Refused(err) != http.StatusTemporaryRedirect {
			t.Errorf("with %s: %v, want a refusal", name, err)
		}
	}
}
