package openapi

import (
	"cmp"
	"reflect"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	schemaPrefix = "#/components/schemas/"
	// openEnum lists the known values of an enumeration that may get others.
	openEnum = "x-extensible-enum"
)

// schema returns the schema of a value's type.
func (b *builder) schema(v any) *huma.Schema {
	t := reflect.TypeOf(v)
	s := b.registry.Schema(t, true, "")
	b.refine(t)
	return s
}

// bodySchema is the schema of a body's type. A body with other fields is
// refused unless it is open; an answer may get more of them, so its schema stays open.
func (b *builder) bodySchema(v any, open bool) *huma.Schema {
	s := b.schema(v)
	if !open {
		b.registry.SchemaFromRef(s.Ref).AdditionalProperties = false
	}
	return s
}

// enumeration is a type that lists its values. They are written as an open
// enumeration: later versions may answer others.
type enumeration interface{ Values() []string }

// refine completes the schemas of a struct and of the structs in it: the library
// does not know enumerations, nor that a pointer may be null.
func (b *builder) refine(t reflect.Type) {
	t = elem(t)
	if t.Kind() != reflect.Struct || b.refined[t] || t.PkgPath() == "" {
		return
	}
	b.refined[t] = true
	s := b.registry.SchemaFromRef(b.registry.Schema(t, true, "").Ref)
	if s == nil {
		return
	}
	s.AdditionalProperties = nil
	for _, field := range reflect.VisibleFields(t) { // of embedded structs, too
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		property, t := s.Properties[name], patched(field.Type)
		if property == nil {
			continue
		}
		if e, ok := reflect.New(elem(t)).Elem().Interface().(enumeration); ok {
			at := property
			if property.Items != nil {
				at = property.Items
			}
			at.Extensions = map[string]any{openEnum: e.Values()}
		}
		b.refine(t)
		if t.Kind() == reflect.Pointer && field.Tag.Get("nullable") != "false" {
			property = nullable(property)
			s.Properties[name] = property
		}
		property.Description = cmp.Or(scopeNames.Replace(field.Tag.Get("doc")), property.Description, common(name))
	}
}

// scopeNames puts the scopes into the descriptions that name them all.
var scopeNames = strings.NewReplacer(
	"{readScopes}", strings.Join(account.ReadScopes(), ", "), "{tokenScopes}", strings.Join(account.TokenScopes(), ", "))

// common describes the fields that mean the same in every shape.
func common(name string) string {
	return map[string]string{
		"id":             "Its id.",
		"organizationId": "The organization that it belongs to.",
		"userId":         "The user who created it.",
		"createdAt":      "When it was created.",
		"updatedAt":      "When it was last changed; it rises with every change.",
	}[name]
}

// patched is what a field of an update takes, as a pointer: its type has a method that
// returns that. Of any other type it is the type itself.
func patched(t reflect.Type) reflect.Type {
	if m, is := reflect.PointerTo(t).MethodByName("Pointer"); is {
		return m.Type.Out(0)
	}
	return t
}

// elem is what a pointer points to and a slice holds.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && t != reflect.TypeFor[jsontext.Value]() {
		t = t.Elem()
	}
	return t
}

// nullable is the schema that also takes null.
func nullable(s *huma.Schema) *huma.Schema {
	if s.Ref != "" {
		return &huma.Schema{OneOf: []*huma.Schema{s, {Type: "null"}}}
	}
	copied := *s
	copied.Nullable = true
	return &copied
}

func newRegistry() huma.Registry {
	registry := huma.NewMapRegistry(schemaPrefix, schemaName)
	registry.RegisterTypeAlias(reflect.TypeFor[value.ID](), reflect.TypeFor[idSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[value.Time](), reflect.TypeFor[timeSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[value.Amount](), reflect.TypeFor[amountSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[jsontext.Value](), reflect.TypeFor[objectSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[commerce.Sites](), reflect.TypeFor[[]idSchema]())
	registry.RegisterTypeAlias(reflect.TypeFor[commerce.Reference](), reflect.TypeFor[*string]())
	for _, t := range []reflect.Type{
		reflect.TypeFor[account.Patch[string]](), reflect.TypeFor[account.Patch[[]string]](), reflect.TypeFor[account.Patch[webhook.Status]](),
	} {
		registry.RegisterTypeAlias(t, patched(t))
	}
	return registry
}

// published are the names of resources where they differ from the code's.
func published() map[string]string {
	return map[string]string{
		"APIKey": "ApiKey", "CreatedKey": "CreatedApiKey", "Application": "DeveloperApplication",
		"Endpoint": "WebhookEndpoint", "WebhookAttempt": "Attempt", "CreatedEndpoint": "CreatedWebhookEndpoint", "Problem": "Error", "Detail": "ErrorDetail",
	}
}

// schemaName is the type's published name. A page is named by what it lists:
// api.Page[commerce.Product] is ProductPage.
func schemaName(t reflect.Type, hint string) string {
	name, suffix := t.Name(), ""
	if base, args, generic := strings.Cut(name, "["); generic {
		arg := strings.TrimSuffix(args, "]")
		name, suffix = arg[strings.LastIndexByte(arg, '.')+1:], base
	}
	if other, ok := published()[name]; ok {
		name = other
	}
	if name == "" {
		return huma.DefaultSchemaNamer(t, hint)
	}
	r := []rune(name + suffix)
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// The library describes the scalar types of the service as these.
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
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

// An amount has at most 15 significant digits, which a double keeps.
func (amountSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Format: "double"}
}

func (objectSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}
