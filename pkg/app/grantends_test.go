package app_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// userOf signs a token of the user.
func (w *accessScene) userOf(id value.ID, g issuer.Grant) string {
	w.t.Helper()
	g.Subject, g.OrganizationID, g.Lifetime = id.String(), w.Org, time.Hour
	token, err := w.issuer.Sign(g)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

// Who may not rotate the secret, for want of the scopes that it gets, must not do away with
// the need of it either.
func TestWhoLacksAnApplicationsScopesDoesNotMakeItPublic(t *testing.T) {
	w := newAccessScene(t)
	outsider := &credential{token: w.user(issuer.Grant{Roles: []auth.Role{auth.Owner}, Scope: new("developers:write")})}
	if status, _ := w.try(outsider, "POST", "/developers/applications/{application}/rotate-secret", ""); status != http.StatusForbidden {
		t.Fatalf("rotate: %d", status)
	}
	if status, _ := w.try(outsider, "PUT", "/developers/applications/{application}/client", `{"type":"PUBLIC"}`); status != http.StatusForbidden {
		t.Errorf("make it PUBLIC: got %d, want 403", status)
	}
}

// A change by a token in a user's name is the user's, too, and is found by the user.
func TestTheTrailNamesTheUserInWhoseNameAnApplicationChanges(t *testing.T) {
	w := newAccessScene(t)
	user := value.NewID()
	token := w.granted(&credential{token: w.userOf(user, issuer.Grant{Roles: []auth.Role{auth.Owner}})}, "application", "orders:read webhooks:read webhooks:write")
	w.do(token, "POST", "/developers/webhooks/endpoints?applicationId={application}", `{"url":"https://elsewhere.example.com/","events":["order.*"]}`)
	form := url.Values{"client_id": {w.kept["applicationClient"]}, "client_secret": {w.kept["applicationSecret"]}, "token": {token}}
	if status, body := w.send("POST", "/oauth/revoke", form.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}); status != http.StatusOK {
		t.Errorf("revoke: got %d %s", status, body)
	}
	w.writeTrail()
	for _, action := range []string{"endpoint.created", "grant.revoked"} {
		found, _, err := w.Table.AuditTrail(t.Context(), w.Org, account.AuditFilter{Actor: user, Action: action}, value.ID{}, 10)
		if err != nil || len(found) != 1 || found[0].Actor.Kind != "application" {
			t.Errorf("%s by the user: got %v, %v, want one entry", action, found, err)
		}
	}
	issued := trail(t, w.Leaks.Log())
	named := false
	for _, e := range issued {
		actor, _ := e["actor"].(map[string]any)
		named = named || e["action"] == "application.tokenIssued" && actor["userId"] == user.String()
	}
	if !named {
		t.Error("the log: no application.tokenIssued names the user and the grant of the token")
	}
}

// A credential of a user that is limited to sites must not get the answer to one that is not.
func TestARepeatedAuthorizationByALimitedCredentialIsAnother(t *testing.T) {
	w := newAccessScene(t)
	user := value.NewID()
	whole := w.userOf(user, issuer.Grant{Roles: []auth.Role{auth.Owner}})
	limited := w.userOf(user, issuer.Grant{Roles: []auth.Role{auth.Owner}, SiteIDs: []value.ID{value.MustID(siteA)}})
	asked := url.Values{
		"response_type": {"code"}, "client_id": {w.kept["applicationClient"]}, "redirect_uri": {"https://example.com/back"}, "scope": {"orders:read"},
		"code_challenge": {codeChallenge}, "code_challenge_method": {"S256"},
	}
	body, err := json.Marshal(map[string]any{"request": asked.Encode(), "allow": []string{"orders:read"}})
	if err != nil {
		t.Fatal(err)
	}
	_, first := w.try(&credential{token: whole}, "POST", "/developers/grants", string(body), "Idempotency-Key", "1")
	status, again := w.try(&credential{token: limited}, "POST", "/developers/grants", string(body), "Idempotency-Key", "1")
	if first.RedirectTo == "" || status < 300 && again.RedirectTo == first.RedirectTo {
		t.Errorf("the limited credential got the code of a grant for every site: %d", status)
	}
}
