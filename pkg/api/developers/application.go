package developers

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/lists"
)

const (
	applicationsPath = "/developers/applications"
	applicationPath  = applicationsPath + "/{id}"
	applicationsTag  = "Applications"
)

func (a *area) applicationOperations() []api.Operation {
	conflict, changed := []int{http.StatusConflict}, []int{http.StatusConflict, http.StatusPreconditionFailed}
	operations := []api.Operation{
		{
			ID: "createApplication", Method: http.MethodPost, Path: applicationsPath,
			Summary: "Create an application",
			Description: "An organization can have 100 applications. Only this answer shows clientSecret in full. Its tokens get the caller's " +
				"read scopes, of which the caller needs at least one; an owner or admin sets others.",
			Scope: auth.DevelopersWrite, Body: account.CreateApplicationDto{}, Status: http.StatusCreated, Errors: conflict, Audit: audit.ApplicationCreated, Handle: a.createApplication,
		},
		{
			ID: "listApplications", Method: http.MethodGet, Path: applicationsPath,
			Summary: "List the applications", Scope: auth.DevelopersRead,
			List: declare("applications", account.Statuses(), lists.ByText("name")), Result: api.Page[account.Application]{}, Handle: a.listApplications,
		},
		{
			ID: "getApplication", Method: http.MethodGet, Path: applicationPath,
			Summary: "Read an application", Scope: auth.DevelopersRead, Handle: a.readApplication,
		},
		{
			ID: "updateApplication", Method: http.MethodPatch, Path: applicationPath,
			Summary:     "Change an application",
			Description: "An absent field stays as it is; null clears description, website and redirectUri.",
			Scope:       auth.DevelopersWrite, Body: account.UpdateApplicationDto{}, Errors: conflict, Audit: audit.ApplicationUpdated, Handle: a.updateApplication,
		},
		{
			ID: "deleteApplication", Method: http.MethodDelete, Path: applicationPath,
			Summary:     "Delete an application",
			Description: "Its API keys stop working within 5 s, its webhook endpoints are deleted and their pending events cancelled.",
			Scope:       auth.DevelopersWrite, Status: http.StatusNoContent, Errors: conflict, Audit: audit.ApplicationDeleted, Handle: a.removeApplication,
		},
		{
			ID: "suspendApplication", Method: http.MethodPost, Path: applicationPath + "/suspend",
			Summary:     "Suspend an application",
			Description: "Within 5 s its keys and tokens are refused, and the events of its endpoints are held.",
			Scope:       auth.DevelopersAdmin, Params: []api.Param{api.IfMatch()}, Errors: changed, Audit: audit.ApplicationSuspended, Handle: a.setStatus(account.Suspended),
		},
		{
			ID: "activateApplication", Method: http.MethodPost, Path: applicationPath + "/activate",
			Summary:     "Activate a suspended application",
			Description: "Its keys and tokens work again. Held events stay held until they are recovered.",
			Scope:       auth.DevelopersAdmin, Params: []api.Param{api.IfMatch()}, Errors: changed, Audit: audit.ApplicationActivated, Handle: a.setStatus(account.Active),
		},
	}
	for i := range operations {
		op := &operations[i]
		op.Tag, op.Access = applicationsTag, api.Developer
		if op.Result == nil && op.Status != http.StatusNoContent {
			op.Result, op.Tagged = account.Application{}, true
		}
	}
	return operations
}

// etag is the entity tag of an application or its token scopes: that of the body,
// as reading it answers.
func etag(shown any) (string, error) {
	body, err := json.Marshal(shown, json.Deterministic(true))
	return api.ETagOf(body), err
}

// checkIfMatch is the precondition of a change of either.
func checkIfMatch(r *api.Request, shown any) error {
	tag, err := etag(shown)
	if err != nil {
		return err
	}
	return r.CheckIfMatch(tag)
}

func (a *area) createApplication(r *api.Request) (*api.Response, error) {
	dto, err := account.ParseCreateApplication(r.Body)
	if err != nil {
		return nil, err
	}
	tokenScopes, err := heldToRead(r)
	if err != nil {
		return nil, err
	}
	app := account.NewApplication(r.Organization(), r.Principal.UserID, dto, a.now())
	app.ChangedBy = r.Change(app.ID, app.ID)
	masked := app.Masked()
	tag, err := etag(&masked)
	if err != nil {
		return nil, err
	}
	return r.Create(r.Path()+"/"+app.ID.String(), app, tag, func(kept *idempotency.Kept) error {
		return a.store.CreateApplication(r.Context(), r.Organization(), app, tokenScopes, kept)
	})
}

// heldToRead are the read scopes that the caller holds: a new key or application
// gets no others. It refuses a caller without any.
func heldToRead(r *api.Request) ([]string, error) {
	held := r.Principal.Scopes.Intersect(auth.ReadScopes())
	if len(held) == 0 {
		return nil, api.MissingScope(auth.ReadScopes()...)
	}
	return held.Names(), nil
}

func (a *area) listApplications(r *api.Request) (*api.Response, error) {
	apps, err := a.store.Applications(r.Context(), r.Organization())
	if err != nil {
		return nil, err
	}
	return answerPage(r, apps, func(app *account.Application) columns {
		return columns{id: app.ID, name: app.Name, status: string(app.Status), created: app.CreatedAt, updated: app.UpdatedAt}
	})
}

// found makes an application that is not there a 404.
var found = api.Found[account.Application]("application")

// find reads the application that the path names.
func (a *area) find(r *api.Request) (*account.Application, error) {
	return found(a.store.Application(r.Context(), r.Organization(), r.PathID("id")))
}

func (a *area) readApplication(r *api.Request) (*api.Response, error) { return api.Answer(a.find(r)) }

func (a *area) updateApplication(r *api.Request) (*api.Response, error) {
	change, err := account.ParseUpdateApplication(r.Body)
	if err != nil {
		return nil, err
	}
	return a.changeApplication(r, func(app *account.Application) bool { return app.Update(change, a.now()) })
}

func (a *area) setStatus(status account.Status) func(*api.Request) (*api.Response, error) {
	return func(r *api.Request) (*api.Response, error) {
		return a.changeApplication(r, func(app *account.Application) bool { return app.SetStatus(status, a.now()) })
	}
}

func (a *area) changeApplication(r *api.Request, change func(*account.Application) bool) (*api.Response, error) {
	return api.Answer(found(a.store.ChangeApplication(r.Context(), r.Organization(), r.PathID("id"), func(app *account.Application) (bool, error) {
		if err := checkIfMatch(r, app); err != nil {
			return false, err
		}
		app.ChangedBy = r.Change(app.ID, app.ID)
		return change(app), nil
	})))
}

func (a *area) removeApplication(r *api.Request) (*api.Response, error) {
	deleted, err := a.store.DeleteApplication(r.Context(), r.Organization(), r.PathID("id"),
		func(app *account.Application) error {
			app.ChangedBy = r.Change(app.ID, app.ID)
			return checkIfMatch(r, app)
		})
	if err != nil {
		return nil, err
	}
	if !deleted {
		return nil, fault.Missing("application")
	}
	return api.NoContent()
}
