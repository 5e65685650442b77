package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// TestARefusalThatPassesIsNotKept holds that a token works as soon as its key is
// published, though the gateway keeps what the authorizer says of it for
// minutes.
func TestARefusalThatPassesIsNotKept(t *testing.T) {
	w := newAccessScene(t)
	own := w.issuer
	w.issuer = w.newIssuer() // as it is after a rotation
	token := w.user(issuer.Grant{Roles: []auth.Role{auth.Owner}})
	rotated := w.issuer
	w.issuer = own
	ask := func(path string) (int, string) {
		return w.send(http.MethodGet, path, "", http.Header{"Authorization": {"Bearer " + token}})
	}
	paths := []string{"/developers/applications", "/developers/webhooks/endpoints", "/api/orders"}
	for range 2 {
		for _, path := range paths {
			if status, body := ask(path); status != http.StatusUnauthorized || !strings.Contains(body, `"code":"unauthenticated"`) {
				t.Errorf("%s before the key is published: got %d %s, want 401", path, status, body)
			}
		}
	}
	w.publish(rotated)
	w.Pass(11 * time.Second) // after which keys are asked for again
	for _, path := range paths {
		if status, body := ask(path); status != http.StatusOK {
			t.Errorf("%s once the key is published: got %d %s, want 200", path, status, body)
		}
	}
}

// TestSeveralAuthorizationHeadersServeNobody holds that the answer which the
// gateway keeps under one value of the header is given to no other request,
// and that a good token works after it was sent with another value.
func TestSeveralAuthorizationHeadersServeNobody(t *testing.T) {
	w := newAccessScene(t)
	ours := "Bearer " + w.owner
	theirs := "Bearer " + w.user(issuer.Grant{OrganizationID: w.other, Roles: []auth.Role{auth.Owner}})
	const proxy = "Basic cHJveHk6cHJveHk="
	ask := func(path string, want int, values ...string) {
		t.Helper()
		status, body := w.send(http.MethodGet, path, "", http.Header{"Authorization": values})
		if status != want || status == http.StatusOK && strings.Contains(body, w.kept["stranger"]) {
			t.Errorf("%s as %q: got %d %s, want %d", path, values, status, body, want)
		}
	}
	for _, path := range []string{"/developers/applications", "/developers/webhooks/endpoints", "/ingest/receipts", "/api/orders"} {
		for range 2 { // the second time from what the gateway kept
			ask(path, http.StatusUnauthorized, proxy, theirs)
			ask(path, http.StatusUnauthorized, theirs, theirs)
			ask(path, http.StatusUnauthorized, ours, ours)
			ask(path, http.StatusUnauthorized, proxy, ours)
			ask(path, http.StatusUnauthorized, ours+", "+ours)
			ask(path, http.StatusUnauthorized, proxy)
			ask(path, http.StatusUnauthorized)
			ask(path, http.StatusUnauthorized, "", ours)
			ask(path, http.StatusOK, ours)
			ask(path, http.StatusUnauthorized, ours, theirs)
			ask(path, http.StatusUnauthorized, ours, proxy)
		}
	}
}
