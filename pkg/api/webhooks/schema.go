package webhooks

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// schema is a JSON Schema (2020-12).
type schema map[string]any

// payloadSchema describes the payload of a type whose object is like the
// given value. Enumerations are open, as everywhere: their known values are
// an annotation and no constraint.
func payloadSchema(eventType string, object any) schema {
	return closed(schema{
		"id": schema{"type": "string", "format": "uuid"}, "type": schema{"const": eventType},
		"apiVersion":     schema{"const": commerce.APIVersion},
		"timestamp":      schemaOf(reflect.TypeFor[value.Time]()),
		"organizationId": schemaOf(reflect.TypeFor[value.ID]()),
		"siteId":         schemaOf(reflect.TypeFor[*value.ID]()),
		"data": closed(schema{
			"object": schemaOf(reflect.TypeOf(object)), "previousAttributes": schema{"type": []string{"object", "null"}},
		}),
	}).with("$schema", "https://json-schema.org/draft/2020-12/schema")
}

// closed is an object all of whose members are present.
func closed(properties schema) schema {
	required := make([]string, 0, len(properties))
	for name := range properties {
		required = append(required, name)
	}
	slices.Sort(required)
	return schema{"type": "object", "properties": properties, "required": required}
}

func (s schema) with(name string, v any) schema {
	copied := maps.Clone(s)
	copied[name] = v
	return copied
}

// enumeration is a type that lists its values.
type enumeration interface{ Values() []string }

// schemaOf describes a type as its JSON is written.
func schemaOf(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[value.ID]():
		return schema{"type": "string", "format": "uuid"}
	case reflect.TypeFor[value.Time]():
		return schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[value.Amount]():
		return schema{"type": "number"}
	case reflect.TypeFor[jsontext.Value]():
		return schema{"type": "object"}
	}
	if e, ok := reflect.Zero(t).Interface().(enumeration); ok && t.Kind() == reflect.String {
		return schema{"type": "string", "x-extensible-enum": e.Values()}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(schemaOf(t.Elem()))
	case reflect.Slice:
		return schema{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		return structSchema(t)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.String:
		return schema{"type": "string"}
	default:
		return schema{}
	}
}

func nullable(s schema) schema { return s.with("type", []any{s["type"], "null"}) }

func structSchema(t reflect.Type) schema {
	properties := schema{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		properties[name] = schemaOf(t.Field(i).Type)
	}
	return closed(properties)
}
