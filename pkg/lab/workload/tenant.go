package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// Tenant is an organization with one application and a back office that sends products.
type Tenant struct {
	ID  value.ID
	API *apiclient.Client // with the token of the owner

	application value.ID
	sent        int // products
}

// NewTenant makes an organization and its application as a user would.
func (s *Service) NewTenant(ctx context.Context) (*Tenant, error) {
	t := &Tenant{ID: value.NewID()}
	jwt, err := s.issuer.Sign(issuer.Grant{
		Subject: value.NewID().String(), OrganizationID: t.ID, Roles: []auth.Role{auth.Owner}, Lifetime: 24 * time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("sign a token: %w", err)
	}
	t.API = apiclient.New(s.Info.BaseURL, jwt)
	if t.application, err = t.create(ctx, "/developers/applications", map[string]any{"name": "lab"}); err != nil {
		return nil, fmt.Errorf("make an application: %w", err)
	}
	return t, nil
}

// CreateEndpoint makes an endpoint with the members that the API takes, such as url and events.
func (t *Tenant) CreateEndpoint(ctx context.Context, members map[string]any) (value.ID, error) {
	id, err := t.create(ctx, "/developers/webhooks/endpoints?applicationId="+t.application.String(), members)
	if err != nil {
		return id, fmt.Errorf("make an endpoint: %w", err)
	}
	return id, nil
}

func (t *Tenant) create(ctx context.Context, path string, members map[string]any) (value.ID, error) {
	var created struct {
		ID value.ID `json:"id"`
	}
	err := t.API.Create(ctx, path, members, &created)
	return created.ID, err
}
