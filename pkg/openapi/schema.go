package openapi

import (
	"reflect"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/value"
)

// schema returns the schema of a value's type; a value that is a schema
// itself stands for itself.
func (b *builder) schema(v any) *huma.Schema {
	if s, ok := v.(*huma.Schema); ok {
		return s
	}
	return b.registry.Schema(reflect.TypeOf(v), true, "")
}

func newRegistry() huma.Registry {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	alias := func(t, as reflect.Type) { registry.RegisterTypeAlias(t, as) }
	alias(reflect.TypeFor[value.ID](), reflect.TypeFor[idSchema]())
	alias(reflect.TypeFor[value.Time](), reflect.TypeFor[timeSchema]())
	alias(reflect.TypeFor[value.Amount](), reflect.TypeFor[amountSchema]())
	alias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[objectSchema]())
	return registry
}

// schemaName is the type's name; a generic type's arguments precede it:
// Page[commerce.Product] is ProductPage.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if base, args, generic := strings.Cut(t.Name(), "["); generic {
		arg := strings.TrimSuffix(args, "]")
		name = arg[strings.LastIndexByte(arg, '.')+1:] + base
	}
	r := []rune(name)
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

type (
	idSchema     string
	timeSchema   string
	amountSchema float64
	objectSchema map[string]any
)

func (idSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "uuid"}
}

func (timeSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2026-11-21T06:35:41.242Z"}}
}

func (amountSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Description: "An exact decimal with at most four decimals."}
}

func (objectSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}
