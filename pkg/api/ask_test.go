package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
)

// weighing sums what requests weigh.
type weighing struct {
	allowAll
	weight *int
}

func (w weighing) Admit(ctx context.Context, weight int, of ...ratelimit.Subject) (ratelimit.Decision, error) {
	*w.weight += weight
	return w.allowAll.Admit(ctx, weight, of...)
}

func TestAPartIsCheckedAsARequestAndCountedOnce(t *testing.T) {
	parts := append(operations(), api.Operation{
		ID: "heavy", Method: "GET", Path: "/heavy", Access: api.Reader,
		Handle: func(r *api.Request) (*api.Response, error) {
			return api.Answer(widget{}, r.AdmitUnits(250))
		},
	})
	for path, want := range map[string]struct{ status, weight int }{
		"/api/widgets":   {200, 1},
		"/api/widgets/x": {400, 1}, // a check of parameters
		"/api/widgets?siteId=" + otherSite.String(): {403, 1},
		"/heavy":              {200, 3},
		"/developers/widgets": {405, 1}, // a part only reads
		"/nothing":            {404, 1},
		"/break":              {500, 1},
	} {
		t.Run(path, func(t *testing.T) {
			weight := 0
			var failed []string
			asking := api.Operation{
				ID: "ask", Method: "GET", Path: "/ask", Access: api.Reader, Parts: parts,
				Handle: func(r *api.Request) (*api.Response, error) {
					at, err := url.Parse(path)
					if err != nil {
						return nil, err
					}
					body, err := r.Ask(at.Path, at.Query())
					return &api.Response{JSON: jsontext.Value(body)}, err
				},
			}
			server := api.NewServer([]api.Operation{asking}, api.Config{
				Caller: func(*http.Request) api.Caller {
					p := auth.Principal{Kind: auth.KindUser, OrganizationID: organization, UserID: site, Scopes: auth.AllScopes(), RateLimit: 600}
					if path != "/heavy" {
						p.SiteIDs = append(p.SiteIDs, site)
					}
					return api.Caller{Principal: p, RequestID: "id"}
				},
				Limiter: weighing{allowAll{failed: &failed}, &weight}, Clock: clock, Logger: silent,
			})
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ask", nil))
			if w.Code != want.status || weight != want.weight {
				t.Errorf("got %d, weighs %d; want %d, %d", w.Code, weight, want.status, want.weight)
			}
		})
	}
}
