package developers

import (
	"context"
	"net/http"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/failures"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// FailureStore keeps failed requests.
type FailureStore interface {
	Failures(ctx context.Context, organization, application value.ID) ([]failures.FailedRequest, error)
}

// FailedRequests are the last failed requests of an application.
type FailedRequests struct {
	Data []failures.FailedRequest `json:"data" doc:"The requests, the latest first, at most 200."`
}

func (a *area) failuresOperation() api.Operation {
	return api.Operation{
		ID: "listFailedRequests", Method: http.MethodGet, Path: applicationPath + "/failed-requests", Tag: applicationsTag, Access: api.Developer,
		Summary: "List an application's failed requests",
		Description: "The last 200 requests with a key or token of the application that were answered with a status of 400 or more, of 7 days. " +
			"Those of a second ago may be missing. When more than 6 fail in a minute, the others follow with a later request, and some are left out. Requests " +
			"without a valid credential, and those that API Gateway refuses by itself, are not here.",
		Scope: auth.DevelopersWrite, Result: FailedRequests{}, Handle: a.failedRequests,
	}
}

func (a *area) failedRequests(r *api.Request) (*api.Response, error) {
	app, err := a.find(r)
	if err != nil {
		return nil, err
	}
	found, err := a.store.Failures(r.Context(), r.Organization(), app.ID)
	return api.Answer(FailedRequests{Data: found}, err)
}
