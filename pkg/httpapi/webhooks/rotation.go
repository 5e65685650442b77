package webhooks

import (
	"net/http"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/httpapi"
	"github.com/commerce-integration/service/pkg/webhook"
)

func (a *area) rotateOperation() httpapi.Operation {
	return httpapi.Operation{
		ID: "rotateWebhookEndpointSecret", Method: http.MethodPost, Path: endpointPath + "/rotate-secret",
		Summary: "Give an endpoint a new secret",
		Description: "This answer is the only one that shows the new secret in full. For 24 hours deliveries carry one signature for each " +
			"secret, separated by spaces in webhook-signature, so that a receiver can change from the old one to the new at any time " +
			"within; then the old one is no longer used. An endpoint has at most 5 secrets that are valid at the same time; past that 409 limit_reached.",
		Scope: auth.WebhooksWrite,
		Params: []httpapi.Param{{
			Name: "If-Match", In: fault.InHeader, Type: "string", Description: "Answers 412 unless one of these entity tags is current; * is any.",
		}},
		Result: webhook.WebhookEndpoint{},
		Errors: []int{http.StatusConflict, http.StatusPreconditionFailed}, Handle: a.rotate,
	}
}

func (a *area) rotate(r *httpapi.Request) (*httpapi.Response, error) {
	application, err := applicationOf(r)
	if err != nil {
		return nil, err
	}
	id := r.PathID("id")
	// The counters are read first: nothing may fail once the secret is stored,
	// or nobody would ever see it.
	counters, err := a.store.Counters(r.Context(), r.Organization(), id)
	if err != nil {
		return nil, err
	}
	var secret string // of the last try, which is the one that is stored
	e, err := a.changeEndpoint(r, application, func(e *webhook.Endpoint) (next *webhook.Endpoint, err error) {
		next, secret, err = e.Rotate(a.cfg.Seal, a.now())
		return next, err
	})
	if err != nil {
		return nil, err
	}
	shape := e.Shape(counters[id])
	shape.Secret = secret
	return &httpapi.Response{JSON: shape, ETag: e.ETag(counters[id])}, nil
}
