package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops/importer"
	"github.com/commerce-integration/service/pkg/queue"
)

// tokenVariable is the environment's variable with the token.
const tokenVariable = "COMMERCE_TOKEN"

const (
	// maxPosted is what the service takes in a request, in bytes.
	maxPosted = 256 << 10
	// maxPending bounds the wait for a receipt. What waits for longer waits for the
	// service's operator.
	maxPending = 5 * time.Minute
	// maxTries bounds the tries of a request that gets no answer or an error of the
	// service, over more than a minute.
	maxTries = 10
)

// destination is where an import sends records: a queue, a service, or nowhere.
type destination struct {
	name       string // its URL
	maxMessage int    // bytes; 0: what a queue takes
	send       func(context.Context, importer.Batch) ([]importer.Refused, error)
	wait       func(ctx context.Context, errOut io.Writer) error // until the records are stored; nil: not at all

	preview preview        // the first records of a dry run, nil of others
	run     value.ID       // of the import, whose requests may be repeated
	last    importer.Batch // that was sent
}

// Send implements [importer.Sender].
func (d *destination) Send(ctx context.Context, batch importer.Batch) ([]importer.Refused, error) {
	d.last = batch
	return d.send(ctx, batch)
}

func (c *importCommand) destination(ctx context.Context) (*destination, error) {
	switch {
	case c.dryRun:
		first := preview{}
		if err := c.localOrganization(); err != nil { // no service runs here, and the records need none
			c.organization = value.NewID()
		}
		return &destination{send: first.send, preview: first}, nil
	case c.overHTTP():
		return c.service(ctx)
	}
	return c.queue(ctx)
}

// overHTTP reports whether the records go to the service at --url.
func (c *importCommand) overHTTP() bool {
	if c.api.url != "" && c.queueURL == "" {
		c.token = cmp.Or(c.token, os.Getenv(tokenVariable))
	}
	return c.token != ""
}

// queue is the destination of an import by SQS.
func (c *importCommand) queue(ctx context.Context) (*destination, error) {
	if c.api.url != "" && c.queueURL == "" {
		return nil, wrongUsage("--url: the service there takes records with --token (or $%s), not with --key; or name its queue with --queue-url", tokenVariable)
	}
	client, err := c.openQueue(ctx, func(f *runner.Info) string { return f.RecordsQueueURL })
	if err != nil {
		return nil, err
	}
	if err := c.localOrganization(); err != nil {
		return nil, err
	}
	d := &destination{name: c.queueURL, send: sendTo(queue.New(client, c.queueURL), c.queueURL, c.organization)}
	d.wait = func(ctx context.Context, errOut io.Writer) error { return c.waitQueued(ctx, client, d.last, errOut) }
	return d, nil
}

// sendTo sends batches to a queue.
func sendTo(q *queue.Queue, queueURL string, organization value.ID) func(context.Context, importer.Batch) ([]importer.Refused, error) {
	return func(ctx context.Context, batch importer.Batch) ([]importer.Refused, error) {
		messages := make([]queue.Message, len(batch.Messages))
		for i, body := range batch.Messages {
			messages[i] = recordMessage(body, organization)
		}
		if err := q.Send(ctx, messages...); err != nil {
			return nil, fmt.Errorf("queue %s: %w", queueURL, err)
		}
		return nil, nil
	}
}

// recordMessage is in the group of the organization, so that one tenant's records
// do not delay another's changes.
func recordMessage(body []byte, organization value.ID) queue.Message {
	return queue.Message{Body: string(body), Group: organization.String()}
}

// service is the destination of an import over HTTP.
func (c *importCommand) service(ctx context.Context) (*destination, error) {
	switch {
	case c.api.url == "":
		return nil, wrongUsage("--token goes with --url")
	case c.endpoint != "":
		return nil, wrongUsage("--token: the records go to the service at --url, not to a queue; leave out --endpoint")
	}
	api := apiclient.New(c.api.url, c.token)
	owner, err := organizationOf(ctx, api)
	if err != nil {
		return nil, err
	}
	if c.organization = cmp.Or(c.organization, owner); c.organization != owner {
		return nil, wrongUsage("--organization %s: the token is of organization %s", c.organization, owner)
	}
	d := &destination{name: c.api.url, maxMessage: maxPosted}
	d.send = func(ctx context.Context, batch importer.Batch) ([]importer.Refused, error) {
		receipts, err := post(ctx, api, d.run, batch)
		if err != nil || c.noWait {
			return nil, err
		}
		return refusals(ctx, api, receipts)
	}
	d.wait = func(ctx context.Context, errOut io.Writer) error { return waitPosted(ctx, api, d.last, errOut) }
	return d, nil
}

// post posts each message of a batch in a request, which may be repeated.
func post(ctx context.Context, api *apiclient.Client, run value.ID, batch importer.Batch) ([]receipt.Receipt, error) {
	receipts := make([]receipt.Receipt, len(batch.Messages))
	group, posting := errgroup.WithContext(ctx)
	for i, body := range batch.Messages {
		group.Go(func() error {
			key := value.DeriveID(run, string(body)).String()
			return persist(posting, func() error { return api.Submit(posting, "/ingest/records", key, body, &receipts[i]) })
		})
	}
	return receipts, group.Wait()
}

// refusals waits until the receipts are complete, and returns what the service
// refused. It names fields as the author of the record does.
func refusals(ctx context.Context, api *apiclient.Client, receipts []receipt.Receipt) (refused []importer.Refused, err error) {
	start := time.Now()
	for i := range receipts {
		r := &receipts[i]
		if err := until(ctx, func() (bool, error) {
			err := api.Get(ctx, "/ingest/receipts/"+r.ID.String(), r)
			if err == nil && r.Status != receipt.Completed && time.Since(start) > maxPending {
				err = fmt.Errorf("the receipt %s is still %s after %s; it waits for the service's operator", r.ID, r.Status, maxPending)
			}
			return r.Status == receipt.Completed, err
		}); err != nil {
			return nil, err
		}
		for _, bad := range r.Refusals {
			field := strings.TrimPrefix(strings.TrimPrefix(bad.Field, fmt.Sprintf("records[%d]", bad.Position)), ".")
			refused = append(refused, importer.Refused{
				Message: i, Position: bad.Position, Reason: bad.Code,
				Field: strings.TrimPrefix(field, "record."), Text: strings.TrimPrefix(bad.Message, bad.Field+" "),
			})
		}
	}
	return refused, nil
}

// until looks until it is done, less often from look to look: the rate limit of
// the credential counts each.
func until(ctx context.Context, look func() (done bool, err error)) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		done := false
		err := persist(ctx, func() (err error) {
			done, err = look()
			return err
		})
		if done || err != nil {
			return err
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// persist repeats a request that may be repeated while the service asks to wait,
// has an error of its own or does not answer.
func persist(ctx context.Context, request func() error) error {
	for tries := 1; ; {
		err := request()
		refusal, unanswered := (*apiclient.Refusal)(nil), (*url.Error)(nil)
		wait := min(50*time.Millisecond<<tries, 30*time.Second)
		switch {
		case errors.As(err, &refusal) && refusal.Status == http.StatusTooManyRequests:
			wait = max(refusal.RetryAfter, wait)
		case tries < maxTries && refusal != nil && (refusal.Status >= http.StatusInternalServerError || refusal.Status == http.StatusConflict):
			wait = max(refusal.RetryAfter, wait)
			tries++
		case tries < maxTries && errors.As(err, &unanswered) && !errors.Is(err, http.ErrSchemeMismatch) && ctx.Err() == nil:
			tries++
		default:
			return err
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}
