package docs

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// schema is the part of a JSON schema that the reference's Markdown shows.
type schema struct {
	Ref         string             `json:"$ref"`
	Type        any                `json:"type"` // a name, or several
	Format      string             `json:"format"`
	Description string             `json:"description"`
	Default     jsontext.Value     `json:"default"`
	Enum        []string           `json:"enum"`
	Open        []string           `json:"x-extensible-enum"`
	Pattern     string             `json:"pattern"`
	Minimum     jsontext.Value     `json:"minimum"`
	Maximum     jsontext.Value     `json:"maximum"`
	MinLength   jsontext.Value     `json:"minLength"`
	MaxLength   jsontext.Value     `json:"maxLength"`
	MinItems    jsontext.Value     `json:"minItems"`
	MaxItems    jsontext.Value     `json:"maxItems"`
	Items       *schema            `json:"items"`
	OneOf       []*schema          `json:"oneOf"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
}

// body is that of a request or an answer.
type body struct {
	Content map[string]struct {
		Schema schema `json:"schema"`
	} `json:"content"`
}

// markdown is the reference for readers without the page. Examples are in the
// document only.
func (d *description) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: API reference\n\nThe OpenAPI document has examples, too: /openapi.json.\n\n%s\n", d.Info.Title, d.Info.Description)
	for _, g := range d.groups() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", g.name, g.description)
		for _, op := range g.operations {
			op.markdown(&b)
		}
	}
	b.WriteString("\n## Schemas\n\nThe fields of bodies, answers and events. An answer of 4xx or 5xx without a schema is an " + linkTo("Error") + ".\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		fmt.Fprintf(&b, "\n### Schema %s\n\n", name)
		if s.Description != "" {
			b.WriteString(s.Description + "\n\n")
		}
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[field]
			fmt.Fprintf(&b, "- `%s` (%s%s): %s\n", field, p.facts(), map[bool]string{false: "; optional"}[slices.Contains(s.Required, field)], p.Description)
		}
	}
	return b.String()
}

func (op *operation) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s\n\n`%s`\n\n", op.Summary, op.route)
	if op.Description != "" {
		b.WriteString(op.Description + "\n\n")
	}
	for _, p := range op.Parameters {
		fmt.Fprintf(b, "- `%s` (%s; %s%s): %s\n", p.Name, p.In, p.Schema.facts(), map[bool]string{true: "; required"}[p.Required], p.Description)
	}
	if shape := op.RequestBody.shape(); shape != "" {
		b.WriteString("- Body:" + shape + "\n")
	}
	var answers []string
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		answers = append(answers, status+op.Responses[status].shape())
	}
	b.WriteString("- Answers: " + strings.Join(answers, ", ") + "\n")
}

func (b body) shape() string {
	for _, content := range b.Content {
		return " " + content.Schema.kind()
	}
	return ""
}

func linkTo(name string) string {
	return "[" + name + "](#schema-" + strings.ToLower(name) + ")"
}

// kind names the types of what has the schema.
func (s *schema) kind() string {
	if s.Ref != "" {
		return linkTo(path.Base(s.Ref))
	}
	var kinds []string
	for _, one := range s.OneOf {
		kinds = append(kinds, one.kind())
	}
	if s.Type != nil {
		kinds = append(kinds, strings.Fields(strings.Trim(fmt.Sprint(s.Type), "[]"))...)
	}
	if s.Items != nil {
		kinds[slices.Index(kinds, "array")] = s.Items.kind() + "[]"
	}
	return strings.Join(kinds, " or ")
}

// facts says what values it has.
func (s *schema) facts() string {
	return s.kind() + s.bounds()
}

// bounds lists format, bounds, default and values, each after a semicolon.
func (s *schema) bounds() (all string) {
	tell := func(label, text string) {
		if text != "" {
			all += "; " + strings.TrimSpace(label+" "+text)
		}
	}
	tell("", s.Format)
	tell("", span(s.Minimum, s.Maximum, ""))
	tell("", span(s.MinLength, s.MaxLength, " characters"))
	tell("", span(s.MinItems, s.MaxItems, " entries"))
	tell("pattern", s.Pattern)
	tell("default", strings.Trim(string(s.Default), `"`))
	tell("values", strings.Join(s.Enum, ", "))
	tell("open enumeration:", strings.Join(s.Open, ", "))
	if s.Items != nil {
		all += s.Items.bounds()
	}
	return all
}

// span says what lies from least to most; either may be absent.
func span(least, most jsontext.Value, unit string) string {
	switch {
	case least == nil && most == nil:
		return ""
	case most == nil:
		return "at least " + least.String() + unit
	case least == nil:
		return "at most " + most.String() + unit
	}
	return least.String() + " to " + most.String() + unit
}
