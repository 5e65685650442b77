package developers

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// sessionPage is the page of a portal session, which nothing else opens.
const sessionPage = "/portal/embed"

// PortalSession is a new portal session.
type PortalSession struct {
	ID            value.ID   `json:"id" doc:"The id of its grant, which the application's grants list and by which it is revoked."`
	ApplicationID value.ID   `json:"applicationId" doc:"The application that it is for."`
	URL           string     `json:"url" format:"uri" doc:"The address of the session, for a browser or a frame. Anyone with it can open the session, once, within 60 s."`
	ExpiresAt     value.Time `json:"expiresAt" doc:"When the session ends."`
}

func (a *area) sessionOperation() api.Operation {
	return api.Operation{
		ID: "createPortalSession", Method: http.MethodPost, Path: "/developers/portal-sessions", Tag: applicationsTag,
		Access: api.Developer, Scope: auth.DevelopersAdmin, Unrepeated: true,
		Summary: "Open the portal for a customer of yours",
		Description: "Makes a page that manages the webhooks of one application, to show to whom you sell it: its endpoints with their secrets, its deliveries and tests. " +
			"It sees nothing of other applications, and no keys, records, alerts or audit trail. " +
			"Payloads are your organization's, as those of endpoints are: its user can subscribe to and see the events of every kind of record that you may read. " +
			"You need the scopes that you give; webhooks:write alone shows nothing. " +
			"The session ends at its time, when its grant is revoked, and when the application is suspended or deleted. " +
			"409 limit_reached while you have 100 for the application.",
		Body: account.CreatePortalSessionDto{}, Result: PortalSession{}, Status: http.StatusCreated,
		Errors: []int{http.StatusNotFound, http.StatusConflict}, Audit: audit.GrantCreated, Handle: a.createSession,
	}
}

func (a *area) createSession(r *api.Request) (*api.Response, error) {
	dto, err := account.ParseCreatePortalSession(r.Body)
	if err != nil {
		return nil, err
	}
	client, err := foundClient(a.store.Client(r.Context(), r.Organization(), *dto.ApplicationID))
	if err != nil {
		return nil, err
	}
	if err := r.CheckHolds(auth.ScopesNamed(*dto.Scopes)...); err != nil {
		return nil, err
	}
	app := client.Application
	carried := r.Principal.Scopes.Intersect(auth.ReadScopes()).Names()
	session, code := account.NewFamily(account.Grant{
		OrganizationID: app.OrganizationID, ApplicationID: app.ID, ApplicationName: app.Name, UserID: r.Principal.UserID,
		Scopes: slices.Compact(slices.Sorted(slices.Values(*dto.Scopes))), EventScopes: &carried,
	}, time.Duration(*dto.ExpiresInMinutes)*time.Minute, a.now())
	session.Public, session.ChangedBy = client.Public, r.Change(app.ID, session.ID)
	if err := a.store.CreateGrant(r.Context(), session); err != nil {
		return nil, err
	}
	// Browsers send no server what comes after #.
	opened := url.Values{"client_id": {app.ClientID.String()}, "code": {code}, "theme": {value.Or(dto.Theme, "auto")}}
	return r.Created("/developers/applications/"+app.ID.String()+"/grants/"+session.ID.String(), PortalSession{
		ID: session.ID, ApplicationID: app.ID, URL: r.BaseURL + sessionPage + "#" + opened.Encode(), ExpiresAt: session.Until,
	}, "")
}
