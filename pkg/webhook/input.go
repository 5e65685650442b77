package webhook

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// Bounds and defaults of an endpoint's settings.
const (
	MaxSubscriptions      = 50
	DefaultRetryCount     = 8
	MinTimeoutSeconds     = 1
	MaxTimeoutSeconds     = 30
	DefaultTimeoutSeconds = 15
)

// CreateWebhookEndpointDto is the input of a new endpoint; url and events
// are required, and null is as absent.
type CreateWebhookEndpointDto struct {
	ApplicationID  *value.ID `json:"applicationId" required:"false" doc:"The same as applicationId of the query, if both are given."`
	URL            *string   `json:"url" nullable:"false" format:"uri" maxLength:"2048" doc:"The URL that receives the events, by https. Ports of other services, such as 25, localhost and addresses that are not public are refused. The addresses behind a host name are checked at every attempt. If the deployment permits it, the target may be a queue or bus of AWS whose name ends with your organizationId: arn:aws:sqs:REGION:ACCOUNT:NAME (a standard queue) or arn:aws:events:REGION:ACCOUNT:event-bus/NAME."`
	Description    *string   `json:"description" required:"false" maxLength:"2000" doc:"Free text."`
	Events         *[]string `json:"events" nullable:"false" minItems:"1" maxItems:"50" uniqueItems:"true" doc:"Types of the catalogue, <resource>.* or *, which is every type except webhook.test and those of stock."`
	RetryCount     *int      `json:"retryCount" required:"false" minimum:"0" maximum:"10" default:"8" doc:"Retries after a failed attempt. The delivery settings can change it."`
	TimeoutSeconds *int      `json:"timeoutSeconds" required:"false" minimum:"1" maximum:"30" default:"15" doc:"The timeout of an attempt. The delivery settings can change it."`
}

// UpdateWebhookEndpointDto is the input of a change; an absent field stays, and only
// the description can be cleared by null.
type UpdateWebhookEndpointDto struct {
	URL         account.Patch[string]   `json:"url" required:"false" nullable:"false" format:"uri" maxLength:"2048" doc:"As on creation. Waiting events are sent to the new URL, and an open circuit is probed at once."`
	Description account.Patch[string]   `json:"description" required:"false" maxLength:"2000" doc:"null clears it."`
	Events      account.Patch[[]string] `json:"events" required:"false" nullable:"false" minItems:"1" maxItems:"50" uniqueItems:"true" doc:"As on creation. Events that are waiting are still sent."`
	Status      account.Patch[Status]   `json:"status" required:"false" nullable:"false" doc:"ACTIVE or PAUSED. DISABLED is accepted only while the endpoint is disabled."`
}

// changeBody also takes the settings that a change may not have, to say so.
type changeBody struct {
	UpdateWebhookEndpointDto
	RetryCount     account.Patch[int] `json:"retryCount"`
	TimeoutSeconds account.Patch[int] `json:"timeoutSeconds"`
}

// Rules are what may differ between deployments.
type Rules struct {
	// AllowPrivateTargets permits http, for local runs.
	AllowPrivateTargets bool
	// Refusal says why nothing can ever be delivered to a host and port, ""
	// when something may; nil refuses none.
	Refusal func(host string, port uint16) string
	// ARNs are the permitted ones.
	ARNs ARNRules
}

// refusal is why nothing can ever be delivered to a URL whose port is valid.
func (r Rules) refusal(u *url.URL) string {
	if r.Refusal == nil {
		return ""
	}
	port := map[string]uint16{"https": 443, "http": 80}[u.Scheme]
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		port = uint16(n)
	}
	return r.Refusal(u.Hostname(), port)
}

// ParseCreate reads the body of a creation for the organization's application.
// An error is a fault that names each field that is wrong.
func (r Rules) ParseCreate(body []byte, org, application value.ID) (CreateWebhookEndpointDto, error) {
	c, dto := checks{rules: r, org: org}, CreateWebhookEndpointDto{}
	if err := c.Read(body, &dto); err != nil {
		return CreateWebhookEndpointDto{}, err
	}
	c.Refuse(dto.ApplicationID != nil && *dto.ApplicationID != application, "applicationId", fault.DetailNotAllowed,
		"must be that of the query; leave it out of the body")
	c.Refuse(dto.URL == nil, "url", fault.DetailRequired, "is required")
	c.url(dto.URL)
	c.Description(dto.Description)
	c.Refuse(dto.Events == nil, "events", fault.DetailRequired, "is required")
	c.events(dto.Events)
	c.within("retryCount", dto.RetryCount, 0, MaxRetryCount)
	c.within("timeoutSeconds", dto.TimeoutSeconds, MinTimeoutSeconds, MaxTimeoutSeconds)
	return dto, c.Err()
}

// ParseUpdate reads the body of a change of an endpoint of the organization.
func (r Rules) ParseUpdate(body []byte, org value.ID) (UpdateWebhookEndpointDto, error) {
	c, in := checks{rules: r, org: org}, changeBody{}
	if err := c.Read(body, &in); err != nil {
		return UpdateWebhookEndpointDto{}, err
	}
	dto := in.UpdateWebhookEndpointDto
	const fixed = "is not part of this change: set it by PUT /developers/webhooks/endpoints/{id}/delivery"
	c.Refuse(in.RetryCount.Given, "retryCount", fault.DetailNotAllowed, fixed)
	c.Refuse(in.TimeoutSeconds.Given, "timeoutSeconds", fault.DetailNotAllowed, fixed)
	const kept = "cannot be cleared: leave it out to keep it"
	c.Refuse(dto.URL.Null, "url", fault.DetailNotAllowed, kept)
	c.Refuse(dto.Events.Null, "events", fault.DetailNotAllowed, kept)
	c.Refuse(dto.Status.Null, "status", fault.DetailNotAllowed, kept)
	c.url(dto.URL.Pointer())
	c.Description(dto.Description.Pointer())
	c.events(dto.Events.Pointer())
	status := dto.Status.Pointer()
	c.Refuse(status != nil && !slices.Contains(Status.Values(""), string(*status)), "status", fault.DetailFormat, "must be ACTIVE or PAUSED")
	return dto, c.Err()
}

// NewEndpoint makes an endpoint of the application. seal encrypts the
// secret's text for a purpose; the text itself is returned for the
// creation's answer only.
func NewEndpoint(org, application value.ID, dto CreateWebhookEndpointDto, seal func(plain []byte, purpose string) string, now value.Time) (*Endpoint, string) {
	id, text := value.NewID(), NewSecretText()
	e := &Endpoint{
		ID: id, ApplicationID: application, OrganizationID: org,
		URL: *dto.URL, Description: dto.Description, Status: Active, SubscribedEvents: *dto.Events,
		RetryCount: value.Or(dto.RetryCount, DefaultRetryCount), TimeoutSeconds: value.Or(dto.TimeoutSeconds, DefaultTimeoutSeconds),
		KeptSecrets: KeptSecrets{Secret: KeepSecret(text, seal([]byte(text), SecretPurpose(id)))}, CreatedAt: now, UpdatedAt: now, HealthSince: now,
	}
	return e, text
}

// Update returns the endpoint after a change; the same endpoint when nothing
// differs. After another url or an activation its health starts anew, and an
// open circuit is probed at once. Only the service sets DISABLED, so it is
// refused unless the endpoint is DISABLED; the events of an alert URL are fixed.
func (e *Endpoint) Update(dto UpdateWebhookEndpointDto, now value.Time) (*Endpoint, error) {
	next := *e
	if dto.URL.Given {
		next.URL = dto.URL.Value
	}
	if dto.Description.Given {
		next.Description = dto.Description.Pointer()
	}
	if dto.Events.Given && e.Alerts {
		return nil, fault.Field(fault.InBody, "events", fault.DetailNotAllowed, "must be left out: an alert URL gets every alert")
	}
	if dto.Events.Given {
		next.SubscribedEvents = dto.Events.Value
		if details := e.Delivery.misfits(next.SubscribedEvents); len(details) > 0 {
			return nil, fault.Field(fault.InBody, "events", fault.DetailNotAllowed,
				"must include an event that has what the delivery settings name in %s: change those first", details[0].Field)
		}
	}
	if dto.Status.Given && dto.Status.Value != e.Status {
		if dto.Status.Value == Disabled {
			return nil, fault.Field(fault.InBody, "status", fault.DetailNotAllowed, "must be ACTIVE or PAUSED: only the service disables an endpoint")
		}
		next.Status, next.DisabledReason = dto.Status.Value, nil
	}
	if next.EqualConfig(e) {
		return e, nil
	}
	next.UpdatedAt = max(now, e.UpdatedAt+1)
	if next.URL != e.URL {
		next.Delivery.Headers = nil // they are shown masked: only the receiver that they were set for gets them
	}
	if next.URL != e.URL || next.Status == Active && e.Status != Active {
		next.HealthSince, next.Circuit = now, e.Circuit.OwnerReset(now)
	}
	return &next, nil
}

// checks collects the faults of a body.
type checks struct {
	account.Checks
	rules Rules
	org   value.ID
}

func (c *checks) url(text *string) {
	if text == nil {
		return
	}
	*text = strings.TrimSpace(*text)
	if strings.HasPrefix(*text, "arn:") {
		c.arn(*text)
		return
	}
	u, err := url.Parse(*text)
	switch {
	case utf8.RuneCountInString(*text) > account.MaxURL:
		c.Add("url", fault.DetailOutOfRange, "must have at most %d characters", account.MaxURL)
	case err != nil || u.Opaque != "" || !account.ValidHost(u) || strings.ContainsAny(*text, " \t\r\n"):
		c.Add("url", fault.DetailFormat, "must be an absolute URL such as https://example.com/path")
	case u.Scheme != "https" && (u.Scheme != "http" || !c.rules.AllowPrivateTargets):
		c.Add("url", fault.DetailFormat, "must start with https://")
	case u.User != nil:
		c.Add("url", fault.DetailFormat, "must not hold a user name or password: deliveries are signed")
	default:
		if reason := c.rules.refusal(u); reason != "" {
			c.Add("url", fault.DetailNotAllowed, "must be one that deliveries can reach: %s", reason)
		}
	}
}

func (c *checks) arn(text string) {
	a, ok := ParseARN(text)
	if !ok {
		c.Add("url", fault.DetailFormat, "must be arn:aws:sqs:REGION:ACCOUNT:NAME or arn:aws:events:REGION:ACCOUNT:event-bus/NAME, or start with https://")
	} else if reason := c.rules.ARNs.Refusal(a, c.org); reason != "" {
		c.Add("url", fault.DetailNotAllowed, "must %s", reason)
	}
}

func (c *checks) events(given *[]string) {
	if given == nil {
		return
	}
	types := *given
	if len(types) < 1 || len(types) > MaxSubscriptions {
		c.Add("events", fault.DetailOutOfRange, "must have 1 to %d entries", MaxSubscriptions)
		return
	}
	for i, t := range types {
		field := fmt.Sprintf("events[%d]", i)
		switch {
		case slices.Contains(types[:i], t):
			c.Add(field, fault.DetailDuplicate, "must be given once")
		case !commerce.ValidSubscription(t):
			c.Add(field, fault.DetailUnknown, "must be a type of the catalogue (GET /developers/webhooks/event-types), <resource>.* or *")
		}
	}
}

func (c *checks) within(field string, n *int, low, high int) {
	if n != nil && (*n < low || *n > high) {
		c.Add(field, fault.DetailOutOfRange, "must be between %d and %d", low, high)
	}
}
