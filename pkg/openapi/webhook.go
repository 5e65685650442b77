package openapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/commerce-integration/service/pkg/commerce"
)

// webhooks documents what the service sends. Types whose objects are alike
// share the schema of their payload.
func (b *builder) webhooks(events []commerce.EventType) {
	b.api.Webhooks = make(map[string]*huma.PathItem, len(events))
	for _, e := range events {
		example, err := e.Example.Encode()
		if err != nil {
			panic(err) // an example of the catalogue
		}
		b.api.Webhooks[e.Name] = &huma.PathItem{Post: &huma.Operation{
			OperationID: operationID(e.Name), Summary: e.Name, Description: e.Description, Tags: []string{eventsTag},
			Security: []map[string][]string{}, Parameters: signature(), Responses: receipts(),
			RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
				"application/json": {Schema: b.payload(e), Example: shown(example)},
			}},
		}}
	}
}

// operationID is onOrderCreated for order.created.
func operationID(event string) string {
	id := "on"
	for word := range strings.SplitSeq(event, ".") {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

// payload is the schema of an event's body: that of every payload, with the
// schema of the object in the place of any object.
func (b *builder) payload(e commerce.EventType) *huma.Schema {
	object := b.schema(e.Object)
	name := strings.TrimPrefix(object.Ref, schemaPrefix)
	known, schemas := name+"Event", b.registry.Map()
	if schemas[known] == nil {
		data := b.specific(commerce.WebhookData{}, "object", object)
		schemas[known+"Data"] = data
		schemas[known] = b.specific(commerce.WebhookPayload{}, "data", &huma.Schema{Ref: schemaPrefix + known + "Data"})
		schemas[known].Properties["type"] = copied(schemas[known].Properties["type"])
	}
	kind := schemas[known].Properties["type"]
	values, _ := kind.Extensions[openEnum].([]string)
	kind.Extensions = map[string]any{openEnum: append(slices.Clone(values), e.Name)}
	return &huma.Schema{Ref: schemaPrefix + known}
}

// specific is the schema of a value's type with another schema for one property.
func (b *builder) specific(v any, property string, schema *huma.Schema) *huma.Schema {
	general := b.registry.SchemaFromRef(b.schema(v).Ref)
	s := copied(general)
	s.Properties = maps.Clone(general.Properties)
	s.Properties[property] = copied(schema)
	s.Properties[property].Description = general.Properties[property].Description
	return s
}

func copied(s *huma.Schema) *huma.Schema {
	c := *s
	return &c
}

// signature documents the headers of Standard Webhooks 1.0.0.
func signature() []*huma.Param {
	var params []*huma.Param
	for _, h := range []struct{ name, text string }{
		{"webhook-id", "The event's id, the same on every attempt: drop what you have had already."},
		{"webhook-timestamp", "When this attempt was made, in seconds since 1970 (UTC)."},
		{"webhook-signature", "v1, and the base64 HMAC-SHA256 of id.timestamp.body by the endpoint's secret; after a rotation several, separated by spaces."},
	} {
		params = append(params, &huma.Param{Name: h.name, In: "header", Required: true, Description: h.text, Schema: &huma.Schema{Type: huma.TypeString}})
	}
	return params
}

// receipts documents what a receiver's answers mean.
func receipts() map[string]*huma.Response {
	return map[string]*huma.Response{
		"2XX":     {Description: "Delivered. Answer within the endpoint's timeoutSeconds."},
		"410":     {Description: "The endpoint is gone: " + http.StatusText(http.StatusGone) + " disables it at once."},
		"default": {Description: "Failed; it is tried again while retries are left. Retry-After of a 429 or 503 is honoured up to 12 h."},
	}
}
