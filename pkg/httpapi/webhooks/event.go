package webhooks

import (
	"fmt"
	"math"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	eventsPath = "/developers/webhooks/events"
	eventPath  = eventsPath + "/{id}"
)

// WebhookEvent is a row of the history as the API shows it: one event for
// one endpoint. In lists Payload and the attempts' ResponseBody are null.
type WebhookEvent struct {
	ID             value.ID                 `json:"id"`
	EventID        value.ID                 `json:"eventId" doc:"The webhook-id of every attempt, by which receivers deduplicate; other endpoints got the same event under it."`
	EndpointID     value.ID                 `json:"endpointId"`
	ApplicationID  value.ID                 `json:"applicationId"`
	OrganizationID value.ID                 `json:"organizationId"`
	SiteID         *value.ID                `json:"siteId"`
	Type           string                   `json:"type"`
	Status         webhook.DeliveryStatus   `json:"status"`
	HeldReason     *webhook.HeldReason      `json:"heldReason" doc:"Why the event waits; null unless it is HELD."`
	AttemptCount   int                      `json:"attemptCount" doc:"Attempts so far, over all schedules."`
	NextAttemptAt  *value.Time              `json:"nextAttemptAt" doc:"null unless the event is PENDING."`
	LastAttemptAt  *value.Time              `json:"lastAttemptAt"`
	DeliveredAt    *value.Time              `json:"deliveredAt"`
	Attempts       []webhook.Attempt        `json:"attempts" doc:"The last 12, the oldest first."`
	Payload        *commerce.WebhookPayload `json:"payload" doc:"What is delivered, byte-identical on every attempt. null in lists."`
	CreatedAt      value.Time               `json:"createdAt"`
	UpdatedAt      value.Time               `json:"updatedAt"`
}

// showRow shows a row as lists do.
func showRow(r *webhook.Delivery) WebhookEvent {
	e := WebhookEvent{
		ID: r.ID, EventID: r.EventID, EndpointID: r.EndpointID, ApplicationID: r.ApplicationID,
		OrganizationID: r.OrganizationID, SiteID: r.SiteID, Type: r.Type, Status: r.Status,
		AttemptCount: r.AttemptCount, NextAttemptAt: r.NextAttemptAt, LastAttemptAt: r.LastAttemptAt,
		DeliveredAt: r.DeliveredAt, Attempts: make([]webhook.Attempt, len(r.Attempts)),
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.HeldReason != "" {
		e.HeldReason = &r.HeldReason
	}
	for i, attempt := range r.Attempts {
		attempt.ResponseBody = nil
		e.Attempts[i] = attempt
	}
	return e
}

// showEvent shows a row whole. A payload that has expired before its row is
// null.
func showEvent(r *webhook.Delivery, payload []byte) (WebhookEvent, error) {
	e := showRow(r)
	copy(e.Attempts, r.Attempts)
	if payload == nil {
		return e, nil
	}
	if err := json.Unmarshal(payload, &e.Payload); err != nil {
		return e, fmt.Errorf("payload of event %s: %w", r.EventID, err)
	}
	return e, nil
}

func (a *area) eventOperations() []httpapi.Operation {
	return []httpapi.Operation{
		{
			ID: "listWebhookEvents", Method: http.MethodGet, Path: eventsPath,
			Summary: "List the history of events",
			Description: "One entry for each event and endpoint, for at least 30 days. payload and the attempts' responseBody are null here; " +
				"read the single event for them. A change is in the list about two seconds after it happened.",
			List: webhook.DeliveryList(), Result: httpapi.Page[WebhookEvent]{}, Status: http.StatusOK, Handle: a.listEvents,
		},
		{
			ID: "getWebhookEvent", Method: http.MethodGet, Path: eventPath,
			Summary: "Read an event of the history", Result: WebhookEvent{}, Status: http.StatusOK,
			Errors: []int{http.StatusNotFound}, Handle: a.getEvent,
		},
		{
			ID: "redeliverWebhookEvent", Method: http.MethodPost, Path: eventPath + "/redeliver",
			Summary: "Deliver an event again",
			Description: "The same event with the same webhook-id and a new full schedule; attemptCount goes on. 409 while it is PENDING, and when its " +
				"endpoint is deleted, not ACTIVE, or of a suspended application, or its payload is no longer kept. While the endpoint's circuit is open the event is HELD until that closes.",
			Scope: auth.WebhooksWrite, Result: WebhookEvent{}, Status: http.StatusAccepted,
			Errors: []int{http.StatusNotFound, http.StatusConflict}, Handle: a.redeliver,
		},
	}
}

func (a *area) listEvents(r *httpapi.Request) (*httpapi.Response, error) {
	schema := webhook.DeliveryList().Schema
	// What is not shown any more may stay in the index for a while.
	shown := int64(value.TimeOf(a.cfg.Clock()).Add(-webhook.Retention)) + 1
	indexed := r.List.Index(columnar.Within(schema.Col("createdAt"), shown, math.MaxInt64))
	found, err := a.cfg.History.Query(r.Context(), r.Organization(), indexed)
	if err != nil {
		return nil, err
	}
	rows, err := a.rows(r, schema, indexed, found.Hits)
	if err != nil {
		return nil, err
	}
	page := make([]WebhookEvent, len(rows))
	for i, row := range rows {
		page[i] = showRow(row)
	}
	return httpapi.AnswerPage(r, page, found.Total, httpapi.LastOf(r.List, found.Hits))
}

// rows reads the rows of the hits, in their order. A row that has changed
// since the view saw it is checked against the query again.
func (a *area) rows(r *httpapi.Request, schema *columnar.Schema, q columnar.Query, hits []columnar.Hit) ([]*webhook.Delivery, error) {
	ids := make([]value.ID, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	stored, err := a.store.Deliveries(r.Context(), r.Organization(), ids)
	if err != nil {
		return nil, err
	}
	found := make([]*webhook.Delivery, 0, len(hits))
	for _, hit := range hits {
		row := stored[hit.ID]
		if row == nil || int64(row.UpdatedAt) != hit.Revision &&
			!columnar.Match(schema, q, webhook.DeliveryDocument(row, value.Time(hit.Visible))) {
			continue
		}
		found = append(found, row)
	}
	return found, nil
}

func (a *area) getEvent(r *httpapi.Request) (*httpapi.Response, error) {
	row, err := a.row(r)
	if err != nil {
		return nil, err
	}
	return a.answerEvent(r, row)
}

func (a *area) row(r *httpapi.Request) (*webhook.Delivery, error) {
	row, err := a.store.Delivery(r.Context(), r.Organization(), r.PathID("id"))
	if err == nil && row == nil {
		err = errNoEvent()
	}
	return row, err
}

func errNoEvent() error { return fault.Missing("webhook event") }

func (a *area) answerEvent(r *httpapi.Request, row *webhook.Delivery) (*httpapi.Response, error) {
	payload, err := a.store.Payload(r.Context(), r.Organization(), row.EventID)
	if err != nil {
		return nil, err
	}
	shape, err := showEvent(row, payload)
	if err != nil {
		return nil, err
	}
	return httpapi.OK(shape)
}

func (a *area) redeliver(r *httpapi.Request) (*httpapi.Response, error) {
	row, err := a.row(r)
	if err != nil {
		return nil, err
	}
	e, err := a.store.Endpoint(r.Context(), r.Organization(), row.EndpointID)
	if err != nil {
		return nil, err
	}
	if e == nil || e.Status != webhook.Active {
		return nil, fault.New(fault.Conflict, fault.CodeConflict, "the event's endpoint is deleted or not ACTIVE")
	}
	if err := a.checkNotSuspended(r, e); err != nil {
		return nil, err
	}
	payload, err := a.store.Payload(r.Context(), r.Organization(), row.EventID)
	if err != nil {
		return nil, err
	}
	if payload == nil {
		return nil, fault.New(fault.Conflict, fault.CodeConflict, "the event is so old that its payload is no longer kept")
	}
	row, err = a.store.ChangeDelivery(r.Context(), r.Organization(), row.ID, func(row *webhook.Delivery) (*webhook.Delivery, error) {
		if row.Pending() {
			return nil, fault.New(fault.Conflict, fault.CodeConflict, "the event is PENDING: an attempt lies ahead already")
		}
		return row.Requeue(a.now()), nil
	})
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, errNoEvent()
	}
	return a.sent(r, e, row, payload)
}
