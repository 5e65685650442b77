package workload

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// Tenant is an organization with one application and a back office that sends
// products.
type Tenant struct {
	ID, Application value.ID
	Inbox           *Inbox // of the endpoint that Subscribe made

	endpoint Endpoint // that Subscribe made
	service  *Service
	api      *apiclient.Client
	next     int // the first product that has not been sent
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

// Endpoint is an endpoint as the API created it.
type Endpoint struct {
	ID     value.ID `json:"id"`
	Secret string   `json:"secret"`
}

// CreateEndpoint makes an endpoint with the members that the API takes, such
// as url and events.
func (t *Tenant) CreateEndpoint(ctx context.Context, members map[string]any) (e Endpoint, err error) {
	if err = t.api.Create(ctx, "/developers/webhooks/endpoints?applicationId="+t.Application.String(), members, &e); err != nil {
		return e, fmt.Errorf("make an endpoint: %w", err)
	}
	return e, nil
}

// Subscribe makes an endpoint for new products at the receiver.
func (t *Tenant) Subscribe(ctx context.Context, r *Receiver) (err error) {
	t.Inbox = r.inbox("/" + t.ID.String())
	t.endpoint, err = t.CreateEndpoint(ctx, map[string]any{"url": t.Inbox.url, "events": []string{"product.created"}})
	return err
}

// OneIn is how many products there are to one whose event passes the filter.
const OneIn = 100

// Filter sets a filter of the endpoint that Subscribe made, which only the events
// of every hundredth product pass.
func (t *Tenant) Filter(ctx context.Context) error {
	filter := map[string]any{"object": map[string]any{"sku": []any{map[string]string{"suffix": "00"}}}}
	return t.api.Put(ctx, "/developers/webhooks/endpoints/"+t.endpoint.ID.String()+"/delivery", map[string]any{"filter": filter})
}

// FlowFiltered sends so many products as Flow does, and waits for the events
// that the filter lets through.
func (t *Tenant) FlowFiltered(ctx context.Context, events int) error {
	t.Inbox.clear()
	before := func(n int) int { return (n + OneIn - 1) / OneIn } // multiples of OneIn
	passing := before(t.next+events) - before(t.next)
	if passing == 0 {
		return fmt.Errorf("of %d events none passes the filter", events)
	}
	if _, err := t.Send(ctx, events); err != nil {
		return err
	}
	return t.Inbox.Await(ctx, passing)
}

// Read reads a path of the API into answer, and returns the answer's header.
func (t *Tenant) Read(ctx context.Context, path string, answer any) (http.Header, error) {
	return t.api.Read(ctx, path, answer)
}

const (
	// senders is how many messages are being sent at a time.
	senders = 4
	// maxBatchMessages is how many messages one request to a queue may hold.
	maxBatchMessages = 10
	// recordsPerMessage is how many records a back office puts into a message:
	// below the bounds of 500 records and 1 MiB.
	recordsPerMessage = 400
)

// record is a change as a message of the records queue holds it.
type record struct {
	Kind   commerce.Kind  `json:"kind"`
	Op     commerce.Op    `json:"op"`
	Record jsontext.Value `json:"record"`
	Silent bool           `json:"silent"`
}

// productMessage is a message that stores products. A silent one makes no
// events.
func productMessage(organization value.ID, silent bool, products ...*commerce.Product) (string, error) {
	message := struct {
		OrganizationID value.ID `json:"organizationId"`
		Records        []record `json:"records"`
	}{OrganizationID: organization}
	for _, p := range products {
		doc, err := json.Marshal(p)
		if err != nil {
			return "", fmt.Errorf("encode product %s: %w", p.ID, err)
		}
		message.Records = append(message.Records, record{commerce.KindProduct, commerce.OpPut, doc, silent})
	}
	body, err := json.Marshal(message)
	if err != nil {
		return "", fmt.Errorf("encode a message: %w", err)
	}
	return string(body), nil
}

// Store sends products in one message, silently.
func (s *Service) Store(ctx context.Context, organization value.ID, products []*commerce.Product) error {
	body, err := productMessage(organization, true, products...)
	if err != nil {
		return err
	}
	return s.send(ctx, organization, body)
}

func (s *Service) send(ctx context.Context, organization value.ID, bodies ...string) error {
	group := organization.String()
	entries := make([]types.SendMessageBatchRequestEntry, len(bodies))
	for i := range bodies {
		id := strconv.Itoa(i)
		entries[i] = types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &bodies[i], MessageGroupId: &group}
	}
	out, err := s.Queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &s.Info.RecordsQueueURL, Entries: entries})
	if err != nil {
		return fmt.Errorf("send %d messages: %w", len(bodies), err)
	}
	if len(out.Failed) > 0 {
		return fmt.Errorf("send %d messages: %d were refused", len(bodies), len(out.Failed))
	}
	return nil
}

// newProducts are messages of the next products, one product each, in the order
// of ids.
func (t *Tenant) newProducts(count int) (ids []value.ID, bodies []string, err error) {
	for range count {
		p := Parcel(t.ID, t.next)
		t.next++
		body, err := productMessage(t.ID, false, p)
		if err != nil {
			return nil, nil, err
		}
		ids, bodies = append(ids, p.ID), append(bodies, body)
	}
	return ids, bodies, nil
}

// Send sends new products, each in a message of its own, as fast as the queue
// takes them, and returns their ids.
func (t *Tenant) Send(ctx context.Context, products int) ([]value.ID, error) {
	ids, bodies, err := t.newProducts(products)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for len(bodies) > 0 {
		batch := bodies[:min(maxBatchMessages, len(bodies))]
		bodies = bodies[len(batch):]
		group.Go(func() error { return t.service.send(ctx, t.ID, batch...) })
	}
	return ids, group.Wait()
}

// Import sends new products as an import does, in messages of many records. The
// inbox gets an event of each.
func (t *Tenant) Import(ctx context.Context, products int) error {
	t.Inbox.clear()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	end := t.next + products
	for ; t.next < end; t.next = min(end, t.next+recordsPerMessage) {
		from, to := t.next, min(end, t.next+recordsPerMessage)
		group.Go(func() error {
			var parcels []*commerce.Product
			for n := from; n < to; n++ {
				parcels = append(parcels, Parcel(t.ID, n))
			}
			body, err := productMessage(t.ID, false, parcels...)
			if err != nil {
				return err
			}
			return t.service.send(ctx, t.ID, body)
		})
	}
	return group.Wait()
}
