package openapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/openapi"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
)

type Part struct {
	Ended *value.Time `json:"ended"`
}

type Whole struct {
	Part

	Name string `json:"name"`
}

// document is as much of an OpenAPI document as the tests look at.
type document struct {
	Paths map[string]map[string]struct {
		Deprecated  bool   `json:"deprecated"`
		Description string `json:"description"`
		Responses   map[string]struct {
			Headers map[string]any `json:"headers"`
			Content map[string]any `json:"content"`
		} `json:"responses"`
	} `json:"paths"`
	Components struct {
		Responses map[string]struct {
			Description string         `json:"description"`
			Headers     map[string]any `json:"headers"`
		} `json:"responses"`
		Schemas map[string]struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		} `json:"schemas"`
	} `json:"components"`
}

func build(t *testing.T, operations ...api.Operation) (d document) {
	t.Helper()
	raw, err := openapi.Build(operations, openapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return d
}

func TestAPointerInAnEmbeddedStructMayBeNull(t *testing.T) {
	d := build(t, api.Operation{ID: "read", Method: http.MethodGet, Path: "/wholes", Status: http.StatusOK, Result: Whole{}})
	got := d.Components.Schemas["Whole"].Properties["ended"].Type
	if diff := cmp.Diff([]any{"string", "null"}, got); diff != "" {
		t.Errorf("type of a promoted *value.Time (-want +got):\n%s", diff)
	}
}

func TestADeprecatedOperationIsMarked(t *testing.T) {
	d := build(t,
		api.Operation{ID: "show", Method: http.MethodGet, Path: "/page"},
		api.Operation{
			ID: "read", Method: http.MethodGet, Path: "/wholes", Description: "Reads.", Result: Whole{},
			Deprecated: api.MustDeprecate("2026-12-01", "2027-12-01", "https://example.com/changes"),
		})
	got := d.Paths["/wholes"]["get"]
	want := "Reads.\n\nDeprecated since 2026-12-01; it may be gone from 2027-12-01 on: see https://example.com/changes."
	if !got.Deprecated || got.Description != want {
		t.Errorf("deprecated %v: %q, want %q", got.Deprecated, got.Description, want)
	}
	for _, name := range []string{"Deprecation", "Sunset", "Link"} {
		if got.Responses["200"].Headers[name] == nil {
			t.Errorf("the header %s is not declared", name)
		}
	}
	if other := d.Paths["/page"]["get"]; other.Deprecated || other.Responses["200"].Headers["Sunset"] != nil {
		t.Errorf("another operation: %+v, want it unmarked", other)
	}
}

func TestEveryAnswerOfAnOperationIsDocumented(t *testing.T) {
	list := &lists.List{Name: "wholes", Orders: []lists.Order{lists.By("createdAt")}}
	d := build(t,
		api.Operation{ID: "list", Method: http.MethodGet, Path: "/wholes", Access: api.Reader, Status: http.StatusOK, Result: Whole{}, List: list},
		api.Operation{ID: "make", Method: http.MethodPost, Path: "/wholes", Access: api.Developer, Status: http.StatusCreated, Body: Whole{}, Result: Whole{}},
		api.Operation{ID: "start", Method: http.MethodPost, Path: "/wholes/{id}/start", Access: api.Developer, Status: http.StatusAccepted, Result: Whole{}, Errors: []int{http.StatusConflict}},
		api.Operation{ID: "change", Method: http.MethodPatch, Path: "/wholes/{id}", Access: api.Developer, Status: http.StatusOK, Body: Whole{}, Result: Whole{}, Tagged: true},
		api.Operation{ID: "show", Method: http.MethodGet, Path: "/page", Status: http.StatusOK, MediaType: "text/html"},
		api.Operation{ID: "status", Method: http.MethodGet, Path: "/status", Status: http.StatusOK, Result: Whole{}},
	)
	const limit, remaining, reset, id = "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id"
	for _, test := range []struct {
		path, method, success string
		statuses, headers     []string
	}{
		{"/wholes", "get", "200", []string{"200", "304", "400", "401", "403", "406", "429", "500", "503", "504"}, []string{"ETag", "Link", limit, remaining, reset, id}},
		{"/wholes", "post", "201", []string{"201", "400", "401", "403", "406", "409", "413", "415", "422", "429", "500", "503", "504"}, []string{"Idempotency-Replayed", "Location", limit, remaining, reset, id}},
		{"/wholes/{id}/start", "post", "202", []string{"202", "400", "401", "403", "404", "406", "409", "413", "415", "422", "429", "500", "503", "504"}, []string{"Idempotency-Replayed", "Location", limit, remaining, reset, id}},
		{"/wholes/{id}", "patch", "200", []string{"200", "400", "401", "403", "404", "406", "412", "413", "415", "429", "500", "503", "504"}, []string{"ETag", limit, remaining, reset, id}},
		{"/page", "get", "200", nil, nil},
		{"/status", "get", "200", []string{"200", "304", "400", "406", "429", "500"}, []string{"ETag", id}},
	} {
		t.Run(fmt.Sprintf("%v_%v", test.path, test.method), func(t *testing.T) {
			responses := d.Paths[test.path][test.method].Responses
			if diff := cmp.Diff(test.statuses, slices.Sorted(maps.Keys(responses))); diff != "" {
				t.Errorf("%s %s: statuses (-want +got):\n%s", test.method, test.path, diff)
			}
			if diff := cmp.Diff(test.headers, slices.Sorted(maps.Keys(responses[test.success].Headers))); diff != "" {
				t.Errorf("%s %s: headers of %s (-want +got):\n%s", test.method, test.path, test.success, diff)
			}
		})
	}
	for _, response := range []string{"TooManyRequests", "ServiceUnavailable"} {
		if d.Components.Responses[response].Headers["Retry-After"] == nil {
			t.Errorf("%s without Retry-After", response)
		}
	}
	for name, response := range d.Components.Responses {
		if response.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
}
