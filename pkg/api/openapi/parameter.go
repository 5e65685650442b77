package openapi

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/fault"
)

var pathParam = regexp.MustCompile(`\{([^}]+)\}`)

// parameters documents the path's UUIDs, what the operation declares, and
// the conditional headers that its method implies.
func (b *builder) parameters(op *api.Operation) []*huma.Param {
	var params []*huma.Param
	for _, match := range pathParam.FindAllStringSubmatch(op.Path, -1) {
		declared := slices.ContainsFunc(op.Params, func(p api.Param) bool { return p.In == fault.InPath && p.Name == match[1] })
		if !declared {
			params = append(params, &huma.Param{
				Name: match[1], In: "path", Required: true, Description: "The id of the " + named(op.Path, match[0]) + ".",
				Schema: &huma.Schema{Type: huma.TypeString, Format: "uuid"},
			})
		}
	}
	var implied []api.Param
	if op.TakesIdempotencyKey() {
		implied = append(implied, idempotencyKey())
	}
	switch op.Method {
	case "GET":
		implied = append(implied, api.Param{
			Name: "If-None-Match", In: fault.InHeader, Type: "string", Description: "Answers 304 when one of these entity tags is current.",
		})
	case "PATCH", "DELETE":
		implied = append(implied, api.IfMatch())
	}
	for _, p := range slices.Concat(op.Params, implied) {
		params = append(params, parameter(&p))
	}
	return params
}

// idempotencyKey documents the header by which a client names its request.
func idempotencyKey() api.Param {
	return api.Param{
		Name: "Idempotency-Key", In: fault.InHeader, Type: "string", Pattern: "^[!-~]+$", Min: new(int64(1)), Max: new(int64(idempotency.MaxKey)),
		Description: "A unique name for this request: 1 to 128 visible ASCII characters, such as a UUID. The same request " +
			"sent again within 24 hours gets the first success again, with Idempotency-Replayed: true, and changes nothing. Errors are not kept. " +
			"409 conflict while the first one runs, for at most 60 seconds if it was interrupted. 422 if the key was used for another request, or by a credential with other scopes or sites.",
	}
}

// named is what a path's parameter names: an object for {objectId}, and for
// {id} one of those that the segment before it lists.
func named(path, parameter string) string {
	if name, ok := strings.CutSuffix(parameter, "Id}"); ok {
		return name[1:]
	}
	before, _, _ := strings.Cut(path, "/"+parameter)
	list := before[strings.LastIndexByte(before, '/')+1:]
	singular, ies := strings.CutSuffix(list, "ies")
	if ies {
		singular += "y"
	}
	return strings.ReplaceAll(strings.TrimSuffix(singular, "s"), "-", " ")
}

func parameter(p *api.Param) *huma.Param {
	value := &huma.Schema{Type: p.Type, Format: p.Format, Pattern: p.Pattern}
	for _, e := range p.Enum {
		value.Enum = append(value.Enum, e)
	}
	if p.Type == huma.TypeString {
		value.MinLength, value.MaxLength = bound[int](p.Min), bound[int](p.Max)
	} else {
		value.Minimum, value.Maximum = bound[float64](p.Min), bound[float64](p.Max)
	}
	value.Default = defaultOf(p)
	out := &huma.Param{Name: p.Name, In: p.In, Description: p.Description, Required: p.Required, Schema: value}
	if p.Multi {
		explode, least := false, 1
		out.Schema = &huma.Schema{Type: huma.TypeArray, Items: value, MinItems: &least}
		if p.Most > 0 {
			out.Schema.MaxItems = &p.Most
		}
		out.Style, out.Explode = "form", &explode
		out.Description += " Several by commas, or by repeating the parameter."
	}
	if p.Keyed {
		out.Schema, out.Style, out.Explode = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: value}, "deepObject", new(true)
		out.Example = map[string]string{} // the reference would otherwise ask for keys that it makes up
	}
	return out
}

func bound[T int | float64](n *int64) *T {
	if n == nil {
		return nil
	}
	t := T(*n)
	return &t
}

func defaultOf(p *api.Param) any {
	switch {
	case p.Default == "":
		return nil
	case p.Type == huma.TypeInteger:
		if n, err := strconv.Atoi(p.Default); err == nil {
			return n
		}
	case p.Type == huma.TypeBoolean:
		return p.Default == "true"
	}
	return p.Default
}
