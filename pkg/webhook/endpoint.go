package webhook

import (
	"slices"
	"strconv"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Limits of endpoints.
const (
	MaxEndpoints               = 500 // of an organization
	MaxEndpointsPerApplication = 50
)

// Status is an endpoint's status.
type Status string

// The statuses of an endpoint.
const (
	Active   Status = "ACTIVE"
	Paused   Status = "PAUSED"   // by its owner
	Disabled Status = "DISABLED" // by the service
)

// Values lists every status of an endpoint.
func (Status) Values() []string { return []string{string(Active), string(Paused), string(Disabled)} }

// Endpoint is an integrator's URL and what it wants to hear of.
type Endpoint struct {
	ID               value.ID   `json:"id"`
	ApplicationID    value.ID   `json:"applicationId"`
	OrganizationID   value.ID   `json:"organizationId"`
	URL              string     `json:"url"`
	Description      *string    `json:"description"`
	Status           Status     `json:"status"`
	SubscribedEvents []string   `json:"subscribedEvents"`
	RetryCount       int        `json:"retryCount"`
	TimeoutSeconds   int        `json:"timeoutSeconds"`
	Secret           Secret     `json:"secret"`
	CreatedAt        value.Time `json:"createdAt"`
	UpdatedAt        value.Time `json:"updatedAt"` // of the configuration; rises with every change
	// Alerts tells that it is the alert URL of its application, which lists do
	// not show and of which nothing is announced.
	Alerts bool `json:"alerts,omitzero"`
	// DisabledReason tells why the service disabled the endpoint.
	DisabledReason *string `json:"disabledReason"`
	// PreviousSecrets were replaced by Secret and sign beside it for a while,
	// the newest first.
	PreviousSecrets []PreviousSecret `json:"previousSecrets,omitempty"`
	// HealthSince is when the endpoint was created, activated or got another
	// url: what was before tells nothing of how it does. 0 means CreatedAt.
	HealthSince value.Time `json:"healthSince,omitzero"`
	// Delivery says which of the events it gets, and what of them.
	Delivery DeliverySettings `json:"delivery,omitzero"`

	// Circuit, Lane and Alert are no part of the doc: deliveries change them
	// while the owner changes the doc.
	Circuit *Circuit `json:"-"`
	Lane    Lane     `json:"-"`
	Alert   Alert    `json:"-"`
}

// PermitHolders is how many instances of the worker may have attempts of the
// same endpoint under way in the main lane.
const PermitHolders = 5

// Disable returns the endpoint as the service disables it, without its
// circuit: its events are held anyway.
func (e *Endpoint) Disable(reason string, now value.Time) *Endpoint {
	next := *e
	next.Status, next.DisabledReason, next.Circuit = Disabled, &reason, nil
	next.UpdatedAt = max(now, e.UpdatedAt+1)
	return &next
}

// EqualConfig reports whether both show the same to their owner, times of
// change apart.
func (e *Endpoint) EqualConfig(o *Endpoint) bool {
	sameDescription := e.Description == nil && o.Description == nil ||
		e.Description != nil && o.Description != nil && *e.Description == *o.Description
	return sameDescription && e.URL == o.URL && e.Status == o.Status &&
		slices.Equal(e.SubscribedEvents, o.SubscribedEvents)
}

// Hold tells why events of the endpoint must wait; "" when they need not.
// The application must be one that exists.
func (e *Endpoint) Hold(application ApplicationState) HeldReason {
	switch {
	case application == ApplicationSuspended:
		return HeldSuspended
	case e.Status == Paused:
		return HeldPaused
	case e.Status == Disabled:
		return HeldDisabled
	case e.Circuit.Open():
		return HeldCircuitOpen
	}
	return ""
}

// ApplicationState is what deliveries need to know of an application.
type ApplicationState uint8

// The states of an application.
const (
	ApplicationAbsent ApplicationState = iota
	ApplicationActive
	ApplicationSuspended
)

// WebhookEndpoint is an endpoint as the API shows it.
type WebhookEndpoint struct { //nolint:revive // the contract's name
	ID                value.ID    `json:"id"`
	ApplicationID     value.ID    `json:"applicationId" doc:"The application that it belongs to."`
	OrganizationID    value.ID    `json:"organizationId"`
	URL               string      `json:"url" doc:"Where events are sent."`
	Description       *string     `json:"description" doc:"Free text. null when it has none."`
	Status            Status      `json:"status" doc:"PAUSED is its owner's doing, DISABLED the service's; either way its events are held. An open enumeration."`
	SubscribedEvents  []string    `json:"subscribedEvents" doc:"The types that it gets: types of the catalogue, <resource>.* or *."`
	RetryCount        int         `json:"retryCount" doc:"How often a failed event is retried, 0 to 10. Set when it was created, and by its delivery settings."`
	TimeoutSeconds    int         `json:"timeoutSeconds" doc:"How many seconds an attempt may take, 1 to 30. Set as retryCount."`
	SuccessCount      int64       `json:"successCount" doc:"Attempts that were answered 2xx, since it was created."`
	FailureCount      int64       `json:"failureCount" doc:"Attempts that were not, since it was created."`
	LastSuccessAt     *value.Time `json:"lastSuccessAt" doc:"When an attempt was last answered 2xx. null before the first."`
	LastFailureAt     *value.Time `json:"lastFailureAt" doc:"When an attempt last failed. null before the first."`
	LastFailureReason *string     `json:"lastFailureReason" doc:"Why it failed then; stays after a success. null before the first failure."`
	Secret            string      `json:"secret" doc:"The key of its signatures: in full only in the answer that makes it, afterwards masked: whsec_****Jw3k."`
	CreatedAt         value.Time  `json:"createdAt"`
	UpdatedAt         value.Time  `json:"updatedAt" doc:"When its settings were last changed; deliveries do not move it."`
}

// Shape joins the endpoint with its counters, the secret masked.
func (e *Endpoint) Shape(c Counters) WebhookEndpoint {
	return WebhookEndpoint{
		ID: e.ID, ApplicationID: e.ApplicationID, OrganizationID: e.OrganizationID,
		URL: e.URL, Description: e.Description, Status: e.Status, SubscribedEvents: e.SubscribedEvents,
		RetryCount: e.RetryCount, TimeoutSeconds: e.TimeoutSeconds,
		SuccessCount: c.SuccessCount, FailureCount: c.FailureCount,
		LastSuccessAt: c.LastSuccessAt, LastFailureAt: c.LastFailureAt, LastFailureReason: c.LastFailureReason,
		Secret: e.Secret.Masked(), CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	}
}

// ETag is "<config>.<counters>": the first part changes with the
// configuration, the second with deliveries.
func (e *Endpoint) ETag(c Counters) string {
	last := func(t *value.Time) string {
		if t == nil {
			return ""
		}
		return strconv.FormatInt(int64(*t), 36)
	}
	return `"` + strconv.FormatInt(int64(e.UpdatedAt), 36) + "." +
		strconv.FormatInt(c.SuccessCount, 36) + "-" + strconv.FormatInt(c.FailureCount, 36) + "-" +
		last(c.LastSuccessAt) + "-" + last(c.LastFailureAt) + `"`
}
