package oauth_test

import (
	"testing"

	"github.com/commerce-integration/service/pkg/account"
)

// The user decides on the redirect URI that was shown: a request has to name it.
func TestACodeGoesOnlyWhereTheUserSawThatItGoes(t *testing.T) {
	h := newGranting(t)
	if got, _ := h.authorize(t, h.asked("redirect_uri", ""), nil); got.Status != 400 {
		t.Errorf("without redirect_uri: got %d, want 400", got.Status)
	}
	request := h.asked()
	_, shown := h.authorize(t, request, nil)
	if shown.RedirectURI != callback {
		t.Fatalf("shown: %s", shown.RedirectURI)
	}
	h.change(t, func(c *account.Client) { c.Application.RedirectURI = new("https://elsewhere.example.com/") })
	got, decided := h.authorize(t, request, shown.Scopes)
	if decided.RedirectTo != nil {
		t.Errorf("the user saw %s and was sent to %s (%d)", shown.RedirectURI, *decided.RedirectTo, got.Status)
	}
}

// A refresh token that a client got with its secret is worth nothing without it.
func TestARefreshTokenOfAConfidentialClientIsNoneOfAPublicOne(t *testing.T) {
	h := newGranting(t)
	token := tokenIn(t, h.exchange(h.code(t)))
	h.change(t, func(c *account.Client) { c.Public = true })
	refusedAs(t, h.ask("grant_type", "refresh_token", "client_id", h.client.ClientID.String(), "refresh_token", token.RefreshToken), 400, "invalid_grant")
}

// Nobody knows a refresh token of the family yet: what looks like one was made up of the code.
func TestWhoHasACodeAloneDoesNotEndTheGrant(t *testing.T) {
	h := newGranting(t)
	h.change(t, func(c *account.Client) { c.Public = true })
	code := h.code(t)
	h.ask("grant_type", "refresh_token", "client_id", h.client.ClientID.String(), "refresh_token", "rt"+code[2:]+"_x")
	got := h.ask("grant_type", "authorization_code", "client_id", h.client.ClientID.String(), "code", code, "code_verifier", verifier, "redirect_uri", callback)
	if got.Status != 200 {
		t.Errorf("the code of the user: got %d %s", got.Status, got.Body)
	}
}
