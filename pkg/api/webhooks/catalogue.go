package webhooks

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/webhook"
)

const cataloguePath = "/developers/webhooks/event-types"

// WebhookEventType describes an event that endpoints can subscribe to: the JSON
// Schema of its payload, and an example.
type WebhookEventType struct {
	Type        string                  `json:"type" doc:"The type's name, to subscribe to."`
	Description string                  `json:"description" doc:"When events of the type are sent."`
	Schema      jsontext.Value          `json:"schema" doc:"The JSON Schema (2020-12) of its payload."`
	Example     commerce.WebhookPayload `json:"example" doc:"A payload as it is sent."`
}

// makeCatalogue makes the entries, in the order of their names.
func makeCatalogue() ([]WebhookEventType, error) {
	types := commerce.EventTypes(webhook.Samples())
	entries := make([]WebhookEventType, len(types))
	for i, t := range types {
		schema, err := json.Marshal(payloadSchema(t.Name, t.Object), json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		entries[i] = WebhookEventType{Type: t.Name, Description: t.Description, Schema: schema, Example: t.Example}
	}
	slices.SortFunc(entries, func(a, b WebhookEventType) int { return strings.Compare(a.Type, b.Type) })
	return entries, nil
}

// example is the catalogue's example of a type that is in it.
func example(eventType string) commerce.WebhookPayload {
	for _, t := range commerce.EventTypes(webhook.Samples()) {
		if t.Name == eventType {
			return t.Example
		}
	}
	return commerce.WebhookPayload{Type: eventType}
}

func catalogueOperation() api.Operation {
	entries := sync.OnceValues(makeCatalogue)
	return api.Operation{
		ID: "listWebhookEventTypes", Method: http.MethodGet, Path: cataloguePath,
		Summary:     "List the types of events",
		Description: "Every type that an endpoint can subscribe to, with the JSON Schema of its payload and an example.",
		List:        &lists.List{Name: "event-types", Orders: []lists.Order{lists.ByText("type")}}, Result: api.Page[WebhookEventType]{},
		Handle: func(r *api.Request) (*api.Response, error) {
			all, err := entries()
			if err != nil {
				return nil, err
			}
			page, first := slices.Clone(all), min(r.List.Offset(), len(all))
			if r.List.Desc {
				slices.Reverse(page)
			}
			return api.AnswerPage(r, page[first:min(first+r.List.Limit, len(all))], len(all), nil)
		},
	}
}
