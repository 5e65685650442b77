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

type keys struct {
	*applications
	store KeyStore
}

func (k *keys) operations() []api.Operation {
	conflict := []int{http.StatusConflict}
	operations := []api.Operation{
		{
			ID: "createApiKey", Method: http.MethodPost, Path: keysPath,
			Summary: "Create an API key",
			Description: "An application can have 20 keys that are neither revoked nor expired. " +
				"Only this answer shows the key itself. A key can have the read scopes of its creator: 403 names the missing ones.",
			Scope: auth.DevelopersWrite, Body: account.CreateApiKeyDto{}, Result: account.CreatedKey{}, Status: http.StatusCreated, Errors: conflict, Audit: audit.KeyCreated, Handle: k.create,
		},
		{
			ID: "listApiKeys", Method: http.MethodGet, Path: keysPath,
			Summary: "List the API keys of an application", Scope: auth.DevelopersRead,
			List: declare("keys", account.KeyStatuses()), Result: api.Page[account.APIKey]{}, Handle: k.list,
		},
		{
			ID: "revokeApiKey", Method: http.MethodPost, Path: keysPath + "/{keyId}/revoke",
			Summary:     "Revoke an API key",
			Description: "The key is refused within 5 s. A key that is already revoked is returned unchanged.",
			Scope:       auth.DevelopersWrite, Result: account.APIKey{}, Errors: conflict, Audit: audit.KeyRevoked, Handle: k.revoke,
		},
	}
	for i := range operations {
		operations[i].Tag, operations[i].Access = "API keys", api.Developer
	}
	return operations
}

func (k *keys) create(r *api.Request) (*api.Response, error) {
	dto, err := account.ParseCreateKey(r.Body, k.now())
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
	app, err := k.find(r)
	if err != nil {
		return nil, err
	}
	created, credential := account.NewKey(app, r.Principal.UserID, dto, k.now())
	return r.Create(r.Path()+"/"+created.ID.String(), created, "", func(kept *idempotency.Kept) error {
		return k.store.CreateKey(r.Context(), r.Organization(), created.APIKey, credential, kept)
	})
}

func (k *keys) list(r *api.Request) (*api.Response, error) {
	if _, err := k.find(r); err != nil {
		return nil, err
	}
	all, err := k.store.Keys(r.Context(), r.Organization(), r.PathID("id"))
	if err != nil {
		return nil, err
	}
	return answerPage(r, all, func(key *account.APIKey) columns {
		return columns{id: key.ID, name: key.Name, status: string(key.Status), created: key.CreatedAt, updated: key.UpdatedAt}
	})
}

// foundKey makes a key that is not there a 404.
var foundKey = api.Found[account.APIKey]("API key")

func (k *keys) revoke(r *api.Request) (*api.Response, error) {
	if _, err := k.find(r); err != nil {
		return nil, err
	}
	key, revoked, err := k.store.RevokeKey(r.Context(), r.Organization(), r.PathID("id"), r.PathID("keyId"))
	r.Changed(revoked)
	return api.Answer(foundKey(key, err))
}
