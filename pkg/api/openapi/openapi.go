// Package openapi makes the service's OpenAPI 3.1 document from the declarations
// of the operations, so that the document cannot differ from the code. It runs
// when the program is built and tested, never in a function: functions serve the
// finished document.
package openapi

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/commerce"
)

// Version is the version of the API that the document describes.
const Version = "1.0.0"

// Security schemes.
const (
	bearer = "bearer"
	apiKey = "apiKey"
)

// Config is what the document shows beside the operations.
type Config struct {
	Events   []commerce.EventType // become webhooks
	Examples map[string]Example   // by the operation's ID, and for a refusal by the shared response's name
}

// Example is a request to an operation and the answer to it, as JSON.
type Example struct {
	Request  jsontext.Value `json:"request,omitempty"` // the body; absent when there is none
	Response jsontext.Value `json:"response,omitempty"`
}

type builder struct {
	registry huma.Registry
	api      *huma.OpenAPI
	refined  map[reflect.Type]bool
	examples map[string]Example
}

// Build returns the document of the operations, indented, with a final line
// feed, and its content as Markdown. The same operations give the same bytes.
func Build(operations []api.Operation, cfg Config) (document, reference []byte, err error) {
	huma.DefaultArrayNullable = false
	b := &builder{registry: newRegistry(), refined: map[reflect.Type]bool{}, examples: cfg.Examples}
	b.api = &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info:    &huma.Info{Title: "Commerce Integration Service", Version: Version, Description: guide()},
		// Relative to this document, so that it holds behind any stage.
		Servers: []*huma.Server{{URL: "."}},
		Paths:   map[string]*huma.PathItem{},
		Tags:    tags(),
		Components: &huma.Components{
			Schemas:   b.registry,
			Responses: map[string]*huma.Response{},
			Headers:   map[string]*huma.Header{},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				bearer: {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "A user's or an application's access token."},
				apiKey: {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "An API key of an application."},
			},
		},
	}
	for _, op := range operations {
		if op.MediaType != "" && op.Result == nil {
			continue // a page for people, or a protocol that describes itself: no client of the document asks for it
		}
		op = op.Complete()
		if err := b.add(&op); err != nil {
			return nil, nil, err
		}
	}
	b.webhooks(cfg.Events)
	raw, err := b.api.MarshalJSON()
	if err != nil {
		return nil, nil, fmt.Errorf("marshal the document: %w", err)
	}
	value := jsontext.Value(raw)
	if err := value.Format(jsontext.CanonicalizeRawFloats(true), jsontext.Multiline(true), jsontext.WithIndent("  ")); err != nil {
		return nil, nil, fmt.Errorf("format the document: %w", err)
	}
	return append(bytes.TrimSpace(value), '\n'), b.reference(), nil
}

func (b *builder) add(op *api.Operation) error {
	out := &huma.Operation{
		OperationID: op.ID, Summary: op.Summary, Description: describe(op), Tags: []string{op.Tag},
		Parameters: b.parameters(op), Responses: b.responses(op), Deprecated: op.Deprecated != nil,
	}
	switch op.Access {
	case api.Developer, api.User, api.Manager, api.Subscriber:
		out.Security = []map[string][]string{{bearer: {}}}
	case api.Reader:
		out.Security = []map[string][]string{{apiKey: {}}, {bearer: {}}}
	case api.Public:
		out.Security = []map[string][]string{}
	}
	if op.Body != nil {
		content := &huma.MediaType{Schema: b.bodySchema(op.Body, op.Foreign), Example: shown(b.examples[op.ID].Request)}
		out.RequestBody = &huma.RequestBody{Required: !op.EmptyBody, Content: map[string]*huma.MediaType{cmp.Or(op.BodyType, "application/json"): content}}
	}
	item := b.api.Paths[op.Path]
	if item == nil {
		item = &huma.PathItem{}
		b.api.Paths[op.Path] = item
	}
	documented, ok := methods(item)[op.Method]
	if !ok || *documented != nil {
		return fmt.Errorf("operation %s: %s %s cannot be documented or is there twice", op.ID, op.Method, op.Path)
	}
	*documented = out
	return nil
}

// shown is an example as the library takes it: nil when there is none.
func shown(example jsontext.Value) any {
	if example == nil {
		return nil
	}
	return stdjson.RawMessage(example)
}

// describe adds to an operation's description its end, if that is announced,
// and who may ask for it.
func describe(op *api.Operation) string {
	var parts []string
	if op.Description != "" {
		parts = append(parts, op.Description)
	}
	if d := op.Deprecated; d != nil {
		parts = append(parts, fmt.Sprintf("Deprecated since %s; it may be gone from %s on: see %s.",
			d.Since.Format(time.DateOnly), d.Sunset().Format(time.DateOnly), d.Link))
	}
	if who := access(op); who != "" {
		parts = append(parts, who)
	}
	return strings.Join(parts, "\n\n")
}
