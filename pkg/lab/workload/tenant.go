package workload

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// Tenant is an organization with one application and a back office that sends products.
type Tenant struct {
	ID, Application value.ID

	service *Service
	api     *apiclient.Client
	next    int // the first product that has not been sent
}

// NewTenant makes an organization and its application as a user would.
func (s *Service) NewTenant(ctx context.Context) (*Tenant, error) {
	t := &Tenant{ID: value.NewID(), service: s}
	jwt, err := s.issuer.Sign(issuer.Grant{
		Subject: value.NewID().String(), OrganizationID: t.ID, Roles: []auth.Role{auth.Owner}, Lifetime: 24 * time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("sign a token: %w", err)
	}
	t.api = apiclient.New(s.Info.BaseURL, jwt)
	var created struct {
		ID value.ID `json:"id"`
	}
	if err := t.api.Create(ctx, "/developers/applications", map[string]string{"name": "lab"}, &created); err != nil {
		return nil, fmt.Errorf("make an application: %w", err)
	}
	t.Application = created.ID
	return t, nil
}

// NewTenants makes organizations whose endpoints for new products are at the receiver.
func (s *Service) NewTenants(ctx context.Context, count int, r *Receiver) (tenants []*Tenant, err error) {
	for range count {
		t, err := s.NewTenant(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := t.CreateEndpoint(ctx, map[string]any{"url": r.url, "events": []string{"product.created"}}); err != nil {
			return nil, err
		}
		tenants = append(tenants, t)
	}
	return tenants, nil
}

// Endpoint is an endpoint as the API created it.
type Endpoint struct {
	ID     value.ID `json:"id"`
	Secret string   `json:"secret"`
}

// CreateEndpoint makes an endpoint with the members that the API takes, such as url and events.
func (t *Tenant) CreateEndpoint(ctx context.Context, members map[string]any) (e Endpoint, err error) {
	if err = t.api.Create(ctx, "/developers/webhooks/endpoints?applicationId="+t.Application.String(), members, &e); err != nil {
		return e, fmt.Errorf("make an endpoint: %w", err)
	}
	return e, nil
}

// Read reads a path of the API into answer.
func (t *Tenant) Read(ctx context.Context, path string, answer any) error {
	if err := t.api.Get(ctx, path, answer); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Message is a message with changes of an organization's records.
func Message(organization value.ID, changes ...map[string]any) (Mail, error) {
	body, err := json.Marshal(map[string]any{"organizationId": organization, "records": changes})
	if err != nil {
		return Mail{}, fmt.Errorf("encode a message: %w", err)
	}
	return Mail{organization, string(body), 0}, nil
}

// Put is the change that stores a product. A silent one makes no event.
func Put(p *commerce.Product, silent bool) map[string]any {
	return map[string]any{"kind": commerce.KindProduct, "op": commerce.OpPut, "record": p, "silent": silent}
}

// Mail is a message with the organization that sends it.
type Mail struct {
	from  value.ID
	body  string
	Delay int32 // seconds
}

// Send sends up to ten messages.
func (s *Service) Send(ctx context.Context, mails ...Mail) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(mails))
	for i, m := range mails {
		id, group := strconv.Itoa(i), m.from.String()
		entries[i] = types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &mails[i].body, MessageGroupId: &group, DelaySeconds: m.Delay}
	}
	out, err := s.Queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &s.Info.RecordsQueueURL, Entries: entries})
	if err != nil {
		return fmt.Errorf("send %d messages: %w", len(mails), err)
	}
	if len(out.Failed) > 0 {
		return fmt.Errorf("send %d messages: %d were refused", len(mails), len(out.Failed))
	}
	return nil
}
