package webhooks

import (
	"net/http"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	endpointsPath = "/developers/webhooks/endpoints"
	endpointPath  = endpointsPath + "/{id}"

	// maxBeforeAnswer is how many deliveries an operation works on before it
	// answers. The sweeper continues with the rest.
	maxBeforeAnswer = 1000
)

func (a *area) endpointOperations() []api.Operation {
	required := itemParam()
	required.Required, required.Description = true, "The application that the endpoint belongs to."
	conflicts := []int{http.StatusConflict}
	return []api.Operation{
		{
			ID: "createWebhookEndpoint", Method: http.MethodPost, Path: endpointsPath,
			Summary:     "Create a webhook endpoint",
			Description: "An application can have 50 endpoints, an organization 500. This answer is the only one that shows the secret in full." + takesReads,
			Scope:       auth.WebhooksWrite, Params: []api.Param{required}, Body: webhook.CreateWebhookEndpointDto{},
			Result: webhook.WebhookEndpoint{}, Status: http.StatusCreated, Tagged: true,
			Errors: []int{http.StatusNotFound, http.StatusConflict}, Audit: audit.EndpointCreated, Handle: a.createEndpoint,
		},
		{
			ID: "listWebhookEndpoints", Method: http.MethodGet, Path: endpointsPath,
			Summary: "List the webhook endpoints", List: webhook.EndpointList(),
			Result: api.Page[webhook.WebhookEndpoint]{}, Handle: a.listEndpoints,
		},
		{
			ID: "getWebhookEndpoint", Method: http.MethodGet, Path: endpointPath,
			Summary:     "Read a webhook endpoint",
			Description: "The ETag has two parts, \"configuration.counters\"; If-Match compares the first only, so that deliveries do not disturb an edit.",
			Result:      webhook.WebhookEndpoint{}, Handle: a.getEndpoint,
		},
		{
			ID: "updateWebhookEndpoint", Method: http.MethodPatch, Path: endpointPath,
			Summary: "Change a webhook endpoint",
			Description: "An absent field stays as it is; null clears the description. PAUSED holds its events until they are recovered; " +
				"ACTIVE also ends a DISABLED that the service has set. Where it becomes ACTIVE or gets another url, an open circuit is probed at once. " +
				"retryCount and timeoutSeconds are changed by the endpoint's delivery settings. " +
				"Another url gets none of their headers, which are removed: set them again. " +
				"To change url or events takes the read scopes of the kinds of records that the endpoint gets before and after, and another url those of what its history holds, too; alerts take webhooks:read: " +
				"403 names those that you lack.",
			Scope: auth.WebhooksWrite, Body: webhook.UpdateWebhookEndpointDto{},
			Result: webhook.WebhookEndpoint{}, Tagged: true,
			Errors: conflicts, Audit: audit.EndpointUpdated, Handle: a.updateEndpoint,
		},
		{
			ID: "deleteWebhookEndpoint", Method: http.MethodDelete, Path: endpointPath,
			Summary:     "Delete a webhook endpoint",
			Description: "Its pending and held events are cancelled; the history stays until it expires.",
			Scope:       auth.WebhooksWrite, Status: http.StatusNoContent,
			Errors: conflicts, Audit: audit.EndpointDeleted, Handle: a.deleteEndpoint,
		},
		{
			ID: "rotateWebhookEndpointSecret", Method: http.MethodPost, Path: endpointPath + "/rotate-secret",
			Summary: "Give an endpoint a new secret",
			Description: "This answer is the only one that shows the new secret in full. For overlapHours deliveries carry one signature for each " +
				"secret, separated by spaces in webhook-signature, so that a receiver can change from the old one to the new at any time " +
				"within; then the old one is no longer used. Another rotation ends it at once: an endpoint has at most two secrets." + takesReads,
			Scope: auth.WebhooksWrite, Params: []api.Param{api.IfMatch()}, Body: RotateSecretDto{}, EmptyBody: true,
			Result: webhook.WebhookEndpoint{}, Tagged: true,
			Errors: []int{http.StatusConflict, http.StatusPreconditionFailed}, Audit: audit.EndpointSecretRotated, Handle: a.rotate,
		},
	}
}

func (a *area) createEndpoint(r *api.Request) (*api.Response, error) {
	application, given := r.ID(applicationParam)
	if !given {
		return nil, fault.Field(fault.InQuery, applicationParam, fault.DetailRequired, "is required: send applicationId in the query")
	}
	dto, err := a.cfg.Rules.ParseCreate(r.Body, r.Organization(), application)
	if err != nil {
		return nil, err
	}
	if err := r.CheckHolds(readScopes(*dto.Events...)...); err != nil {
		return nil, err
	}
	if !manages(r, application) {
		return nil, fault.Missing("application")
	}
	e, secret := webhook.NewEndpoint(r.Organization(), application, dto, a.cfg.Seal, a.now())
	e.ChangedBy = r.Change(application, e.ID)
	shape := e.Shape(webhook.Counters{})
	shape.Secret = secret
	return r.Create(endpointsPath+"/"+e.ID.String(), shape, e.ETag(webhook.Counters{}), func(kept *idempotency.Kept) error {
		return a.store.CreateEndpoint(r.Context(), e, kept)
	})
}

func (a *area) listEndpoints(r *api.Request) (*api.Response, error) {
	all, err := a.seen(r)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(e *webhook.Endpoint) bool { return e.Alerts })
	byID := make(map[value.ID]*webhook.Endpoint, len(all))
	for _, e := range all {
		byID[e.ID] = e
	}
	found := webhook.EndpointView(all).Query(r.List.Index())
	ids := lists.HitIDs(found.Hits)
	counters, err := a.store.Counters(r.Context(), r.Organization(), ids...)
	if err != nil {
		return nil, err
	}
	page := make([]webhook.WebhookEndpoint, len(ids))
	for i, id := range ids {
		page[i] = byID[id].Shape(counters[id])
	}
	return api.AnswerPage(r, page, found.Total, api.LastOf(r.List, found.Hits))
}

// seen reads the endpoints that the caller may know of.
func (a *area) seen(r *api.Request) ([]*webhook.Endpoint, error) {
	all, err := a.store.Endpoints(r.Context(), r.Organization())
	return slices.DeleteFunc(all, func(e *webhook.Endpoint) bool { return !sees(r, e) }), err
}

// foundEndpoint makes an endpoint that is not there a 404.
var foundEndpoint = api.Found[webhook.Endpoint]("webhook endpoint")

func errNoEndpoint() error { return fault.Missing("webhook endpoint") }

// endpoint reads the endpoint that the path and applicationId name.
func (a *area) endpoint(r *api.Request) (*webhook.Endpoint, error) {
	e, err := foundEndpoint(a.store.Endpoint(r.Context(), r.Organization(), r.PathID("id")))
	if err != nil {
		return nil, err
	}
	return e, ofApplication(r, e)
}

// ofApplication answers 404 when the endpoint is not of the application that the
// query names, or is none that the caller sees.
func ofApplication(r *api.Request, e *webhook.Endpoint) error {
	if application, given := r.ID(applicationParam); given && e.ApplicationID != application || !sees(r, e) {
		return errNoEndpoint()
	}
	return nil
}

// answerEndpoint shows the endpoint with its counters.
func (a *area) answerEndpoint(r *api.Request, e *webhook.Endpoint, err error) (*api.Response, error) {
	if err != nil {
		return nil, err
	}
	counters, err := a.store.Counters(r.Context(), r.Organization(), e.ID)
	if err != nil {
		return nil, err
	}
	return &api.Response{JSON: e.Shape(counters[e.ID]), ETag: e.ETag(counters[e.ID])}, nil
}

func (a *area) getEndpoint(r *api.Request) (*api.Response, error) {
	e, err := a.endpoint(r)
	return a.answerEndpoint(r, e, err)
}

func (a *area) updateEndpoint(r *api.Request) (*api.Response, error) {
	dto, err := a.cfg.Rules.ParseUpdate(r.Body, r.Organization())
	if err != nil {
		return nil, err
	}
	e, err := a.changeEndpoint(r, r.PathID("id"), a.readsChanged(r, &dto), func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		return e.Update(dto, a.now())
	})
	return a.answerEndpoint(r, e, err)
}

// changeEndpoint stores what change makes of the endpoint, once its
// application, what else the caller needs and the precondition have been checked.
// A circuit whose probe becomes due by the change is probed; should that fail, the
// sweeper does.
func (a *area) changeEndpoint(
	r *api.Request, id value.ID, permitted func(*webhook.Endpoint) error, change func(*webhook.Endpoint) (*webhook.Endpoint, error),
) (*webhook.Endpoint, error) {
	probed := false
	e, err := foundEndpoint(a.store.ChangeEndpoint(r.Context(), r.Organization(), id,
		func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
			if err := checkChange(r, e, permitted); err != nil {
				return nil, err
			}
			next, err := change(e)
			if err == nil {
				next.ChangedBy = r.Change(e.ApplicationID, e.ID)
				hold, _ := webhook.MaySend(next, webhook.ApplicationActive)
				probed = hold == webhook.HeldCircuitOpen && !next.Circuit.Equal(e.Circuit)
			}
			return next, err
		}))
	if err == nil && probed && a.checkNotSuspended(r, e) == nil {
		_ = a.cfg.Backlog.Probe(r.Context(), e)
	}
	return e, err
}

// checkChange checks the application, then what else the caller needs, and then
// the precondition of a change.
func checkChange(r *api.Request, e *webhook.Endpoint, permitted func(*webhook.Endpoint) error) error {
	if err := ofApplication(r, e); err != nil {
		return err
	}
	if permitted != nil {
		if err := permitted(e); err != nil {
			return err
		}
	}
	return r.CheckIfMatchPrefix(e.ETag(webhook.Counters{}))
}

func (a *area) deleteEndpoint(r *api.Request) (*api.Response, error) {
	return a.remove(r, r.PathID("id"), errNoEndpoint())
}

// remove deletes an endpoint; absent is the answer when there is none.
func (a *area) remove(r *api.Request, id value.ID, absent error) (*api.Response, error) {
	deleted, err := a.store.DeleteEndpoint(r.Context(), r.Organization(), id, func(e *webhook.Endpoint) error {
		e.ChangedBy = r.Change(e.ApplicationID, e.ID)
		return checkChange(r, e, nil)
	})
	if err != nil {
		return nil, err
	}
	if !deleted {
		return nil, absent
	}
	// The endpoint is gone even when this first step fails: the sweeper looks
	// for its deliveries again.
	_ = a.cfg.Backlog.Cancel(r.Context(), r.Organization(), id, maxBeforeAnswer)
	return api.NoContent()
}

// RotateSecretDto is the input of a rotation of an endpoint's secret.
type RotateSecretDto struct {
	OverlapHours *int `json:"overlapHours" required:"false" minimum:"0" maximum:"168" default:"24" doc:"For how many hours the old secret signs, too. 0 ends it at once, as for a secret that others know."`
}

func rotationOverlap(body []byte) (time.Duration, error) {
	var dto RotateSecretDto
	if err := readOptional(body, &dto); err != nil {
		return 0, err
	}
	hours := value.Or(dto.OverlapHours, webhook.DefaultOverlapHours)
	if hours < 0 || hours > webhook.MaxOverlapHours {
		return 0, fault.Field(fault.InBody, "overlapHours", fault.DetailOutOfRange, "must be between 0 and %d", webhook.MaxOverlapHours)
	}
	return time.Duration(hours) * time.Hour, nil
}

func (a *area) rotate(r *api.Request) (*api.Response, error) {
	id := r.PathID("id")
	overlap, err := rotationOverlap(r.Body)
	if err != nil {
		return nil, err
	}
	// The counters are read first: nothing may fail once the secret is stored,
	// or nobody would ever see it.
	counters, err := a.store.Counters(r.Context(), r.Organization(), id)
	if err != nil {
		return nil, err
	}
	var secret string // of the last try, which is the one that is stored
	e, err := a.changeEndpoint(r, r.PathID("id"), readsAll(r), func(e *webhook.Endpoint) (next *webhook.Endpoint, err error) {
		next, secret = e.Rotate(overlap, a.cfg.Seal, a.now())
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	shape := e.Shape(counters[id])
	shape.Secret = secret
	return &api.Response{JSON: shape, ETag: e.ETag(counters[id])}, nil
}
