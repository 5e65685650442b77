package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/value"
)

// endpoint is an endpoint of the service with its receiver's side.
type endpoint struct {
	id         value.ID
	number     int // its place among all
	temper     temper
	subscribed []string
	retries    int
	timeout    int // seconds
	verify     *standardwebhooks.Webhook
}

// organization is a tenant with its endpoints.
type organization struct {
	id          value.ID
	token       string
	application value.ID
	endpoints   []*endpoint
}

// newOrganization makes a tenant, whose owner may call the API.
func newOrganization(s *service) (*organization, error) {
	tokens, err := runner.OpenIssuer(s.dir)
	if err != nil {
		return nil, err
	}
	o := &organization{id: value.NewID()}
	o.token, err = tokens.Sign(issuer.Grant{
		Subject: value.NewID().String(), OrganizationID: o.id, Roles: []auth.Role{auth.Owner}, Lifetime: 24 * time.Hour,
	})
	return o, err
}

// create posts to the API and reads the answer.
func (o *organization) create(ctx context.Context, base, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+o.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusCreated {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, said)
	}
	if err == nil {
		err = json.Unmarshal(said, answer)
	}
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	return nil
}

// makeApplication makes the organization's application and returns its id.
func (o *organization) makeApplication(ctx context.Context, base string) (value.ID, error) {
	var created struct {
		ID value.ID `json:"id"`
	}
	err := o.create(ctx, base, "/developers/applications", map[string]string{"name": "Chaos"}, &created)
	o.application = created.ID
	return created.ID, err
}

// subscribe makes the endpoint in the service and has its receiver serve it.
func (o *organization) subscribe(ctx context.Context, base string, e *endpoint, r *receivers) error {
	var created struct {
		ID     value.ID `json:"id"`
		Secret string   `json:"secret"`
	}
	err := o.create(ctx, base, "/developers/webhooks/endpoints?applicationId="+o.application.String(), map[string]any{
		"url": r.url(e.number, e.temper), "events": e.subscribed, "retryCount": e.retries, "timeoutSeconds": e.timeout,
	}, &created)
	if err != nil {
		return err
	}
	e.id = created.ID
	if e.verify, err = standardwebhooks.NewWebhook(created.Secret); err != nil {
		return fmt.Errorf("the secret of an endpoint: %w", err)
	}
	o.endpoints = append(o.endpoints, e)
	r.add(e)
	return nil
}
