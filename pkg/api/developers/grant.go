package developers

import (
	"context"
	"net/http"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
)

const applicationGrantsPath = applicationPath + "/grants"

// GrantStore keeps what users granted to applications.
type GrantStore interface {
	Grants(ctx context.Context, organization, application value.ID) ([]account.Grant, error)
	GrantsOf(ctx context.Context, organization, user value.ID) ([]account.Grant, error)
	// CreateGrant may answer a fault limit_reached.
	CreateGrant(ctx context.Context, f *account.Family) error
	// Grant returns nil when there is none.
	Grant(ctx context.Context, organization, application, id value.ID) (*account.Family, error)
	// DeleteGrant reports whether there was one.
	DeleteGrant(ctx context.Context, g *account.Grant, by *account.AuditEntry) (bool, error)
}

func (a *area) grantOperations() []api.Operation {
	list := &lists.List{Name: "grants", Schema: schema, Walk: true, Orders: []lists.Order{lists.By("createdAt")}}
	return []api.Operation{
		{
			ID: "listGrants", Method: http.MethodGet, Path: applicationGrantsPath,
			Summary: "List what users granted to an application", Tag: applicationsTag, Access: api.Developer, Scope: auth.DevelopersRead,
			Description: "With the portal sessions that were made for it, whose eventScopes are not null.",
			List:        list, Result: api.Page[account.Grant]{}, Handle: a.applicationGrants,
		},
		{
			ID: "deleteGrant", Method: http.MethodDelete, Path: applicationGrantsPath + "/{grantId}", Tag: applicationsTag, Access: api.User,
			Summary: "Revoke a grant",
			Description: "Or end a portal session. Within 5 s its tokens are refused. You can revoke your own grants, and with developers:write those of others, " +
				"unless you are limited to sites: to everybody else a grant does not exist.",
			Status: http.StatusNoContent, Audit: audit.GrantRevoked, Handle: a.revokeGrant,
		},
		{
			ID: "listOwnGrants", Method: http.MethodGet, Path: "/developers/grants", Tag: applicationsTag, Access: api.User,
			Summary: "List what you granted to applications", List: list, Result: api.Page[account.Grant]{}, Handle: a.ownGrants,
		},
	}
}

func (a *area) applicationGrants(r *api.Request) (*api.Response, error) {
	app, err := a.find(r)
	if err != nil {
		return nil, err
	}
	grants, err := a.store.Grants(r.Context(), r.Organization(), app.ID)
	return answerGrants(r, grants, err)
}

func (a *area) ownGrants(r *api.Request) (*api.Response, error) {
	grants, err := a.store.GrantsOf(r.Context(), r.Organization(), r.Principal.UserID)
	return answerGrants(r, grants, err)
}

func answerGrants(r *api.Request, grants []account.Grant, err error) (*api.Response, error) {
	if err != nil {
		return nil, err
	}
	return answerPage(r, grants, func(g *account.Grant) columns { return columns{id: g.ID, created: g.CreatedAt} })
}

var foundGrant = api.Found[account.Family]("grant")

func (a *area) revokeGrant(r *api.Request) (*api.Response, error) {
	application, p := r.PathID("id"), &r.Principal
	f, err := foundGrant(a.store.Grant(r.Context(), r.Organization(), application, r.PathID("grantId")))
	if err != nil {
		return nil, err
	}
	if mayEndOthers := p.Scopes.Has(auth.DevelopersWrite) && p.SiteIDs == nil; f.UserID != p.UserID && !mayEndOthers {
		return nil, fault.Missing("grant")
	}
	if err := checkIfMatch(r, &f.Grant); err != nil {
		return nil, err
	}
	if _, err := a.store.DeleteGrant(r.Context(), &f.Grant, r.Change(application, f.ID)); err != nil {
		return nil, err
	}
	return api.NoContent()
}
