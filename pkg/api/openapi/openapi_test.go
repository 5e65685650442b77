package openapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/openapi"
	"github.com/commerce-integration/service/pkg/base/value"
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
	raw, _, err := openapi.Build(operations, openapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return d
}

func TestADeprecatedOperationIsMarked(t *testing.T) {
	d := build(t,
		api.Operation{ID: "show", Method: http.MethodGet, Path: "/page"},
		api.Operation{
			ID: "read", Method: http.MethodGet, Path: "/wholes", Description: "Reads.", Result: Whole{},
			Deprecated: &api.Deprecation{Since: time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC), Link: "https://example.com/changes"},
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
