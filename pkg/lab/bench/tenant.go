package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/value"
)

// tenant is an organization with one endpoint, which subscribes to new
// products, and a back office that sends them.
type tenant struct {
	instance *instance
	shop     *catalogue
	inbox    *inbox
	next     int // product that has not been sent
}

// admit makes an organization with an application and an endpoint, as its
// user would.
func (i *instance) admit(ctx context.Context, r *receiver) (*tenant, error) {
	org := value.NewID()
	jwt, err := i.issuer.Sign(issuer.Grant{Subject: value.NewID().String(), OrganizationID: org, Roles: []auth.Role{auth.Owner}, Lifetime: time.Hour})
	if err != nil {
		return nil, fmt.Errorf("sign a token: %w", err)
	}
	t := &tenant{instance: i, shop: &catalogue{organization: org}, inbox: r.inbox("/" + org.String())}
	var application struct {
		ID string `json:"id"`
	}
	if err := i.create(ctx, jwt, "/developers/applications", map[string]any{
		"name": "bench", "description": "", "website": "https://example.com", "redirectUri": "https://example.com",
	}, &application); err != nil {
		return nil, err
	}
	var endpoint struct {
		ID string `json:"id"`
	}
	return t, i.create(ctx, jwt, "/developers/webhooks/endpoints?applicationId="+application.ID, map[string]any{
		"url": t.inbox.url, "events": []string{"product.created"},
	}, &endpoint)
}

// create posts a body to the API and reads what was created.
func (i *instance) create(ctx context.Context, jwt, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, i.info.BaseURL+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+jwt)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	defer got.Body.Close()
	text, err = io.ReadAll(got.Body)
	if err == nil && got.StatusCode != http.StatusCreated {
		err = fmt.Errorf("status %d: %.300s", got.StatusCode, text)
	}
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	return nil
}

// parcel is a product whose event has a payload of about 1 KB.
func (c *catalogue) parcel(n int) *commerce.Product {
	p := c.product(n)
	short := description[:parcelDescription]
	p.Description, p.Images = &short, p.Images[:1]
	return p
}

// parcelDescription is how much of the description a parcel has, in bytes.
const parcelDescription = 60

// letter is a message with one record.
type letter struct {
	id   value.ID // of the record
	body string
}

// letters writes messages for so many products that have not been sent.
func (t *tenant) letters(count int) ([]letter, error) {
	letters := make([]letter, count)
	for i := range letters {
		product := t.shop.parcel(t.next + i)
		c, err := put(product, false)
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(single{t.shop.organization, c})
		if err != nil {
			return nil, fmt.Errorf("encode a message: %w", err)
		}
		letters[i] = letter{product.ID, string(body)}
	}
	t.next += count
	return letters, nil
}

// batchMost is how many messages one request to a queue may hold.
const batchMost = 10

// sendAll puts the letters into the records queue as fast as it takes them.
func (t *tenant) sendAll(ctx context.Context, letters []letter) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for len(letters) > 0 {
		batch := letters[:min(batchMost, len(letters))]
		letters = letters[len(batch):]
		group.Go(func() error { return t.sendBatch(ctx, batch) })
	}
	return group.Wait()
}

func (t *tenant) sendBatch(ctx context.Context, batch []letter) error {
	group := t.shop.organization.String()
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i := range batch {
		id := strconv.Itoa(i)
		entries[i] = types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &batch[i].body, MessageGroupId: &group}
	}
	out, err := t.instance.queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &t.instance.info.RecordsQueueURL, Entries: entries})
	if err != nil {
		return fmt.Errorf("send %d records: %w", len(batch), err)
	}
	if len(out.Failed) > 0 {
		return fmt.Errorf("send %d records: %d were refused", len(batch), len(out.Failed))
	}
	return nil
}

// send puts one letter into the records queue.
func (t *tenant) send(ctx context.Context, l letter) error { return t.sendBatch(ctx, []letter{l}) }
