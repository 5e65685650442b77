package app_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/openapi"
	"github.com/commerce-integration/service/pkg/rest"
)

var update = flag.Bool("update", false, "rewrite the OpenAPI document")

func TestTheOpenAPIDocumentIsWhatTheOperationsDeclare(t *testing.T) {
	golden := filepath.Join("..", "rest", "about", "openapi.json")
	got, err := openapi.Build(app.Operations())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil { //nolint:gosec // a public document
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not current: go test ./pkg/app -run OpenAPI -update", golden)
	}
}

// authorizers are the template's names for the kinds of access.
var authorizers = map[rest.Access]string{rest.Public: "", rest.Developer: "JwtOnly", rest.Reader: "Any"}

func TestTheTemplateDeclaresExactlyTheRoutesInCode(t *testing.T) {
	type target struct{ function, authorizer string }
	declared := map[string]target{}
	for _, r := range dynamotest.Model(t).API.Routes {
		if r.Method != template.AnyMethod {
			declared[r.Method+" "+r.Path] = target{r.Function, r.Authorizer}
		}
	}
	wanted := map[string]target{}
	for function, operations := range app.Areas() {
		for _, op := range operations {
			path := strings.Replace(op.Path, "{file}", "{proxy+}", 1)
			wanted[op.Method+" "+path] = target{function, authorizers[op.Access]}
			if op.Method == "GET" {
				wanted["HEAD "+path] = target{function, authorizers[op.Access]}
			}
		}
	}
	for route, want := range wanted {
		if got, ok := declared[route]; !ok || got != want {
			t.Errorf("%s: the template has %+v, the code %+v", route, got, want)
		}
	}
	for route := range declared {
		if _, ok := wanted[route]; !ok {
			t.Errorf("%s: only in the template", route)
		}
	}
}

func TestEveryPathLeadsItsOtherMethodsToTheFunctionThatHasIt(t *testing.T) {
	functions := map[string]string{}
	for _, r := range dynamotest.Model(t).API.Routes {
		if r.Method == template.AnyMethod {
			functions[r.Path] = r.Function
			if r.Authorizer != "" {
				t.Errorf("ANY %s: authorizer %s, want none: it leads to a 404 or 405 only", r.Path, r.Authorizer)
			}
		}
	}
	for function, operations := range app.Areas() {
		for _, op := range operations {
			path := strings.Replace(op.Path, "{file}", "{proxy+}", 1)
			if functions[path] != function {
				t.Errorf("ANY %s: function %q, want %q", path, functions[path], function)
			}
		}
	}
	for _, path := range []string{"/", "/{proxy+}"} {
		if functions[path] != "api" {
			t.Errorf("ANY %s: function %q, want api", path, functions[path])
		}
	}
}

func TestEveryFunctionOfTheTemplateExists(t *testing.T) {
	want := slices.Sorted(maps.Keys(dynamotest.Model(t).Functions))
	if got := slices.Sorted(maps.Keys(app.Makers())); !slices.Equal(got, want) {
		t.Errorf("makers %v, the template's functions %v", got, want)
	}
	for _, name := range want {
		if _, err := os.Stat(filepath.Join("..", "..", "functions", name, "main.go")); err != nil {
			t.Errorf("function %s has no main: %v", name, err)
		}
	}
}
