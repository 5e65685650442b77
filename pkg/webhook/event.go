package webhook

import (
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// WebhookEvent is a delivery as the API shows it: one event for one endpoint.
// In lists Payload and the attempts' ResponseBody are null.
type WebhookEvent struct {
	ID             value.ID                 `json:"id" doc:"The id of this entry: one event for one endpoint."`
	EventID        value.ID                 `json:"eventId" doc:"The webhook-id of every attempt, by which receivers deduplicate. Other endpoints receive the event under the same id."`
	EndpointID     value.ID                 `json:"endpointId" doc:"The endpoint."`
	ApplicationID  value.ID                 `json:"applicationId" doc:"The application of the endpoint."`
	OrganizationID value.ID                 `json:"organizationId"`
	SiteID         *value.ID                `json:"siteId" doc:"The site of the object. null if it belongs to no site."`
	Type           string                   `json:"type" doc:"A type of the catalogue; an open enumeration."`
	Status         DeliveryStatus           `json:"status" doc:"The state of the delivery; an open enumeration."`
	HeldReason     *HeldReason              `json:"heldReason" doc:"The reason why the event is HELD. null for other states."`
	AttemptCount   int                      `json:"attemptCount" doc:"Attempts so far, over all schedules."`
	NextAttemptAt  *value.Time              `json:"nextAttemptAt" doc:"null unless the event is PENDING."`
	LastAttemptAt  *value.Time              `json:"lastAttemptAt" doc:"When the last attempt began. null before the first."`
	DeliveredAt    *value.Time              `json:"deliveredAt" doc:"When it was answered 2xx. null until then."`
	Attempts       []Attempt                `json:"attempts" doc:"The last 12, the oldest first."`
	Payload        *commerce.WebhookPayload `json:"payload" doc:"The payload, byte-identical on every attempt, with the fields that the endpoint's delivery settings selected when the event was stored. null in lists, and without the read scope of the record's kind."`
	CreatedAt      value.Time               `json:"createdAt" doc:"When the event was stored for the endpoint."`
	UpdatedAt      value.Time               `json:"updatedAt"`
}

// Shape shows the delivery as lists do.
func (d *Delivery) Shape() WebhookEvent {
	e := WebhookEvent{
		ID: d.ID, EventID: d.EventID, EndpointID: d.EndpointID, ApplicationID: d.ApplicationID,
		OrganizationID: d.OrganizationID, SiteID: d.SiteID, Type: d.Type, Status: d.Status,
		AttemptCount: d.AttemptCount, NextAttemptAt: d.NextAttemptAt, LastAttemptAt: d.LastAttemptAt,
		DeliveredAt: d.DeliveredAt, Attempts: slices.Clone(d.Attempts), CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
	if d.HeldReason != "" {
		e.HeldReason = &d.HeldReason
	}
	for i := range e.Attempts {
		e.Attempts[i].ResponseBody = nil
	}
	return e
}
