package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/commerce"
)

// goldenDocument is the OpenAPI document as clients read it.
var goldenDocument = filepath.Join("..", "api", "docs", "openapi.json")

// node is an object of the OpenAPI document.
type node = map[string]any

func document(t testing.TB) (whole node) {
	t.Helper()
	raw, err := os.ReadFile(goldenDocument)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		t.Fatal(err)
	}
	return whole
}

func TestTheOpenAPIDocumentDescribesEverythingInIt(t *testing.T) {
	var undescribed []string
	seen := 0
	describe(document(t), "", func(path string, thing node) {
		seen++
		if _, refers := thing["$ref"]; !refers && thing["description"] == nil {
			undescribed = append(undescribed, path)
		}
	})
	if slices.Sort(undescribed); len(undescribed) > 0 {
		t.Errorf("%d things have no description:\n%s", len(undescribed), strings.Join(undescribed, "\n"))
	}
	if seen < 1000 {
		t.Errorf("looked at %d things that need a description, want the whole document", seen)
	}
}

// describe gives visit every property of a schema, every parameter, every
// header, every response and every tag, with its place in the document.
func describe(at node, path string, visit func(path string, thing node)) {
	for name, child := range at {
		here := path + "/" + name
		switch child := child.(type) {
		case node:
			switch name {
			case "example":
				continue
			case "properties": // whose names are no keywords
				for entry, thing := range child {
					visit(here+"/"+entry, thing.(node))
					describe(thing.(node), here+"/"+entry, visit)
				}
				continue
			case "headers", "responses":
				for entry, thing := range child {
					visit(here+"/"+entry, thing.(node))
				}
			}
			describe(child, here, visit)
		case []any:
			for _, entry := range child {
				thing, ok := entry.(node)
				if !ok {
					continue
				}
				if name == "parameters" || name == "tags" {
					visit(here+"/"+thing["name"].(string), thing)
				}
				describe(thing, here, visit)
			}
		}
	}
}

func TestTheExamplesInTheOpenAPIDocumentAreOfTheirSchemas(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	whole := document(t)
	if err := compiler.AddResource(goldenDocument, whole); err != nil {
		t.Fatal(err)
	}
	seen := 0
	eachExample(whole, "", func(path string, example any) {
		schema, err := compiler.Compile(goldenDocument + "#" + path + "/schema")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		seen++
		if err := schema.Validate(example); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	})
	if seen < len(commerce.EventNames())+len(app.Operations()) {
		t.Errorf("the document has %d examples, want one for every event and every operation", seen)
	}
}

// eachExample gives visit every example, with the place of the media type that
// has it, as a JSON pointer in a URL.
func eachExample(at any, path string, visit func(path string, example any)) {
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	switch at := at.(type) {
	case []any:
		for i, child := range at {
			eachExample(child, path+"/"+strconv.Itoa(i), visit)
		}
	case node:
		example, shown := at["example"]
		if shown && at["schema"] != nil {
			visit(path, example)
			return
		}
		for name, child := range at {
			eachExample(child, path+"/"+escape.Replace(name), visit)
		}
	}
}
