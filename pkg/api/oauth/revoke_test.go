package oauth_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/oauth"
)

// revoke asks to revoke a token, with the client's secret unless that is "".
func (h *harness) revoke(client *account.Application, secret, token string) answer {
	pairs := url.Values{"client_id": {client.ClientID.String()}, "client_secret": {secret}, "token": {token}, "token_type_hint": {"x"}}
	return h.do("POST", "/oauth/revoke", pairs.Encode(), "Content-Type", form)
}

// left is how many grants the client has.
func (h *harness) left(t testing.TB) int {
	t.Helper()
	grants, err := h.Table.Grants(t.Context(), h.Org, h.client.ID)
	if err != nil {
		t.Fatal(err)
	}
	return len(grants)
}

// ended is the answer where there is nothing to end, too.
func ended(t testing.TB, got answer) {
	t.Helper()
	if got.Status != 200 || got.Body != "" || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %q %v, want 200 and nothing", got.Status, got.Body, got.Header)
	}
}

func TestAClientEndsAGrantByEachTokenOfIt(t *testing.T) {
	h := newGranting(t)
	for name, of := range map[string]func(first, second oauth.Token) string{
		"a refresh token":       func(_, second oauth.Token) string { return second.RefreshToken },
		"an old refresh token":  func(first, _ oauth.Token) string { return first.RefreshToken },
		"an access token":       func(_, second oauth.Token) string { return second.AccessToken },
		"an older access token": func(first, _ oauth.Token) string { return first.AccessToken },
	} {
		t.Run(name, func(t *testing.T) {
			first := tokenIn(t, h.exchange(h.code(t)))
			second := tokenIn(t, h.refresh(first.RefreshToken))
			token := of(first, second)
			ended(t, h.revoke(&h.client, h.client.ClientSecret, token))
			ended(t, h.revoke(&h.client, h.client.ClientSecret, token))
			refusedAs(t, h.refresh(second.RefreshToken), 400, "invalid_grant")
			h.Pass(5 * time.Second)
			if h.left(t) != 0 || h.principal(t, second.AccessToken) != nil {
				t.Errorf("%d grants are left, and the access token works: %t", h.left(t), h.principal(t, second.AccessToken) != nil)
			}
		})
	}
}

func TestWhatIsNoTokenOfTheClientsEndsNothing(t *testing.T) {
	h := newGranting(t)
	other := h.newClient(t, 600)
	code := h.code(t)
	ended(t, h.revoke(&h.client, h.client.ClientSecret, "rt"+code[2:]+"_x")) // made up of a code, before there is a refresh token
	token := tokenIn(t, h.exchange(code))
	for _, text := range []string{token.RefreshToken, token.AccessToken} {
		ended(t, h.revoke(&other, other.ClientSecret, text))
		refusedAs(t, h.revoke(&h.client, "cs_wrong", text), 401, "invalid_client")
		refusedAs(t, h.revoke(&h.client, "", text), 401, "invalid_client")
	}
	forged := token.AccessToken[:len(token.AccessToken)-8] + "AAAAAAAA"
	for _, text := range []string{"x", code, forged, strings.Repeat("_", 4), "rt_" + strings.Repeat("x", 90)} {
		ended(t, h.revoke(&h.client, h.client.ClientSecret, text))
	}
	refusedAs(t, h.revoke(&h.client, h.client.ClientSecret, ""), 400, "invalid_request")
	own := tokenIn(t, h.with(h.client))
	refusedAs(t, h.revoke(&h.client, h.client.ClientSecret, own.AccessToken), 400, "unsupported_token_type")
	if h.left(t) != 1 || h.principal(t, token.AccessToken) == nil {
		t.Errorf("%d grants are left, want one that works", h.left(t))
	}
	h.Suspend(t, h.client.ID)
	refusedAs(t, h.revoke(&h.client, h.client.ClientSecret, token.RefreshToken), 400, "unauthorized_client")
}

func TestAPublicClientRevokesWithoutASecretAndGuessesApart(t *testing.T) {
	h := newGranting(t)
	h.change(t, func(c *account.Client) { c.Public = true })
	id := h.client.ClientID.String()
	token := tokenIn(t, h.ask("grant_type", "authorization_code", "client_id", id, "code", h.code(t), "code_verifier", verifier, "redirect_uri", callback))
	for range 60 {
		ended(t, h.revoke(&h.client, "", "rt_x"))
	}
	refusedAs(t, h.revoke(&h.client, "", "rt_x"), 429, "temporarily_unavailable")
	got := h.revoke(&h.client, "", token.RefreshToken)
	if ended(t, got); h.left(t) != 0 || got.Header.Get("X-RateLimit-Remaining") < "590" {
		t.Errorf("a genuine one among guesses: %d grants are left, %v", h.left(t), got.Header)
	}
}
