package app_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
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

// BenchmarkAuthorizer measures the function on a real table. cpu-µs/op is the
// processor time of this process, without the table server's.
func BenchmarkAuthorizer(b *testing.B) {
	s := servicetest.New(b)
	users, err := issuer.New(issuer.Config{Issuer: accessIssuer, Audience: accessAudience, Clock: s.Time})
	if err != nil {
		b.Fatal(err)
	}
	keys, err := users.JWKS()
	if err != nil {
		b.Fatal(err)
	}
	jwks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys) }))
	defer jwks.Close()
	cfg := app.Config{JWTIssuer: accessIssuer, JWTAudience: accessAudience, JWKSURL: jwks.URL}
	base := app.NewDependencies(cfg, aws.Config{}, slog.New(slog.DiscardHandler), app.Endpoints{})
	base.Table, base.Clock = s.Table, s.Time
	authorize, err := app.Authorizer(b.Context(), base)
	if err != nil {
		b.Fatal(err)
	}
	name := "k"
	key, credential := account.NewKey(&account.Application{ID: s.App, OrganizationID: s.Org}, value.NewID(), account.CreateApiKeyDto{Name: &name}, s.Now())
	if err := s.Table.CreateKey(b.Context(), s.Org, key.APIKey, credential); err != nil {
		b.Fatal(err)
	}
	token, err := users.Sign(issuer.Grant{Subject: "u", OrganizationID: s.Org, Lifetime: 365 * 24 * time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name, header, text string
		pass               time.Duration // between two requests
	}{
		{"a key, read each time", "X-API-Key", key.Key, 5 * time.Second},
		{"a key, remembered", "X-API-Key", key.Key, 0},
		{"a user's token", "Authorization", "Bearer " + token, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			event := events.APIGatewayCustomAuthorizerRequestTypeRequest{
				MethodArn: "arn:aws:execute-api:local:000000000000:local/prod/GET/api/orders", Resource: "/api/orders",
				MultiValueHeaders: map[string][]string{"Host": {"api.example.com"}, c.header: {c.text}},
			}
			b.ReportAllocs()
			before := cputime.Used()
			for b.Loop() {
				s.Pass(c.pass)
				answer, err := authorize(b.Context(), event)
				if err != nil || answer.PolicyDocument.Statement[0].Effect != "Allow" {
					b.Fatalf("got %+v, %v", answer, err)
				}
			}
			b.ReportMetric(float64((cputime.Used()-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}
