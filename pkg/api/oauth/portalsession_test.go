package oauth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// session stores a portal session of so many minutes, and returns its code.
func (h *harness) session(t *testing.T, minutes int) (session *account.Family, code string) {
	t.Helper()
	session, code = account.NewFamily(account.Grant{
		OrganizationID: h.Org, ApplicationID: h.client.ID, UserID: h.user.UserID, Scopes: []string{"webhooks:read"}, EventScopes: &[]string{"orders:read"},
	}, time.Duration(minutes)*time.Minute, h.Now())
	h.Leaks.Made(code)
	if err := h.Table.CreateGrant(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	return session, code
}

// open presents the code as the session's page does.
func (h *harness) open(code string, more ...string) answer { return h.openAs(h.client, code, more...) }

func (h *harness) openAs(client account.Application, code string, more ...string) answer {
	return h.ask(append([]string{"grant_type", "urn:commerce-integration:grant-type:portal-session", "client_id", client.ClientID.String(), "code", code}, more...)...)
}

// The application is confidential, and its tokens may not manage webhooks.
func TestAPortalSessionOpensOnceAndLastsAsLongAsItsOwnerSaid(t *testing.T) {
	h := newGranting(t)
	_, code := h.session(t, 90)
	h.Pass(59 * time.Second)
	token := tokenIn(t, h.open(code))
	if token.Scope != "webhooks:read" || token.RefreshToken != "" || token.ExpiresIn != 90*60-59 {
		t.Errorf("token %+v", token)
	}
	p := h.principal(t, token.AccessToken)
	if p == nil || p.Kind != auth.KindApplication || p.ApplicationID != h.client.ID || p.UserID != h.user.UserID ||
		p.Scopes.String() != "webhooks:read" || p.EventScopes.String() != "orders:read" {
		t.Fatalf("principal %+v", p)
	}
	if len(p.Lacks(auth.OrdersRead, auth.WebhooksRead)) != 0 || p.Lacks(auth.ProductsRead).String() != "products:read" {
		t.Errorf("lacks %s of what events carry", p.Lacks(auth.OrdersRead, auth.WebhooksRead, auth.ProductsRead))
	}
	h.Pass(89 * time.Minute)
	if h.principal(t, token.AccessToken) == nil {
		t.Error("a second before its end: denied")
	}
	h.Pass(time.Second)
	if p := h.principal(t, token.AccessToken); p != nil {
		t.Errorf("at its end: %+v", p)
	}
}

// Somebody else may have the code.
func TestACodeOfAPortalSessionThatComesTwiceEndsIt(t *testing.T) {
	h := newGranting(t)
	_, code := h.session(t, 60)
	token := tokenIn(t, h.open(code))
	refusedAs(t, h.open(code), 400, "invalid_grant")
	h.Pass(5 * time.Second)
	if p := h.principal(t, token.AccessToken); p != nil {
		t.Errorf("5 s later: %+v", p)
	}
}

func TestAPortalSessionEndsByItsRevocation(t *testing.T) {
	h := newGranting(t)
	session, code := h.session(t, 60)
	token := tokenIn(t, h.open(code))
	if h.principal(t, token.AccessToken) == nil {
		t.Fatal("denied before")
	}
	unopened, second := h.session(t, 60)
	for _, g := range []*account.Grant{&session.Grant, &unopened.Grant} {
		if _, err := h.Table.DeleteGrant(t.Context(), g, &account.AuditEntry{}); err != nil {
			t.Fatal(err)
		}
	}
	refusedAs(t, h.open(second), 400, "invalid_grant")
	h.Pass(5 * time.Second)
	if p := h.principal(t, token.AccessToken); p != nil {
		t.Errorf("5 s later: %+v", p)
	}
}

func TestWhatOpensNoPortalSession(t *testing.T) {
	h := newGranting(t)
	_, late := h.session(t, 60)
	h.Pass(61 * time.Second)
	_, code := h.session(t, 60)
	granted := h.code(t)
	foreign := h.newClient(t, 600)
	for name, got := range map[string]answer{
		"after 60 s":                       h.open(late),
		"another code":                     h.open("ps_" + value.NewID().String() + "_" + strings.Repeat("x", 40)),
		"other digits":                     h.open(code[:len(code)-1] + "!"),
		"the code of an authorization":     h.open(granted),
		"it, with the prefix of a session": h.open("ps" + granted[2:]),
		"another application's client id":  h.openAs(foreign, code),
		"that of none":                     h.openAs(account.Application{ClientID: value.NewID()}, code),
		"as an authorization's code":       h.exchange(code),
		"it, with an authorization's name": h.exchange("ac" + code[2:]),
		"as a refresh token":               h.refresh("rt" + code[2:] + "_" + strings.Repeat("x", 40)),
	} {
		if got.Status != 400 || !strings.Contains(got.Body, `"error":"invalid_grant"`) {
			t.Errorf("%s: got %d %s", name, got.Status, got.Body)
		}
	}
	refusedAs(t, h.open(""), 400, "invalid_request")
	refusedAs(t, h.open(code, "client_secret", "wrong"), 401, "invalid_client")
	h.change(t, func(c *account.Client) { c.Application.Status = account.Suspended })
	refusedAs(t, h.open(code), 400, "unauthorized_client")
	h.change(t, func(c *account.Client) { c.Application.Status = account.Active })
	tokenIn(t, h.open(code)) // nothing of this has ended it
}
