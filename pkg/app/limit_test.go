package app_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

func TestTheTemplateLimitsAnOrganizationAsTheCodeDoes(t *testing.T) {
	for name, f := range dynamotest.Model(t).Functions {
		if got := f.Environment["ORGANIZATION_RATE_LIMIT"]; got != "" && got != strconv.Itoa(auth.OrganizationRateLimit) {
			t.Errorf("%s: got %s, want %d", name, got, auth.OrganizationRateLimit)
		}
	}
}

// TestAnOrganizationSpendsItsOwnLimitOnly lets the applications of one organization try
// all that knowing the other's ids permits, and then spend their own limit.
func TestAnOrganizationSpendsItsOwnLimitOnly(t *testing.T) {
	const limit = 12
	w := deployed(t, map[string]string{"OrganizationRateLimit": strconv.Itoa(limit)})
	token := func(client account.Application, secret string) servicetest.Answer {
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client.ClientID.String()}, "client_secret": {secret}}
		return w.Ask(w.Config.Handler, "POST", "/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	}
	bearer := func(client account.Application) string {
		t.Helper()
		var got made
		if a := token(client, client.ClientSecret); a.Status != 200 || json.Unmarshal([]byte(a.Body), &got) != nil {
			t.Fatalf("a token of %s: got %d %s", client.ID, a.Status, a.Body)
		}
		return "Bearer " + got.AccessToken
	}
	second, victim := w.newClient(t, w.Org), w.newClient(t, value.NewID())
	ours := []string{bearer(w.client), bearer(second)}
	for _, path := range []string{
		"/api/products?organizationId=" + victim.OrganizationID.String(),
		"/api/products/" + victim.OrganizationID.String(),
		"/developers/webhooks/endpoints?applicationId=" + victim.ID.String(),
	} {
		if a := w.Ask(w.Config.Handler, "GET", path, "", "Authorization", ours[0], "Organizationid", victim.OrganizationID.String(),
			"X-Organization-Id", victim.OrganizationID.String(), "X-Application-Id", victim.ID.String()); a.Header.Get("X-RateLimit-Limit") != strconv.Itoa(limit) {
			t.Errorf("%s: got %d %v, want it counted against our organization", path, a.Status, a.Header)
		}
	}
	for range 5 {
		if a := token(victim, w.client.ClientSecret); !strings.Contains(a.Body, "invalid_client") {
			t.Errorf("a token of another by our secret: got %d %s", a.Status, a.Body)
		}
	}
	left := limit - len(ours) - 3
	for n := range limit {
		a := w.Ask(w.Config.Handler, "GET", "/api/me", "", "Authorization", ours[n%2])
		if want := n >= left; (a.Status == 429) != want || want && !strings.Contains(a.Body, `"rate_limited"`) {
			t.Errorf("request %d of %d that are left: got %d %s", n+1, left, a.Status, a.Body)
		}
	}
	if a := token(w.client, w.client.ClientSecret); a.Status != 429 {
		t.Errorf("a token past the limit: got %d, want 429", a.Status)
	}
	theirs := bearer(victim)
	a := w.Ask(w.Config.Handler, "GET", "/api/me", "", "Authorization", theirs)
	if got := a.Header.Get("X-RateLimit-Remaining"); a.Status != 200 || got != strconv.Itoa(limit-2) {
		t.Errorf("the other organization: got %d with %s left, want %d", a.Status, got, limit-2)
	}
}
