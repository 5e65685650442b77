package webhook

import (
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// SetAlertsDto is the input of an application's alert URL, as it is documented.
type SetAlertsDto struct {
	URL *string `json:"url" nullable:"false" format:"uri" maxLength:"2048" doc:"The URL that receives the application's alerts, by https. The rules for the URL of an endpoint apply."`
}

// ApplicationAlerts is an application's alert URL as the API shows it.
type ApplicationAlerts struct {
	URL        string     `json:"url" doc:"The URL that receives the application's alerts."`
	Status     Status     `json:"status" doc:"As for an endpoint: DISABLED after five days without a success, or after a 410. Setting the URL activates it."`
	EndpointID value.ID   `json:"endpointId" doc:"The id of the endpoint behind the alert URL. It is not listed; every endpoint operation except changing its events works on it."`
	Secret     string     `json:"secret" doc:"The signing secret: whole only in the answer that creates it, then masked: whsec_****Jw3k."`
	CreatedAt  value.Time `json:"createdAt"`
	UpdatedAt  value.Time `json:"updatedAt"`
}

// ParseAlerts reads the body that sets an alert URL of the organization.
func (r Rules) ParseAlerts(body []byte, org value.ID) (SetAlertsDto, error) {
	c, dto := checks{rules: r, org: org}, SetAlertsDto{}
	if err := c.Read(body, &dto); err != nil {
		return SetAlertsDto{}, err
	}
	c.Refuse(dto.URL == nil, "url", fault.DetailRequired, "is required")
	c.url(dto.URL)
	return dto, c.Err()
}

// NewAlertURL makes the endpoint of an application that gets its alerts, as
// [NewEndpoint] does.
func NewAlertURL(org, application value.ID, dto SetAlertsDto, seal func(plain []byte, purpose string) string, now value.Time) (*Endpoint, string) {
	e, secret := NewEndpoint(org, application, CreateWebhookEndpointDto{URL: dto.URL, Events: &[]string{"endpoint.*", "event.*"}}, seal, now)
	e.Alerts = true
	return e, secret
}

// ShapeAlerts shows the alert URL that the endpoint is, its secret masked.
func (e *Endpoint) ShapeAlerts() ApplicationAlerts {
	return ApplicationAlerts{
		URL: e.URL, Status: e.Status, EndpointID: e.ID, Secret: e.Secret.Masked(), CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
	}
}
