package webhooks

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/webhook"
)

const cataloguePath = "/developers/webhooks/event-types"

// WebhookEventType is an entry of the catalogue: an event that endpoints can
// subscribe to, the JSON Schema of its payload and an example of it.
type WebhookEventType struct {
	Type        string                  `json:"type"`
	Description string                  `json:"description"`
	Schema      jsontext.Value          `json:"schema"`
	Example     commerce.WebhookPayload `json:"example"`
}

// catalogueList declares the list; it has an order of its own.
func catalogueList() *lists.List {
	return &lists.List{Name: "event-types", Orders: []lists.Order{lists.ByText("type")}}
}

// catalogue makes the entries once, in the order of their names.
type catalogue func() ([]WebhookEventType, error)

func newCatalogue() catalogue { return sync.OnceValues(makeCatalogue) }

func makeCatalogue() ([]WebhookEventType, error) {
	types := commerce.EventTypes(webhook.Sample())
	entries := make([]WebhookEventType, len(types))
	for i, t := range types {
		schema, err := json.Marshal(payloadSchema(t.Name, t.Object), json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		entries[i] = WebhookEventType{Type: t.Name, Description: t.Description, Schema: schema, Example: t.Example}
	}
	return entries, nil
}

// example is the catalogue's example of a type that is in it.
func example(eventType string) commerce.WebhookPayload {
	for _, t := range commerce.EventTypes(webhook.Sample()) {
		if t.Name == eventType {
			return t.Example
		}
	}
	return commerce.WebhookPayload{Type: eventType}
}

func catalogueOperation() httpapi.Operation {
	entries := newCatalogue()
	return httpapi.Operation{
		ID: "listWebhookEventTypes", Method: http.MethodGet, Path: cataloguePath,
		Summary:     "List the types of events",
		Description: "Every type that an endpoint can subscribe to, with the JSON Schema of its payload and an example.",
		Params:      parameters(catalogueList()), Result: lists.Page[WebhookEventType]{}, Status: http.StatusOK,
		Handle: func(r *httpapi.Request) (*httpapi.Response, error) {
			q, err := catalogueList().Parse(r.Query)
			if err != nil {
				return nil, err
			}
			all, err := entries()
			if err != nil {
				return nil, err
			}
			return catalogueOf(r, q, all)
		},
	}
}

func catalogueOf(r *httpapi.Request, q *lists.Query, all []WebhookEventType) (*httpapi.Response, error) {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b WebhookEventType) int {
		if q.Desc {
			a, b = b, a
		}
		return strings.Compare(a.Type, b.Type)
	})
	first := min(q.Offset(), len(sorted))
	page := lists.Page[WebhookEventType]{
		Data: sorted[first:min(first+q.Limit, len(sorted))], Meta: q.Meta(len(sorted)),
	}
	links := q.Links(r.BaseURL+cataloguePath, len(sorted), nil)
	return &httpapi.Response{JSON: page, Header: http.Header{"Link": {links}}}, nil
}
