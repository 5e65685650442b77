package webhook

import (
	"slices"
	"strconv"

	"github.com/commerce-integration/service/pkg/account"
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
	ID               value.ID `json:"id"`
	ApplicationID    value.ID `json:"applicationId"`
	OrganizationID   value.ID `json:"organizationId"`
	URL              string   `json:"url"`
	Description      *string  `json:"description"`
	Status           Status   `json:"status"`
	SubscribedEvents []string `json:"subscribedEvents"`
	RetryCount       int      `json:"retryCount"`
	TimeoutSeconds   int      `json:"timeoutSeconds"`
	KeptSecrets
	CreatedAt value.Time `json:"createdAt"`
	UpdatedAt value.Time `json:"updatedAt"` // of the configuration; rises with every change
	// Alerts says that it is the alert URL of its application, which lists do
	// not show and of which nothing is announced.
	Alerts bool `json:"alerts,omitzero"`
	// DisabledReason says why the service disabled the endpoint.
	DisabledReason *string `json:"disabledReason"`
	// HealthSince is when the endpoint was created, activated or got another
	// url: earlier attempts say nothing about it. 0 means CreatedAt.
	HealthSince value.Time `json:"healthSince,omitzero"`
	// Delivery says which of the events it gets, and what of them.
	Delivery DeliverySettings `json:"delivery,omitzero"`

	// Circuit, Lane and Alert are not part of the doc: deliveries change them
	// while the owner changes the doc.
	Circuit *Circuit `json:"-"`
	Lane    Lane     `json:"-"`
	Alert   Alert    `json:"-"`

	// ChangedBy is the change by which it is being stored; nil where that is not for
	// the audit trail. The store never returns one.
	ChangedBy *account.AuditEntry `json:"-"`
}

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

// MaySend says whether events of an endpoint may be sent: not at all when it, which
// is nil then, or its application is gone; and not now while there is a reason to
// hold them.
func MaySend(e *Endpoint, application ApplicationState) (hold HeldReason, gone bool) {
	switch {
	case e == nil || application == ApplicationAbsent:
		return "", true
	case application == ApplicationSuspended:
		return HeldSuspended, false
	case e.Status == Paused:
		return HeldPaused, false
	case e.Status == Disabled:
		return HeldDisabled, false
	case e.Circuit.Open():
		return HeldCircuitOpen, false
	}
	return "", false
}

// ApplicationState is what deliveries need to know of an application.
type ApplicationState uint8

// The states of an application.
const (
	ApplicationAbsent ApplicationState = iota
	ApplicationActive
	ApplicationSuspended
)

// StateOf is the state of an application; nil is absent.
func StateOf(a *account.Application) ApplicationState {
	switch {
	case a == nil:
		return ApplicationAbsent
	case a.Status == account.Suspended:
		return ApplicationSuspended
	}
	return ApplicationActive
}

// WebhookEndpoint is an endpoint as the API shows it.
type WebhookEndpoint struct { //nolint:revive // the contract's name
	ID                value.ID    `json:"id"`
	ApplicationID     value.ID    `json:"applicationId" doc:"The application that it belongs to."`
	OrganizationID    value.ID    `json:"organizationId"`
	URL               string      `json:"url" doc:"The URL that receives the events."`
	Description       *string     `json:"description" doc:"Free text. null if none."`
	Status            Status      `json:"status" doc:"PAUSED by the owner, DISABLED by the service; events are held in both. An open enumeration."`
	SubscribedEvents  []string    `json:"subscribedEvents" doc:"The subscribed types: types of the catalogue, <resource>.* or *."`
	RetryCount        int         `json:"retryCount" doc:"The number of retries of a failed event, 0 to 10. It is set at creation and by the delivery settings."`
	TimeoutSeconds    int         `json:"timeoutSeconds" doc:"The timeout of an attempt in seconds, 1 to 30. It is set like retryCount."`
	SuccessCount      int64       `json:"successCount" doc:"Attempts answered 2xx since the endpoint was created."`
	FailureCount      int64       `json:"failureCount" doc:"Failed attempts since the endpoint was created."`
	LastSuccessAt     *value.Time `json:"lastSuccessAt" doc:"The time of the last attempt answered 2xx. null before the first."`
	LastFailureAt     *value.Time `json:"lastFailureAt" doc:"The time of the last failed attempt. null before the first."`
	LastFailureReason *string     `json:"lastFailureReason" doc:"The error of the last failure, also after a success. null before the first failure."`
	Secret            string      `json:"secret" doc:"The signing secret: whole only in the answer that creates it, then masked: whsec_****Jw3k."`
	CreatedAt         value.Time  `json:"createdAt"`
	UpdatedAt         value.Time  `json:"updatedAt" doc:"When the settings were last changed. Deliveries leave it as it is."`
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
