// Package openapi makes the service's OpenAPI 3.1 document from the declarations
// of the operations, so that the document cannot differ from the code. It runs
// when the program is built and tested, never in a function: functions serve the
// finished document.
package openapi

import (
	"bytes"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/httpapi"
)

// Version is the version of the API that the document describes.
const Version = "1.0.0"

const description = `A multi-tenant commerce back-office interface: a read API for products, categories,
orders, customers and invoices, applications with API keys for developers, and signed webhooks for every change.

Enumerations are open: a client must expect values that it does not know. A field that has no value is null, never absent.
Amounts are JSON numbers with at most four decimals and are exact; read them into a decimal type.
Every answer carries X-Request-Id, and every answer to an accepted credential carries X-RateLimit-Limit,
X-RateLimit-Remaining and X-RateLimit-Reset (epoch seconds). Quote the request id when you report an error.`

// Security schemes.
const (
	bearer = "bearer"
	apiKey = "apiKey"
)

type builder struct {
	registry huma.Registry
	api      *huma.OpenAPI
	refined  map[reflect.Type]bool
}

// Build returns the document of the operations, indented, with a final line
// feed. The same operations give the same bytes.
func Build(operations []httpapi.Operation) ([]byte, error) {
	huma.DefaultArrayNullable = false
	b := &builder{registry: newRegistry(), refined: map[reflect.Type]bool{}}
	b.api = &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info:    &huma.Info{Title: "Commerce Integration Service", Version: Version, Description: description},
		// Relative to this document, so that it holds behind any stage.
		Servers: []*huma.Server{{URL: "."}},
		Paths:   map[string]*huma.PathItem{},
		Components: &huma.Components{
			Schemas: b.registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				bearer: {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "A user's or an application's access token."},
				apiKey: {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "An API key of an application."},
			},
		},
	}
	for _, op := range operations {
		op = op.Complete()
		if err := b.add(&op); err != nil {
			return nil, err
		}
	}
	raw, err := b.api.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("marshal the document: %w", err)
	}
	value := jsontext.Value(raw)
	if err := value.Format(jsontext.CanonicalizeRawFloats(true), jsontext.Multiline(true), jsontext.WithIndent("  ")); err != nil {
		return nil, fmt.Errorf("format the document: %w", err)
	}
	return append(bytes.TrimSpace(value), '\n'), nil
}

func (b *builder) add(op *httpapi.Operation) error {
	out := &huma.Operation{
		OperationID: op.ID, Summary: op.Summary, Description: describe(op), Tags: []string{op.Tag},
		Parameters: b.parameters(op), Responses: b.responses(op),
	}
	switch op.Access {
	case httpapi.Developer:
		out.Security = []map[string][]string{{bearer: {}}}
	case httpapi.Reader:
		out.Security = []map[string][]string{{apiKey: {}}, {bearer: {}}}
	case httpapi.Public:
		out.Security = []map[string][]string{}
	}
	if op.Body != nil {
		out.RequestBody = &huma.RequestBody{Required: !op.EmptyBody, Content: map[string]*huma.MediaType{"application/json": {Schema: b.schema(op.Body)}}}
	}
	item := b.api.Paths[op.Path]
	if item == nil {
		item = &huma.PathItem{}
		b.api.Paths[op.Path] = item
	}
	methods := map[string]**huma.Operation{
		http.MethodGet: &item.Get, http.MethodPost: &item.Post, http.MethodPatch: &item.Patch, http.MethodDelete: &item.Delete, http.MethodPut: &item.Put,
	}
	documented, ok := methods[op.Method]
	if !ok || *documented != nil {
		return fmt.Errorf("operation %s: %s %s cannot be documented or is there twice", op.ID, op.Method, op.Path)
	}
	*documented = out
	return nil
}

// describe adds the scope that an operation demands to its description.
func describe(op *httpapi.Operation) string {
	if op.Scope == "" {
		return op.Description
	}
	text := "Scope: `" + string(op.Scope) + "`."
	if op.Description != "" {
		text = op.Description + "\n\n" + text
	}
	return text
}
