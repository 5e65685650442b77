package openapi

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/commerce-integration/service/pkg/api"
)

// reference is the document as Markdown, for readers without the page that
// shows it. Examples are in the document only.
func (b *builder) reference() []byte {
	out := fmt.Appendf(nil, "# %s: API reference\n\nThe OpenAPI document has examples, too: /openapi.json.\n\n%s\n", b.api.Info.Title, b.api.Info.Description)
	documented := b.documented()
	for _, tag := range b.api.Tags {
		out = fmt.Appendf(out, "\n## %s\n\n%s\n", tag.Name, tag.Description)
		operations := documented[tag.Name]
		slices.SortFunc(operations, func(a, b route) int { return cmp.Compare(a.OperationID, b.OperationID) })
		for _, op := range operations {
			out = op.markdown(out)
		}
	}
	out = append(out, "\n## Schemas\n\nThe fields of bodies, answers and events. An answer of 4xx or 5xx without a schema is an "+linkTo("Error")+".\n"...)
	for _, name := range slices.Sorted(maps.Keys(b.registry.Map())) {
		out = schemaMarkdown(fmt.Appendf(out, "\n### Schema %s\n\n", name), b.registry.Map()[name])
	}
	return out
}

// route is an operation with its method and path, or an event's name.
type route struct {
	*huma.Operation
	name string
}

// documented are the operations by their tags.
func (b *builder) documented() map[string][]route {
	by := map[string][]route{}
	add := func(name string, op *huma.Operation) {
		if op != nil {
			by[op.Tags[0]] = append(by[op.Tags[0]], route{op, name})
		}
	}
	for path, item := range b.api.Paths {
		for method, op := range methods(item) {
			add(method+" "+path, *op)
		}
	}
	for event, item := range b.api.Webhooks {
		add(event, item.Post)
	}
	return by
}

func (r route) markdown(out []byte) []byte {
	out = fmt.Appendf(out, "\n### %s\n\n`%s`\n\n", r.Summary, r.name)
	if r.Description != "" {
		out = append(out, r.Description+"\n\n"...)
	}
	for _, p := range r.Parameters {
		out = fmt.Appendf(out, "- `%s` (%s; %s%s): %s\n", p.Name, p.In, facts(p.Schema), map[bool]string{true: "; required"}[p.Required], p.Description)
	}
	if r.RequestBody != nil {
		out = append(out, "- Body:"+shape(r.RequestBody.Content)+"\n"...)
	}
	var answers []string
	for _, status := range slices.Sorted(maps.Keys(r.Responses)) {
		answers = append(answers, status+shape(r.Responses[status].Content))
	}
	return append(out, "- Answers: "+strings.Join(answers, ", ")+"\n"...)
}

func schemaMarkdown(out []byte, s *huma.Schema) []byte {
	if s.Description != "" {
		out = append(out, s.Description+"\n\n"...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		optional := map[bool]string{false: "; optional"}[slices.Contains(s.Required, name)]
		out = fmt.Appendf(out, "- `%s` (%s%s): %s\n", name, facts(s.Properties[name]), optional, s.Properties[name].Description)
	}
	return out
}

// shape names the type of a body.
func shape(content map[string]*huma.MediaType) string {
	of := ""
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if media := content[name]; name == api.NDJSON || name == api.CSV {
			of += ", " + name
		} else {
			of += " " + kind(media.Schema)
		}
	}
	return of
}

func linkTo(name string) string {
	return "[" + name + "](#schema-" + strings.ToLower(name) + ")"
}

// kind names the JSON types that the schema allows.
func kind(s *huma.Schema) string {
	var kinds []string
	switch {
	case s == nil:
	case s.Ref != "":
		kinds = append(kinds, linkTo(path.Base(s.Ref)))
	case s.Items != nil:
		kinds = append(kinds, kind(s.Items)+"[]")
	case s.Type != "":
		kinds = append(kinds, s.Type)
	default:
		for _, one := range s.OneOf {
			kinds = append(kinds, kind(one))
		}
	}
	if s != nil && s.Nullable {
		kinds = append(kinds, "null")
	}
	return strings.Join(kinds, " or ")
}

// facts says what values it has: types, format, bounds, default and values.
func facts(s *huma.Schema) string { return kind(s) + strings.Join(bounds(s), "") }

func bounds(s *huma.Schema) (all []string) {
	tell := func(label, text string) {
		if text != "" {
			all = append(all, "; "+label+text)
		}
	}
	tell("", s.Format)
	tell("", span(s.Minimum, s.Maximum, ""))
	tell("", span(s.MinLength, s.MaxLength, " characters"))
	tell("", span(s.MinItems, s.MaxItems, " entries"))
	tell("pattern ", s.Pattern)
	if text, err := stdjson.Marshal(s.Default); err == nil && s.Default != nil {
		tell("default ", strings.Trim(string(text), `"`))
	}
	tell("values ", joined(s.Enum))
	known, _ := s.Extensions[openEnum].([]string)
	tell("open enumeration: ", strings.Join(known, ", "))
	if s.Items != nil {
		all = append(all, bounds(s.Items)...)
	}
	return all
}

func joined(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ", ")
}

// span says what lies from least to most; either may be absent.
func span[T int | float64](least, most *T, unit string) string {
	text := func(n *T) string { return strconv.FormatFloat(float64(*n), 'f', -1, 64) }
	switch {
	case least == nil && most == nil:
		return ""
	case most == nil:
		return "at least " + text(least) + unit
	case least == nil:
		return "at most " + text(most) + unit
	}
	return text(least) + " to " + text(most) + unit
}

// methods are where the operations of a path stand.
func methods(item *huma.PathItem) map[string]**huma.Operation {
	return map[string]**huma.Operation{
		http.MethodGet: &item.Get, http.MethodPost: &item.Post, http.MethodPatch: &item.Patch, http.MethodDelete: &item.Delete, http.MethodPut: &item.Put,
	}
}
