package webhook_test

import (
	"net/http"
	"testing"

	"github.com/commerce-integration/service/pkg/webhook"
)

// A session that a receiver opens for the endpoint's own credential is as secret as that.
func TestNoAttemptKeepsACookie(t *testing.T) {
	x := webhook.Exchange{URL: "https://a.example/", OwnHeaders: []string{"Authorization"}, Status: 200, Header: http.Header{"Set-Cookie": {"session=s3cr3t; HttpOnly"}}}
	if got := x.Keep(now, 0).ResponseHeaders["Set-Cookie"]; got != "" && got != "****" {
		t.Errorf("kept %q", got)
	}
}
