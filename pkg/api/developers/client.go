package developers

import (
	"net/http"
	"slices"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
)

const (
	tokenScopesPath = applicationPath + "/token-scopes"
	clientPath      = applicationPath + "/client"
)

func (a *area) clientOperations() []api.Operation {
	changed := []int{http.StatusConflict, http.StatusPreconditionFailed}
	return []api.Operation{
		{
			ID: "rotateApplicationSecret", Method: http.MethodPost, Path: applicationPath + "/rotate-secret",
			Summary: "Give an application a new client secret",
			Description: "Only this answer shows the new clientSecret in full. The previous one works for 24 more hours; another rotation " +
				"ends it at once. Issued tokens stay valid until they expire. You need every scope that the application's " +
				"tokens may have, since the secret gets such tokens: 403 names those that you lack.",
			Tag: applicationsTag, Access: api.Developer, Scope: auth.DevelopersWrite, Params: []api.Param{api.IfMatch()},
			Result: account.Application{}, Tagged: true, Errors: changed, Audit: audit.ApplicationSecretRotated, Handle: a.rotateSecret,
		},
		{
			ID: "getTokenScopes", Method: http.MethodGet, Path: tokenScopesPath,
			Summary: "Read the scopes of an application's tokens", Tag: applicationsTag, Access: api.Developer, Scope: auth.DevelopersRead,
			Result: account.TokenScopesDto{}, Handle: a.tokenScopes,
		},
		{
			ID: "setTokenScopes", Method: http.MethodPut, Path: tokenScopesPath,
			Summary: "Set the scopes of an application's tokens",
			Description: "The scopes that tokens of the application may have. A new application has the read scopes of its creator. You can add the scopes that you have and remove any: 403 names " +
				"those that you lack. Everybody who has the client secret gets tokens with them. With webhooks:read or webhooks:write its " +
				"tokens manage only the application's own webhook endpoints; with records:write they post records. A removed scope also leaves issued tokens " +
				"within 5 s. They also bound what users can grant to it.",
			Tag: applicationsTag, Access: api.Developer, Scope: auth.DevelopersAdmin, Params: []api.Param{api.IfMatch()},
			Body: account.TokenScopesDto{}, Result: account.TokenScopesDto{}, Tagged: true, Errors: changed, Audit: audit.ApplicationScopesSet, Handle: a.setTokenScopes,
		},
		{
			ID: "getApplicationClient", Method: http.MethodGet, Path: clientPath,
			Summary: "Read whether an application keeps a secret", Tag: applicationsTag, Access: api.Developer, Scope: auth.DevelopersRead,
			Result: account.ClientDto{}, Handle: a.clientType,
		},
		{
			ID: "setApplicationClient", Method: http.MethodPut, Path: clientPath,
			Summary: "Set whether an application keeps a secret",
			Description: "A new application is CONFIDENTIAL. A PUBLIC one gets tokens in the name of users without its secret, by its clientId " +
				"and PKCE, and none of its own. You need its token scopes to make it PUBLIC. A change ends the refresh of what users granted before; " +
				"issued tokens stay valid.",
			Tag: applicationsTag, Access: api.Developer, Scope: auth.DevelopersWrite, Params: []api.Param{api.IfMatch()},
			Body: account.ClientDto{}, Result: account.ClientDto{}, Tagged: true, Errors: changed,
			Audit: audit.ApplicationClientSet, Handle: a.setClientType,
		},
	}
}

// foundClient makes an application that is not there a 404.
var foundClient = api.Found[account.Client]("application")

func (a *area) rotateSecret(r *api.Request) (*api.Response, error) {
	var secret string // of the last try, which is the one that is stored
	var resp *api.Response
	_, err := foundClient(a.store.ChangeClient(r.Context(), r.Organization(), r.PathID("id"),
		func(client *account.Client) error {
			if err := r.CheckHolds(auth.ScopesNamed(client.TokenScopes)...); err != nil {
				return err
			}
			if err := checkIfMatch(r, client.Application); err != nil {
				return err
			}
			secret = client.RotateSecret(a.now())
			client.Application.ChangedBy = r.Change(client.Application.ID, client.Application.ID)
			return nil
		},
		func(client *account.Client) (*idempotency.Kept, error) {
			tag, err := etag(client.Application)
			if err != nil {
				return nil, err
			}
			shown := *client.Application
			shown.ClientSecret = secret
			resp = &api.Response{JSON: shown, ETag: tag}
			return r.Kept(resp)
		}))
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (a *area) tokenScopes(r *api.Request) (*api.Response, error) {
	return answerScopes(foundClient(a.store.Client(r.Context(), r.Organization(), r.PathID("id"))))
}

func (a *area) setTokenScopes(r *api.Request) (*api.Response, error) {
	scopes, err := account.ParseTokenScopes(r.Body)
	if err != nil {
		return nil, err
	}
	return answerScopes(foundClient(a.store.ChangeClient(r.Context(), r.Organization(), r.PathID("id"), func(client *account.Client) error {
		added := slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return slices.Contains(client.TokenScopes, s) })
		if err := r.CheckHolds(auth.ScopesNamed(added)...); err != nil {
			return err
		}
		if err := checkIfMatch(r, shownScopes(client)); err != nil {
			return err
		}
		if !slices.Equal(client.TokenScopes, scopes) {
			client.Application.ChangedBy = r.Change(client.Application.ID, client.Application.ID)
		}
		client.TokenScopes = scopes
		return nil
	})))
}

func shownScopes(client *account.Client) *account.TokenScopesDto {
	return &account.TokenScopesDto{Scopes: &client.TokenScopes}
}

func answerScopes(client *account.Client, err error) (*api.Response, error) {
	if err != nil {
		return nil, err
	}
	return api.OK(shownScopes(client))
}

func (a *area) clientType(r *api.Request) (*api.Response, error) {
	return answerType(foundClient(a.store.Client(r.Context(), r.Organization(), r.PathID("id"))))
}

func (a *area) setClientType(r *api.Request) (*api.Response, error) {
	public, err := account.ParseClient(r.Body)
	if err != nil {
		return nil, err
	}
	return answerType(foundClient(a.store.ChangeClient(r.Context(), r.Organization(), r.PathID("id"), func(client *account.Client) error {
		if err := checkIfMatch(r, client.Shape()); err != nil {
			return err
		}
		if public && !client.Public { // who asks could get its scopes then
			if err := r.CheckHolds(auth.ScopesNamed(client.TokenScopes)...); err != nil {
				return err
			}
		}
		if client.Public != public {
			client.Application.ChangedBy = r.Change(client.Application.ID, client.Application.ID)
		}
		client.Public = public
		return nil
	})))
}

func answerType(client *account.Client, err error) (*api.Response, error) {
	if err != nil {
		return nil, err
	}
	return api.OK(client.Shape())
}
