package webhooks

import (
	"net/http"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const alertsPath = "/developers/applications/{id}/alerts"

func (a *area) alertOperations() []api.Operation {
	return []api.Operation{
		{
			ID: "getApplicationAlerts", Method: http.MethodGet, Path: alertsPath, Access: api.Manager,
			Summary: "Read where an application's alerts go",
			Result:  webhook.ApplicationAlerts{}, Handle: a.alerts,
		},
		{
			ID: "setApplicationAlerts", Method: http.MethodPut, Path: alertsPath, Access: api.Manager,
			Summary: "Set where an application's alerts go",
			Description: "The URL gets endpoint.failing, endpoint.disabling, endpoint.disabled, endpoint.recovered and event.failed of the application's " +
				"endpoints, also of its only one, signed and retried like every event. It counts as one of the application's endpoints; its own failures send no alert. " +
				"Only the answer that creates it shows its secret in full. Another URL keeps the secret, removes the headers of its delivery settings and activates it. " +
				"It also takes webhooks:read, since alerts show endpoints and the history. " +
				"409 limit_reached if the application has the most endpoints, and conflict while another request creates it.",
			Scope: auth.WebhooksWrite, Params: []api.Param{api.IfMatch()},
			Body: webhook.SetAlertsDto{}, Result: webhook.ApplicationAlerts{}, Tagged: true,
			Errors: []int{http.StatusConflict, http.StatusPreconditionFailed}, Audit: audit.ApplicationAlertsSet, Handle: a.setAlerts,
		},
		{
			ID: "deleteApplicationAlerts", Method: http.MethodDelete, Path: alertsPath, Access: api.Manager,
			Summary:     "Remove an application's alert URL",
			Description: "Its pending and held alerts are cancelled; the history stays until it expires.",
			Scope:       auth.WebhooksWrite, Status: http.StatusNoContent,
			Errors: []int{http.StatusConflict}, Audit: audit.ApplicationAlertsRemoved, Handle: a.deleteAlerts,
		},
	}
}

var (
	foundApplication = api.Found[account.Application]("application")
	foundAlerts      = api.Found[webhook.Endpoint]("alert URL")
)

// alertURL reads the endpoint of the alerts of the application that the path
// names; nil when it has none.
func (a *area) alertURL(r *api.Request) (application value.ID, e *webhook.Endpoint, err error) {
	application = r.PathID("id")
	if !manages(r, application) {
		return application, nil, fault.Missing("application")
	}
	if _, err := foundApplication(a.store.Application(r.Context(), r.Organization(), application)); err != nil {
		return application, nil, err
	}
	e, err = a.store.AlertURL(r.Context(), r.Organization(), application)
	return application, e, err
}

func (a *area) alerts(r *api.Request) (*api.Response, error) {
	_, e, err := a.alertURL(r)
	return answerAlerts(foundAlerts(e, err))
}

// answerAlerts shows the alert URL. Its entity tag is that of the endpoint's
// configuration.
func answerAlerts(e *webhook.Endpoint, err error) (*api.Response, error) {
	if err != nil {
		return nil, err
	}
	return &api.Response{JSON: e.ShapeAlerts(), ETag: e.ETag(webhook.Counters{})}, nil
}

func (a *area) setAlerts(r *api.Request) (*api.Response, error) {
	dto, err := a.cfg.Rules.ParseAlerts(r.Body, r.Organization())
	if err != nil {
		return nil, err
	}
	if err := r.CheckHolds(auth.WebhooksRead); err != nil {
		return nil, err
	}
	application, e, err := a.alertURL(r)
	switch {
	case err != nil:
		return nil, err
	case e != nil:
		change := webhook.UpdateWebhookEndpointDto{
			URL:    account.Patch[string]{Given: true, Value: *dto.URL},
			Status: account.Patch[webhook.Status]{Given: true, Value: webhook.Active},
		}
		return answerAlerts(a.changeEndpoint(r, e.ID, nil, func(e *webhook.Endpoint) (*webhook.Endpoint, error) { return e.Update(change, a.now()) }))
	}
	if err := r.CheckIfMatch(""); err != nil {
		return nil, err
	}
	e, secret := webhook.NewAlertURL(r.Organization(), application, dto, a.cfg.Seal, a.now())
	e.ChangedBy = r.Change(application, e.ID)
	if err := a.store.CreateEndpoint(r.Context(), e); err != nil {
		return nil, err
	}
	shape := e.ShapeAlerts()
	shape.Secret = secret
	return &api.Response{JSON: shape, ETag: e.ETag(webhook.Counters{})}, nil
}

func (a *area) deleteAlerts(r *api.Request) (*api.Response, error) {
	_, e, err := a.alertURL(r)
	if e, err = foundAlerts(e, err); err != nil {
		return nil, err
	}
	return a.remove(r, e.ID, fault.Missing("alert URL"))
}
