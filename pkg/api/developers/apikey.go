package developers

import (
	"net/http"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
)

const keysPath = applicationPath + "/api-keys"

func (a *area) keyOperations() []api.Operation {
	operations := []api.Operation{
		{
			ID: "createApiKey", Method: http.MethodPost, Path: keysPath,
			Summary: "Create an API key",
			Description: "An application can have 20 keys that are neither revoked nor expired. " +
				"Only this answer shows the key itself. A key can have the read scopes of its creator: 403 names the missing ones. " +
				"From outside its allowedNetworks it gets 403 ip_forbidden, whose message has the address that the service saw, on every operation.",
			Scope: auth.DevelopersWrite, Body: account.CreateApiKeyDto{}, Result: account.CreatedKey{}, Status: http.StatusCreated, Audit: audit.KeyCreated, Handle: a.createKey,
		},
		{
			ID: "listApiKeys", Method: http.MethodGet, Path: keysPath,
			Summary: "List the API keys of an application", Scope: auth.DevelopersRead,
			List: declare("keys", account.KeyStatuses()), Result: api.Page[account.APIKey]{}, Handle: a.listKeys,
		},
		{
			ID: "revokeApiKey", Method: http.MethodPost, Path: keysPath + "/{keyId}/revoke",
			Summary:     "Revoke an API key",
			Description: "The key is refused within 5 s. A key that is already revoked is returned unchanged.",
			Scope:       auth.DevelopersWrite, Result: account.APIKey{}, Audit: audit.KeyRevoked, Handle: a.revokeKey,
		},
	}
	for i := range operations {
		operations[i].Tag, operations[i].Access = "API keys", api.Developer
	}
	return operations
}

func (a *area) createKey(r *api.Request) (*api.Response, error) {
	dto, err := account.ParseCreateKey(r.Body, a.now())
	if err != nil {
		return nil, err
	}
	if dto.Scopes == nil {
		held, err := heldToRead(r)
		if err != nil {
			return nil, err
		}
		dto.Scopes = &held
	}
	if err := r.CheckHolds(auth.ScopesNamed(*dto.Scopes)...); err != nil {
		return nil, err
	}
	app, err := a.find(r)
	if err != nil {
		return nil, err
	}
	created, credential := account.NewKey(app, r.Principal.UserID, dto, a.now())
	created.ChangedBy = r.Change(app.ID, created.ID)
	return r.Create(r.Path()+"/"+created.ID.String(), created, "", func(kept *idempotency.Kept) error {
		return a.store.CreateKey(r.Context(), r.Organization(), created.APIKey, credential, kept)
	})
}

func (a *area) listKeys(r *api.Request) (*api.Response, error) {
	if _, err := a.find(r); err != nil {
		return nil, err
	}
	all, err := a.store.Keys(r.Context(), r.Organization(), r.PathID("id"))
	if err != nil {
		return nil, err
	}
	return answerPage(r, all, func(key *account.APIKey) columns {
		return columns{id: key.ID, name: key.Name, status: string(key.Status), created: key.CreatedAt, updated: key.UpdatedAt}
	})
}

// foundKey makes a key that is not there a 404.
var foundKey = api.Found[account.APIKey]("API key")

func (a *area) revokeKey(r *api.Request) (*api.Response, error) {
	if _, err := a.find(r); err != nil {
		return nil, err
	}
	application, id := r.PathID("id"), r.PathID("keyId")
	return api.Answer(foundKey(a.store.RevokeKey(r.Context(), r.Organization(), application, id, r.Change(application, id))))
}
