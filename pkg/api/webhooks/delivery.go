package webhooks

import (
	"net/http"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	deliveryPath = endpointPath + "/delivery"

	// maxPreviewed is how many events a preview looks at.
	maxPreviewed = 100
	// previewPages is how many pages of the history a preview reads at most: an
	// event has an entry there for each endpoint that got it.
	previewPages = 5
)

// WebhookDeliveryPreview is what delivery settings would make of past events.
type WebhookDeliveryPreview struct {
	PassedCount int              `json:"passedCount" doc:"The number of events that pass."`
	Data        []PreviewedEvent `json:"data" doc:"The events, the latest first, at most 100."`
}

// PreviewedEvent is one event of a preview.
type PreviewedEvent struct {
	EventID   value.ID   `json:"eventId" doc:"The event."`
	Type      string     `json:"type" doc:"The type."`
	ObjectID  *value.ID  `json:"objectId" doc:"The id of the object. null if none."`
	Timestamp value.Time `json:"timestamp" doc:"When the change was stored."`
	Passes    bool       `json:"passes" doc:"Whether the endpoint would receive the event."`
	Reason    *string    `json:"reason" doc:"The reason: the first field of the filter that does not match, or that no changed field is selected. null if it passes."`
}

func (a *area) deliveryOperations() []api.Operation {
	return []api.Operation{
		{
			ID: "getWebhookDeliverySettings", Method: http.MethodGet, Path: deliveryPath,
			Summary:     "Read which events an endpoint gets, and how",
			Description: "The values of headers are shown as ****.",
			Result:      webhook.WebhookDeliverySettings{}, Handle: a.getDelivery,
		},
		{
			ID: "setWebhookDeliverySettings", Method: http.MethodPut, Path: deliveryPath,
			Summary: "Set which events an endpoint gets, and how",
			Description: "Replaces all settings: what is absent takes its default. filter, changed, fields and payload are about events of records, and hold for " +
				"those that are stored from then on; events about endpoints, and webhook.test, are always sent, and whole. What an endpoint filters has no entry in " +
				"its history; its statistics count it. headers, retryCount and timeoutSeconds hold from the next attempt on. A field that no event has that the " +
				"endpoint subscribes to is refused, and so is a condition that its field can never meet. The entity tag changes with every change of the endpoint's configuration." + takesReads,
			Scope: auth.WebhooksWrite, Params: []api.Param{api.IfMatch()},
			Body: webhook.DeliverySettingsDto{}, Result: webhook.WebhookDeliverySettings{}, Tagged: true,
			Errors: []int{http.StatusConflict, http.StatusPreconditionFailed}, Audit: audit.EndpointUpdated, Handle: a.setDelivery,
		},
		{
			ID: "previewWebhookDelivery", Method: http.MethodPost, Path: deliveryPath + "/preview",
			Summary: "Try delivery settings on past events",
			Description: "Tells which of the last 100 events the endpoint would have got with these settings, which are not stored, and why not the others. They are the events " +
				"of the organization's history, for an application's token of its application's, of types that the endpoint subscribes to; an event that no endpoint " +
				"got is not there. Tests do not count." + takesReads,
			Body: webhook.DeliverySettingsDto{}, Result: WebhookDeliveryPreview{}, Handle: a.preview,
		},
	}
}

func (a *area) getDelivery(r *api.Request) (*api.Response, error) {
	e, err := a.endpoint(r)
	return answerDelivery(e, err)
}

func answerDelivery(e *webhook.Endpoint, err error) (*api.Response, error) {
	if err != nil {
		return nil, err
	}
	return &api.Response{JSON: e.ShapeDelivery(), ETag: e.ConfigETag()}, nil
}

func (a *area) setDelivery(r *api.Request) (*api.Response, error) {
	dto, err := webhook.ParseDeliverySettings(r.Body)
	if err != nil {
		return nil, err
	}
	return answerDelivery(a.changeEndpoint(r, r.PathID("id"), readsAll(r), func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		return e.SetDelivery(dto, a.cfg.Seal, a.now())
	}))
}

func (a *area) preview(r *api.Request) (*api.Response, error) {
	dto, err := webhook.ParseDeliverySettings(r.Body)
	if err != nil {
		return nil, err
	}
	e, err := a.endpoint(r)
	if err != nil {
		return nil, err
	}
	if err := readsAll(r)(e); err != nil {
		return nil, err
	}
	tried, err := e.SetDelivery(dto, func([]byte, string) string { return "" }, a.now())
	if err != nil {
		return nil, err
	}
	payloads, err := a.pastEvents(r, e)
	if err != nil {
		return nil, err
	}
	answer := WebhookDeliveryPreview{Data: []PreviewedEvent{}}
	for i := range payloads {
		p := &payloads[i]
		shown := PreviewedEvent{EventID: p.ID, Type: p.Type, Timestamp: p.Timestamp}
		if !p.ObjectID.IsZero() {
			shown.ObjectID = &p.ObjectID
		}
		reason, err := (&webhook.Candidate{WebhookPayload: p}).Refusal(tried)
		if err != nil {
			return nil, err
		}
		if shown.Passes = reason == ""; shown.Passes {
			answer.PassedCount++
		} else {
			shown.Reason = &reason
		}
		answer.Data = append(answer.Data, shown)
	}
	return api.OK(answer)
}

// pastEvents are the last events of the history that the caller sees, of types
// that the endpoint subscribes to, the latest first.
func (a *area) pastEvents(r *api.Request, e *webhook.Endpoint) ([]commerce.WebhookPayload, error) {
	deliveries, err := a.lastDeliveries(r, e)
	if err != nil {
		return nil, err
	}
	ids := make([]value.ID, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.EventID
	}
	_, bodies, err := a.store.Origin(r.Context(), r.Organization(), value.ID{}, nil, ids)
	if err != nil {
		return nil, err
	}
	var payloads []commerce.WebhookPayload
	for _, d := range deliveries {
		body := bodies[d.EventID]
		if body == nil {
			continue // expired
		}
		p, err := payloadOf(d.EventID, body)
		if err != nil {
			return nil, err
		}
		p.ObjectID = d.ObjectID
		payloads = append(payloads, *p)
	}
	return payloads, nil
}

// lastDeliveries are one delivery of each of those events.
func (a *area) lastDeliveries(r *api.Request, e *webhook.Endpoint) (found []*webhook.Delivery, err error) {
	schema := webhook.DeliveryList().Schema
	var types []string
	for _, name := range commerce.EventNames() {
		if commerce.Matches(e.SubscribedEvents, name) {
			types = append(types, name)
		}
	}
	shown, err := a.shown(r, schema)
	if err != nil {
		return nil, err
	}
	shown = append(shown, columnar.In(schema.Col("type"), types...))
	q := columnar.Query{Filter: columnar.All(shown...), OrderBy: schema.Col("createdAt"), Desc: true, Limit: maxPreviewed}
	seen := map[value.ID]bool{}
	for ; q.Offset < previewPages*maxPreviewed; q.Offset += maxPreviewed {
		page, err := a.cfg.History.Query(r.Context(), r.Organization(), q, true)
		if err != nil {
			return nil, err
		}
		ids := lists.HitIDs(page.Hits)
		stored, err := a.store.EventualDeliveries(r.Context(), r.Organization(), ids)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			d := stored[id]
			if d == nil || d.Test || seen[d.EventID] {
				continue
			}
			seen[d.EventID] = true
			if found = append(found, d); len(found) == maxPreviewed {
				return found, nil
			}
		}
		if len(ids) < maxPreviewed {
			break
		}
	}
	return found, nil
}
