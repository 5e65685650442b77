package webhooks

import (
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	eventsPath = "/developers/webhooks/events"
	eventPath  = eventsPath + "/{id}"
)

// listed shows a delivery as lists do. Only a caller who may see the record learns which it is.
func listed(r *api.Request, d *webhook.Delivery) webhook.WebhookEvent {
	e := d.Shape()
	if reads(r, d.Type) {
		d.ShowObject(&e)
	}
	return e
}

// whole shows a delivery with its payload, which is null once it has expired, and
// what its attempts sent and were answered, which may repeat it; neither to a caller
// who may not see the record.
func whole(r *api.Request, d *webhook.Delivery, payload []byte) (webhook.WebhookEvent, error) {
	e := listed(r, d)
	if !reads(r, d.Type) {
		return e, nil
	}
	d.ShowExchanges(&e)
	if payload == nil {
		return e, nil
	}
	body, err := d.Body(payload)
	if err != nil {
		return e, fmt.Errorf("event %s: %w", d.EventID, err)
	}
	e.Payload, err = payloadOf(d.EventID, body)
	return e, err
}

// payloadOf reads the stored payload of an event.
func payloadOf(event value.ID, body []byte) (*commerce.WebhookPayload, error) {
	p := &commerce.WebhookPayload{}
	if err := json.Unmarshal(body, p); err != nil {
		return nil, fmt.Errorf("payload of event %s: %w", event, err)
	}
	return p, nil
}

func (a *area) eventOperations() []api.Operation {
	return []api.Operation{
		{
			ID: "listWebhookEvents", Method: http.MethodGet, Path: eventsPath,
			Summary: "List the history of events",
			Description: "One entry for each event and endpoint, for at least 30 days. payload and the attempts' request, responseHeaders and responseBody are null here; " +
				"read the single event for them. A change is in the list about a second after it happened.",
			List: webhook.DeliveryList(), Result: api.Page[webhook.WebhookEvent]{}, Handle: a.listEvents,
		},
		{
			ID: "getWebhookEvent", Method: http.MethodGet, Path: eventPath,
			Summary:     "Read an event of the history",
			Description: "payload and the attempts' request, responseHeaders and responseBody are null for a caller without the read scope of the record's kind.",
			Result:      webhook.WebhookEvent{}, Handle: a.getEvent,
		},
		{
			ID: "redeliverWebhookEvent", Method: http.MethodPost, Path: eventPath + "/redeliver",
			Summary: "Deliver an event again",
			Description: "The same event with the same webhook-id and a new full schedule; attemptCount continues. 409 while it is PENDING, and if its " +
				"endpoint is deleted, not ACTIVE, or of a suspended application, or its payload has expired. The attempt is made at once, also while the " +
				"endpoint's circuit is open: its success closes the circuit, which sends every event that is HELD with CIRCUIT_OPEN; after a failure the " +
				"event is HELD again. Then one event is redelivered at a time: while one is under way another is 409, and recover closes the circuit.",
			Scope: auth.WebhooksWrite, Result: webhook.WebhookEvent{}, Status: http.StatusAccepted,
			Errors: []int{http.StatusConflict}, Handle: a.redeliver,
		},
	}
}

func (a *area) listEvents(r *api.Request) (*api.Response, error) {
	schema := webhook.DeliveryList().Schema
	visible, err := a.shown(r, schema)
	if err != nil {
		return nil, err
	}
	indexed := r.List.Index(visible...)
	page, found, err := api.FullPage(r, func(limit int) (lists.Answer, error) {
		indexed.Limit = limit
		return a.cfg.History.QueryWeighed(r.Context(), r.Organization(), indexed, r.ReadsNow(), r.AdmitUnits)
	}, func(hits []columnar.Hit) ([]columnar.Hit, []webhook.WebhookEvent, error) {
		return a.events(r, schema, indexed, hits)
	})
	if err != nil {
		return nil, err
	}
	return api.AnswerIndexed(r, page, found)
}

// shown are the filters of the deliveries that the caller sees. Which of the deleted
// endpoints was an alert URL is not known, but those get alerts and tests alone.
func (a *area) shown(r *api.Request, schema *columnar.Schema) ([]columnar.Filter, error) {
	// A delivery may stay in the index for a while after its retention.
	filters := []columnar.Filter{columnar.Within(schema.Col("createdAt"), int64(oldestShown(a.now())), math.MaxInt64)}
	if r.Principal.Kind == auth.KindApplication {
		filters = append(filters, columnar.In(schema.Col("applicationId"), lists.Key(r.Principal.ApplicationID)))
	}
	if !r.Principal.OfPortal() {
		return filters, nil
	}
	seen, err := a.seen(r)
	ids := make([]string, len(seen))
	for i, e := range seen {
		ids[i] = lists.Key(e.ID)
	}
	alerts := slices.DeleteFunc(commerce.EventNames(), func(name string) bool { return !commerce.IsAlert(name) })
	return append(filters, columnar.Any(columnar.In(schema.Col("endpointId"), ids...), columnar.All(
		columnar.Not(columnar.In(schema.Col("type"), alerts...)), columnar.Not(columnar.Null(schema.Col("objectId"))),
	))), err
}

// oldestShown is the least createdAt of a delivery that the history shows.
func oldestShown(now value.Time) value.Time { return now.Add(-webhook.Retention) + 1 }

// events reads the deliveries of the hits that are shown, in their order. A
// delivery that has changed since the view saw it is checked against the query
// again.
func (a *area) events(
	r *api.Request, schema *columnar.Schema, q columnar.Query, hits []columnar.Hit,
) (shown []columnar.Hit, events []webhook.WebhookEvent, err error) {
	stored, err := a.store.Deliveries(r.Context(), r.Organization(), lists.HitIDs(hits))
	if err != nil {
		return nil, nil, err
	}
	for _, hit := range hits {
		d := stored[hit.ID]
		if d != nil && (int64(d.UpdatedAt) == hit.Revision ||
			columnar.Match(schema, q, webhook.DeliveryDocument(d, value.Time(hit.Visible)))) {
			shown, events = append(shown, hit), append(events, listed(r, d))
		}
	}
	return shown, events, nil
}

// foundDelivery makes a delivery that is not there a 404.
var foundDelivery = api.Found[webhook.Delivery]("webhook event")

// delivery reads the delivery that the path names.
func (a *area) delivery(r *api.Request) (*webhook.Delivery, error) {
	d, err := a.store.Delivery(r.Context(), r.Organization(), r.PathID("id"))
	if d != nil && !manages(r, d.ApplicationID) {
		d = nil
	}
	if d != nil && r.Principal.OfPortal() && (d.Test || commerce.IsAlert(d.Type)) {
		e, err := a.store.Endpoint(r.Context(), r.Organization(), d.EndpointID)
		if err != nil {
			return nil, err
		}
		if e == nil || !sees(r, e) {
			d = nil
		}
	}
	return foundDelivery(d, err)
}

func (a *area) getEvent(r *api.Request) (*api.Response, error) {
	d, err := a.delivery(r)
	if err != nil {
		return nil, err
	}
	payload, err := a.store.Payload(r.Context(), r.Organization(), d.EventID)
	if err != nil {
		return nil, err
	}
	return api.Answer(whole(r, d, payload))
}

func (a *area) redeliver(r *api.Request) (*api.Response, error) {
	d, err := a.delivery(r)
	if err != nil {
		return nil, err
	}
	payload, err := a.store.Payload(r.Context(), r.Organization(), d.EventID)
	if err != nil {
		return nil, err
	}
	if payload == nil {
		return nil, conflict("the event is so old that its payload has expired")
	}
	var lane webhook.Lane
	d, err = a.store.Redeliver(r.Context(), r.Organization(), d.EndpointID, d.ID,
		func(e *webhook.Endpoint, d *webhook.Delivery) (*webhook.Circuit, *webhook.Delivery, error) {
			if lane = e.Lane; e.Circuit.Open() {
				lane = webhook.LaneSlow
			}
			return a.redelivery(r, e, d)
		})
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, conflict("the event's endpoint is deleted")
	}
	return a.send(r, lane, d, payload)
}

// redelivery is the delivery as it is sent again, and the circuit of its
// endpoint then. While that is open the delivery is its probe, and there is one
// at a time: many that fail would not help the endpoint.
func (a *area) redelivery(r *api.Request, e *webhook.Endpoint, d *webhook.Delivery) (*webhook.Circuit, *webhook.Delivery, error) {
	if e.Status != webhook.Active {
		return nil, nil, conflict("the event's endpoint is " + string(e.Status) + ": set it ACTIVE first; recover then sends every event that it holds")
	}
	if err := a.checkNotSuspended(r, e); err != nil {
		return nil, nil, err
	}
	switch {
	case d.Pending():
		return nil, nil, conflict("the event is PENDING: an attempt lies ahead already")
	case d.Test || !e.Circuit.Open():
		return e.Circuit, d.Requeue(a.now()), nil
	}
	other, err := a.store.Delivery(r.Context(), r.Organization(), e.Circuit.Redelivery)
	if err != nil {
		return nil, nil, err
	}
	if other != nil && other.Probe {
		return nil, nil, conflict("the event " + other.ID.String() + " is being redelivered to the endpoint, whose circuit is open: " +
			"wait for its outcome, or use recover, which closes the circuit and sends every HELD and FAILED event")
	}
	return e.Circuit.Redeliver(d.ID, a.now()), d.RequeueAsProbe(a.now()), nil
}
