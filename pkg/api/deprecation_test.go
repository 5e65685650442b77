package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/lists"
)

const successor = "https://example.com/changes#widgets"

func TestEveryAnswerOfADeprecatedOperationTellsItsEnd(t *testing.T) {
	deprecated := &api.Deprecation{Since: time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC), Link: successor}
	list := &lists.List{Name: "widgets", Orders: []lists.Order{lists.ByText("name")}}
	served := []api.Operation{
		{
			ID: "list", Method: "GET", Path: "/api/widgets", Access: api.Reader, Scope: auth.ProductsRead, List: list, Deprecated: deprecated,
			Handle: func(r *api.Request) (*api.Response, error) { return api.AnswerPage(r, []widget{}, 0, nil) },
		},
		{
			ID: "read", Method: "GET", Path: "/api/widgets/{id}", Access: api.Reader, Scope: auth.ProductsRead,
			Handle: func(*api.Request) (*api.Response, error) { return api.OK(widget{}) },
		},
	}
	for _, tt := range []struct {
		name, target string
		p            *auth.Principal
		status       int
		told         bool
	}{
		{"a success", "/api/widgets", ptr(apiKey()), http.StatusOK, true},
		{"a refusal", "/api/widgets?limit=0", ptr(apiKey()), http.StatusBadRequest, true},
		{"no credentials", "/api/widgets", nil, http.StatusUnauthorized, true},
		{"another operation", "/api/widgets/" + site.String(), ptr(apiKey()), http.StatusOK, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			api.NewServer(served, config(tt.p, allowAll{})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, tt.target, nil))
			if w.Code != tt.status {
				t.Fatalf("got %d %s, want %d", w.Code, w.Body, tt.status)
			}
			deprecation, sunset := "", ""
			if tt.told {
				deprecation, sunset = "@1796083200", "Wed, 01 Dec 2027 00:00:00 GMT"
			}
			if got := w.Header().Get("Deprecation"); got != deprecation {
				t.Errorf("Deprecation: got %q, want %q", got, deprecation)
			}
			if got := w.Header().Get("Sunset"); got != sunset {
				t.Errorf("Sunset: got %q, want %q", got, sunset)
			}
			links := w.Header().Values("Link")
			if got := slices.Contains(links, "<"+successor+`>; rel="deprecation"; type="text/html"`); got != tt.told {
				t.Errorf("Link: got %q, want the deprecation among them: %v", links, tt.told)
			}
			if tt.name == "a success" && len(links) != 2 {
				t.Errorf("Link: got %q, want those of the pages too", links)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }
