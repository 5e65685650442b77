package webhook

import (
	"cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// WebhookEvent is a delivery as the API shows it: one event for one endpoint.
// In lists Payload and what the attempts sent and were answered are null.
type WebhookEvent struct {
	ID             value.ID                 `json:"id" doc:"The id of this entry: one event for one endpoint."`
	EventID        value.ID                 `json:"eventId" doc:"The webhook-id of every attempt, by which receivers deduplicate. Other endpoints receive the event under the same id."`
	EndpointID     value.ID                 `json:"endpointId" doc:"The endpoint."`
	ApplicationID  value.ID                 `json:"applicationId" doc:"The application of the endpoint."`
	OrganizationID value.ID                 `json:"organizationId"`
	SiteID         *value.ID                `json:"siteId" doc:"The site of the object. null if it belongs to no site."`
	ObjectID       *value.ID                `json:"objectId" doc:"The id of the record that the event is about, or of the endpoint or history entry that an alert is about. null for a test, in alerts, and without the read scope of the record's kind."`
	Type           string                   `json:"type" doc:"A type of the catalogue; an open enumeration."`
	Status         DeliveryStatus           `json:"status" doc:"The state of the delivery; an open enumeration."`
	HeldReason     *HeldReason              `json:"heldReason" doc:"The reason why the event is HELD. null for other states."`
	AttemptCount   int                      `json:"attemptCount" doc:"Attempts so far, over all schedules."`
	NextAttemptAt  *value.Time              `json:"nextAttemptAt" doc:"null unless the event is PENDING."`
	LastAttemptAt  *value.Time              `json:"lastAttemptAt" doc:"When the last attempt began. null before the first."`
	DeliveredAt    *value.Time              `json:"deliveredAt" doc:"When it was answered 2xx. null until then."`
	Attempts       []WebhookAttempt         `json:"attempts" doc:"The last 12, the oldest first."`
	Payload        *commerce.WebhookPayload `json:"payload" doc:"The payload, byte-identical on every attempt, with the fields that the endpoint's delivery settings selected when the event was stored. null in lists, and without the read scope of the record's kind."`
	CreatedAt      value.Time               `json:"createdAt" doc:"When the event was stored for the endpoint."`
	UpdatedAt      value.Time               `json:"updatedAt"`
}

// WebhookAttempt is an attempt as the API shows it.
type WebhookAttempt struct { //nolint:revive // as WebhookEvent
	At              value.Time         `json:"at" doc:"When it began."`
	DurationMs      int64              `json:"durationMs" doc:"The duration in milliseconds."`
	Request         *AttemptRequest    `json:"request" doc:"What was sent. null in lists, where it was not kept, and without the read scope of the record's kind."`
	ResponseStatus  *int               `json:"responseStatus" doc:"null if there was no response."`
	ResponseHeaders *map[string]string `json:"responseHeaders" doc:"Headers of the response by name: whole ones, as many as fit in 300 bytes; after a 2xx in what url, signature and responseBody leave of these. null like responseBody."`
	ResponseBody    *string            `json:"responseBody" doc:"The first 200 bytes of the response body if the status is 2xx, else the first KiB. null in lists, without a response, and without the read scope of the record's kind."`
	Error           *string            `json:"error" doc:"The error. null if it was answered 2xx."`
}

// AttemptRequest is what an attempt sent beside the payload.
type AttemptRequest struct {
	URL     string            `json:"url" doc:"The URL that was asked, its first 300 bytes."`
	Headers map[string]string `json:"headers" doc:"The headers that were sent; values of the endpoint's own are shown as ****."`
}

// Shape shows the delivery as lists do.
func (d *Delivery) Shape() WebhookEvent {
	e := WebhookEvent{
		ID: d.ID, EventID: d.EventID, EndpointID: d.EndpointID, ApplicationID: d.ApplicationID,
		OrganizationID: d.OrganizationID, SiteID: d.SiteID, Type: d.Type, Status: d.Status,
		AttemptCount: d.AttemptCount, NextAttemptAt: d.NextAttemptAt,
		Attempts: make([]WebhookAttempt, len(d.Attempts)), CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
	if d.HeldReason != "" {
		e.HeldReason = &d.HeldReason
	}
	if d.Status == DeliveryDelivered {
		e.DeliveredAt = &d.UpdatedAt // by the attempt, the last change
	}
	for i, a := range d.Attempts {
		e.Attempts[i] = WebhookAttempt{At: a.At, DurationMs: a.DurationMs, ResponseStatus: a.ResponseStatus, Error: a.Error}
		e.LastAttemptAt = &e.Attempts[i].At
	}
	return e
}

// ShowObject adds to the delivery's shape which object its event is about.
func (d *Delivery) ShowObject(e *WebhookEvent) {
	if !d.ObjectID.IsZero() {
		e.ObjectID = &d.ObjectID
	}
}

// ShowExchanges adds to the attempts of the delivery's shape what they sent and what came back.
func (d *Delivery) ShowExchanges(e *WebhookEvent) {
	url := ""
	for i := range d.Attempts {
		a, shown := &d.Attempts[i], &e.Attempts[i]
		shown.ResponseBody = a.ResponseBody
		if a.ResponseHeaders != nil {
			shown.ResponseHeaders = &a.ResponseHeaders
		}
		if url = cmp.Or(a.URL, url); url != "" {
			shown.Request = &AttemptRequest{URL: url, Headers: d.sentHeaders(a, url)}
		}
	}
}

// sentHeaders are the headers of an attempt: those of a request, or the attributes of a
// queue's message. A bus got none.
func (d *Delivery) sentHeaders(a *Attempt, url string) map[string]string {
	sent := map[string]string{}
	if a.Signature == "" {
		return sent
	}
	header := Headers(d.EventID, a.At.Std(), nil)
	if _, isARN := ParseARN(url); isARN {
		header.Del("Content-Type")
		header.Del("User-Agent")
	}
	for name := range header {
		sent[name] = header.Get(name)
	}
	sent[HeaderSignature] = a.Signature
	for _, name := range a.OwnHeaders {
		sent[name] = headerMask
	}
	return sent
}
