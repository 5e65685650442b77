package app_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/docs/markdown"
	"github.com/commerce-integration/service/pkg/api/tools"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/gateway"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// gatewayService is the service behind the gateway, which keeps answers of the
// authorizers as API Gateway does, on a clock that the test moves.
type gatewayService struct {
	*servicetest.Service
	*httptest.Server
	client account.Application // with its secret
}

// dependenciesOf are those of functions whose table, queues and clock are the
// service's.
func dependenciesOf(s *servicetest.Service) *app.Dependencies {
	queues := s.Queues()
	cfg := app.Config{
		JWTIssuer: "https://issuer.example", JWTAudience: "commerce", HS256Secret: strings.Repeat("s", 32),
		OrganizationClaim: "organizationId", DefaultRole: "DEVELOPER",
		ServiceKey: make([]byte, sealed.KeySize), SigningSecrets: strings.Repeat("example", 9),
		RecordsQueueURL: queues.URL("RecordsQueue"), RecordsDLQURL: queues.URL("RecordsDLQ"), ImportsQueueURL: queues.URL("ImportsQueue"),
		DeliveriesQueueURL: queues.URL(servicetest.MainQueue), SlowDeliveriesQueueURL: queues.URL(servicetest.SlowQueue),
	}
	o := queues.Client.Options()
	base := app.NewDependencies(cfg, aws.Config{Region: o.Region, Credentials: o.Credentials, BaseEndpoint: o.BaseEndpoint}, s.Leaks.Logger())
	base.Table, base.Clock = s.Table, s.Time
	return base
}

// behindGateway serves the API's functions behind the gateway of the template.
func behindGateway(t *testing.T, s *servicetest.Service, base *app.Dependencies, model *template.Model, cfg *gateway.Config) *httptest.Server {
	t.Helper()
	handlers := map[string]lambda.Handler{}
	for _, name := range []string{"authorizer", "developers", "webhooks", "receipts", "api", "portal"} {
		handler, err := app.Functions(markdown.HTML, tools.Operation)[name](t.Context(), permitted(t, s, name, base))
		if err != nil {
			t.Fatal(err)
		}
		handlers[name] = lambda.NewHandler(handler)
	}
	server := httptest.NewServer(gateway.New(model, func(ctx context.Context, function string, payload []byte) ([]byte, error) {
		return handlers[function].Invoke(ctx, payload)
	}, cfg))
	t.Cleanup(server.Close)
	return server
}

func newGatewayService(t *testing.T) *gatewayService {
	t.Helper()
	return deployed(t, nil)
}

// deployed is the service as the template makes it with the parameters.
func deployed(t *testing.T, parameters map[string]string) *gatewayService {
	t.Helper()
	values := map[string]string{"JwtIssuer": "https://issuer.example", "JwtAudience": "commerce"}
	maps.Copy(values, parameters)
	model, err := template.Load(filepath.Join("..", "..", "template.yaml"), values)
	if err != nil {
		t.Fatal(err)
	}
	s := servicetest.New(t)
	base := dependenciesOf(s)
	environment := model.Functions["api"].Environment
	base.Config.BasePath, base.Config.AllowedOrigins = environment["BASE_PATH"], environment["ALLOWED_ORIGINS"]
	if base.Config.OrganizationRateLimit, err = strconv.Atoi(environment["ORGANIZATION_RATE_LIMIT"]); err != nil {
		t.Fatal(err)
	}
	settings := &gateway.Config{Clock: s.Time}
	if parameters["BasePath"] != "" {
		settings.BasePath = "/" + parameters["BasePath"]
	}
	w := &gatewayService{Service: s, Server: behindGateway(t, s, base, model, settings)}
	w.client = w.newClient(t, s.Org)
	return w
}

func (w *gatewayService) newClient(t *testing.T, org value.ID) account.Application {
	t.Helper()
	name := "machine"
	client := account.NewApplication(org, value.NewID(), account.CreateApplicationDto{Name: &name}, w.Now())
	if err := w.Table.CreateApplication(t.Context(), org, client, account.ReadScopes()); err != nil {
		t.Fatal(err)
	}
	return client
}

// grant sets what the client's tokens may do.
func (w *gatewayService) grant(t *testing.T, scopes ...string) {
	t.Helper()
	if _, err := w.Table.ChangeClient(t.Context(), w.Org, w.client.ID, func(c *account.Client) error { c.TokenScopes = scopes; return nil }); err != nil {
		t.Fatal(err)
	}
}

// status reads a path by a client that has a token.
func (w *gatewayService) status(t *testing.T, client *http.Client, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// TestASuspensionAndItsEndActOnTokensWithinFiveSeconds looks at every area, also
// where API Gateway keeps what the authorizer said.
func TestASuspensionAndItsEndActOnTokensWithinFiveSeconds(t *testing.T) {
	w := newGatewayService(t)
	w.grant(t, "orders:read", "webhooks:read")
	cfg := clientcredentials.Config{ClientID: w.client.ClientID.String(), ClientSecret: w.client.ClientSecret, TokenURL: w.URL + "/oauth/token"}
	client := cfg.Client(t.Context())
	check := func(when string, want map[string]int) {
		t.Helper()
		w.Pass(5*time.Second - time.Millisecond)
		for path, status := range want {
			before := len(w.Leaks.Log())
			if got := w.status(t, client, path); got != status {
				t.Errorf("%s: GET %s: got %d, want %d", when, path, got, status)
			}
			refused := 0
			if status == http.StatusUnauthorized {
				refused = 1
			}
			// The first request also gets the client its token.
			got := slices.DeleteFunc(trail(t, w.Leaks.Log()[before:]), func(e node) bool { return e["action"] == "application.tokenIssued" })
			if len(got) != refused {
				t.Errorf("%s: GET %s: the audit trail has %v, want %d refusals", when, path, got, refused)
			}
		}
	}
	change := func(status account.Status) {
		t.Helper()
		if _, err := w.Table.ChangeApplication(t.Context(), w.Org, w.client.ID, func(a *account.Application) (bool, error) {
			return a.SetStatus(status, w.Now()), nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	const read, manage, applications = "/api/me", "/developers/webhooks/endpoints", "/developers/applications"
	check("at first", map[string]int{read: 200, manage: 200, applications: 403})
	change(account.Suspended)
	check("suspended", map[string]int{read: 401, manage: 401, applications: 401})
	change(account.Active)
	check("active again", map[string]int{read: 200, manage: 200, applications: 403})
	w.grant(t, "orders:read")
	check("a scope taken away", map[string]int{read: 200, manage: 403})
	if _, err := w.Table.DeleteApplication(t.Context(), w.Org, w.client.ID, func(*account.Application) error { return nil }); err != nil {
		t.Fatal(err)
	}
	check("deleted", map[string]int{read: 401, manage: 401, applications: 401})
}

func TestNoHeaderOfAClientChangesTheSchemeOfAnIssuer(t *testing.T) {
	developers, err := app.Functions(markdown.HTML, tools.Operation)["developers"](t.Context(), dependenciesOf(servicetest.New(t)))
	if err != nil {
		t.Fatal(err)
	}
	for proto, want := range map[string]string{"https": "https", "http": "http", "": "https", "javascript:alert(1)//": "https"} {
		event, err := json.Marshal(events.APIGatewayProxyRequest{
			HTTPMethod: http.MethodGet, Path: "/.well-known/oauth-authorization-server",
			Headers: map[string]string{"Host": "api.example.com", "X-Forwarded-Proto": proto},
		})
		if err != nil {
			t.Fatal(err)
		}
		body, err := lambda.NewHandler(developers).Invoke(t.Context(), event)
		if issuer := `{\"issuer\":\"` + want + `://api.example.com\"`; err != nil || !strings.Contains(string(body), issuer) {
			t.Errorf("X-Forwarded-Proto %q: got %s, %v, want %s", proto, body, err, issuer)
		}
	}
}
