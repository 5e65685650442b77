package api_test

import (
	"context"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/auth/ratelimit"
)

// admissions is a limiter that records the weight and the subjects of each call.
type admissions struct {
	allowAll
	most    int // the weight that is admitted; 0: any
	weights []int
	of      []ratelimit.Subject
}

func (a *admissions) Admit(ctx context.Context, weight int, of ...ratelimit.Subject) (ratelimit.Decision, error) {
	a.weights, a.of = append(a.weights, weight), of
	a.refuse = a.most > 0 && weight > a.most
	return a.allowAll.Admit(ctx, weight, of...)
}

func TestARequestCountsAgainstItsPrincipalAndItsOrganization(t *testing.T) {
	key, person := apiKey(), user()
	for _, row := range []struct {
		name       string
		principal  auth.Principal
		configured int
		want       int
	}{
		{"the default", key, 0, 6000},
		{"an operator's limit", key, 7, 7},
		{"a user", person, 7, 7},
	} {
		t.Run(row.name, func(t *testing.T) {
			counted := &admissions{}
			cfg := config(&row.principal, counted)
			cfg.OrganizationLimit = row.configured
			api.NewServer(operations(), cfg).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/api/widgets", nil))
			want := []ratelimit.Subject{
				{ID: row.principal.Subject(), Limit: 600}, {ID: organization.String() + "#organization", Limit: row.want},
			}
			if !slices.Equal(counted.of, want) || !slices.Equal(counted.weights, []int{1}) {
				t.Errorf("got %v weighing %v, want %v weighing 1", counted.of, counted.weights, want)
			}
		})
	}
}

func TestAListWeighsByItsReadUnits(t *testing.T) {
	for _, row := range []struct {
		name      string
		units     []int // of each query of the request
		rateLimit int
		want      []int
	}{
		{"none", []int{0}, 600, []int{1}},
		{"100", []int{100}, 600, []int{1}},
		{"101", []int{101}, 600, []int{1, 1}},
		{"200", []int{200}, 600, []int{1, 1}},
		{"201", []int{201}, 600, []int{1, 2}},
		{"the same query again", []int{201, 201, 100}, 600, []int{1, 2}},
		{"more than the limit", []int{5000}, 20, []int{1, 19}},
		{"more than a limit of one", []int{5000}, 1, []int{1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			counted, p := &admissions{}, apiKey()
			p.RateLimit = row.rateLimit
			api.NewServer(listOf(row.units...), config(&p, counted)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/list", nil))
			if !slices.Equal(counted.weights, row.want) {
				t.Errorf("got %v, want %v", counted.weights, row.want)
			}
		})
	}
}

// listOf is a list whose queries take so many read units.
func listOf(units ...int) []api.Operation {
	return []api.Operation{{ID: "list", Method: "GET", Path: "/list", Access: api.Reader, Status: 200, Handle: func(r *api.Request) (*api.Response, error) {
		for _, n := range units {
			if err := r.AdmitUnits(n); err != nil {
				return nil, err
			}
		}
		return api.OK(widget{})
	}}}
}

func TestAListThatWeighsTooMuchIsRefusedAndIsNoClientError(t *testing.T) {
	p, failed := apiKey(), []string{}
	counted := &admissions{allowAll: allowAll{failed: &failed}, most: 1}
	answer := httptest.NewRecorder()
	api.NewServer(listOf(300), config(&p, counted)).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/list", nil))
	if answer.Code != 429 || answer.Header().Get("Retry-After") != "2" || len(failed) > 0 {
		t.Errorf("got %d %v, client errors of %v; want 429 with Retry-After 2 and none", answer.Code, answer.Header(), failed)
	}
}
