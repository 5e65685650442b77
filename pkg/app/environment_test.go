package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// code is what each function and method of the package names, by its name:
// functions that it calls, methods of d, and fields of d.Config or of cfg.
type code map[string]map[string]bool

func readCode(t *testing.T) code {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	c := code{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			declared, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			named := map[string]bool{}
			ast.Inspect(declared, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if called, ok := n.Fun.(*ast.Ident); ok {
						named[called.Name] = true
					}
				case *ast.SelectorExpr:
					base, _ := n.X.(*ast.Ident)
					inner, _ := n.X.(*ast.SelectorExpr)
					if base != nil && (base.Name == "d" || base.Name == "cfg") || inner != nil && inner.Sel.Name == "Config" {
						named[n.Sel.Name] = true
					}
				}
				return true
			})
			c[declared.Name.Name] = named
		}
	}
	return c
}

// reached is all that the named functions name, and those that these call.
func (c code) reached(names ...string) map[string]bool {
	found := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		for next := range c[name] {
			if !found[next] {
				found[next], names = true, append(names, next)
			}
		}
	}
	return found
}

// variables are those of the environment, by the field of the configuration
// that has them.
func variables() map[string]string {
	all := map[string]string{
		"ServiceKey": "SERVICE_KEY", "EndpointAttempts": "ENDPOINT_ATTEMPTS", "AllowPrivateTargets": "ALLOW_PRIVATE_TARGETS", "RefusedPorts": "REFUSED_PORTS",
		"OrganizationRateLimit": "ORGANIZATION_RATE_LIMIT",
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[app.Config]()) {
		if name := f.Tag.Get("env"); name != "" {
			all[f.Name] = name
		}
	}
	delete(all, "HS256Secret") // in clear, for local runs only
	return all
}

// TestAFunctionGetsTheVariablesThatItsCodeUsesAndNoOthers reads from the code
// which field of the configuration each function reaches.
func TestAFunctionGetsTheVariablesThatItsCodeUsesAndNoOthers(t *testing.T) {
	c := readCode(t)
	constructors := map[string]string{
		"authorizer": "Authorizer", "developers": "Developers", "webhooks": "Webhooks", "api": "API", "portal": "Portal", "receipts": "Receipts", "ingest": "Ingest",
		"dispatcher": "Dispatcher", "indexer": "Indexer", "worker": "Worker", "sweeper": "Sweeper",
	}
	for function, declared := range dynamotest.Model(t).Functions {
		t.Run(function, func(t *testing.T) {
			fields := c.reached(constructors[function], "NewDependencies", "newRecorder")
			want := map[string]bool{"AWS_ENDPOINT_URL_DYNAMODB": true}
			for field, variable := range variables() {
				if !fields[field] {
					continue
				}
				want[variable] = true
				if strings.HasSuffix(variable, "_QUEUE_URL") || strings.HasSuffix(variable, "_DLQ_URL") {
					want["AWS_ENDPOINT_URL_SQS"] = true
				}
			}
			if fields["EndpointAlertTopicARN"] {
				want["AWS_ENDPOINT_URL_SNS"] = true
			}
			if len(want) < 3 {
				t.Fatalf("found %v only: the code cannot be read", want)
			}
			for name := range declared.Environment {
				if !want[name] {
					t.Errorf("gets %s and does not use it", name)
				}
			}
			for name := range want {
				if _, has := declared.Environment[name]; !has {
					t.Errorf("uses %s and does not get it", name)
				}
			}
		})
	}
	if text, err := os.ReadFile("../../template.yaml"); err != nil || slices.ContainsFunc([]string{"JWT_HS256_SECRET:", "NoEcho"}, func(s string) bool { return strings.Contains(string(text), s) }) {
		t.Errorf("the template has a secret in clear, or cannot be read: %v", err)
	}
}
