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
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/importer"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/runner"
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

// destination is where an import sends records: a service, a queue, or nowhere.
type destination struct {
	name         string // its URL
	organization value.ID
	maxMessage   int // bytes; 0: what a queue takes
	send         func(context.Context, importer.Batch) ([]importer.Refused, error)
	wait         func(ctx context.Context, errOut io.Writer) error // until the records are listed; nil: not at all

	first map[commerce.Kind]commerce.Change // records of a dry run, nil of another
	run   value.ID                          // of the import, whose requests may be repeated
	last  importer.Batch                    // that was sent
}

// Send implements [importer.Sender].
func (d *destination) Send(ctx context.Context, batch importer.Batch) ([]importer.Refused, error) {
	d.last = batch
	return d.send(ctx, batch)
}

func (c *importCommand) destination(ctx context.Context) (*destination, error) {
	switch {
	case c.dryRun:
		return dryRun(c.organization), nil
	case c.queueURL != "":
		client, err := newSQSClient(ctx, c.queueURL)
		if err != nil {
			return nil, err
		}
		return &destination{
			name: c.queueURL, organization: c.organization, send: sendTo(queue.New(client, c.queueURL), c.queueURL, c.organization),
		}, nil
	}
	return c.service(ctx)
}

// dryRun sends nothing, and keeps the first record of each kind.
func dryRun(organization value.ID) *destination {
	d := &destination{organization: cmp.Or(organization, value.NewID()), first: map[commerce.Kind]commerce.Change{}}
	d.send = func(_ context.Context, batch importer.Batch) ([]importer.Refused, error) {
		for _, change := range changesOf(batch.Messages) {
			if _, seen := d.first[change.Kind]; !seen {
				d.first[change.Kind] = change
			}
		}
		return nil, nil
	}
	return d
}

// sendTo sends batches to a queue.
func sendTo(q *queue.Queue, queueURL string, organization value.ID) func(context.Context, importer.Batch) ([]importer.Refused, error) {
	return func(ctx context.Context, batch importer.Batch) ([]importer.Refused, error) {
		messages := make([]queue.Message, len(batch.Messages))
		for i, body := range batch.Messages {
			// In a group of the organization, so that one tenant's records do not delay
			// another's changes.
			messages[i] = queue.Message{Body: string(body), Group: organization.String()}
		}
		if err := q.Send(ctx, messages...); err != nil {
			return nil, fmt.Errorf("queue %s: %w", queueURL, err)
		}
		return nil, nil
	}
}

// service is the service at the URL, or the local one.
func (c *importCommand) service(ctx context.Context) (*destination, error) {
	if c.url == "" && c.token != "" {
		return nil, wrongUsage("--token goes with --url")
	}
	switch c.token = cmp.Or(c.token, os.Getenv(tokenVariable)); {
	case c.url == "":
		info, err := runner.ReadInfo(c.data)
		if err != nil {
			return nil, fmt.Errorf("%w, or name a service by --url and --token", err)
		}
		c.url, c.token = info.BaseURL, info.JWT
	case c.token == "":
		return nil, wrongUsage("--token or $%s must be a token with the scope records:write", tokenVariable)
	}
	api := apiclient.New(c.url, c.token)
	owner, err := organizationOf(ctx, api)
	if err != nil {
		return nil, err
	}
	d := &destination{name: c.url, organization: owner, maxMessage: maxPosted}
	d.send = func(ctx context.Context, batch importer.Batch) ([]importer.Refused, error) {
		receipts, err := post(ctx, api, d.run, batch)
		if err != nil {
			return nil, err
		}
		return refusals(ctx, api, receipts)
	}
	d.wait = func(ctx context.Context, errOut io.Writer) error { return waitListed(ctx, api, d.last, errOut) }
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

// waitListed waits until the lists show the last of what is stored, if the token
// may read it.
func waitListed(ctx context.Context, api *apiclient.Client, last importer.Batch, errOut io.Writer) error {
	done := "all is stored except what was rejected, and the lists show the last of it"
	switch err := seeListed(ctx, api, last); {
	case apiclient.Refused(err) == http.StatusForbidden:
		done = "all is stored except what was rejected"
	case err != nil:
		return fmt.Errorf("all is stored except what was rejected; the wait for the lists ended: %w", unlessInterrupted(err))
	}
	fmt.Fprintln(errOut, done)
	return nil
}

// seeListed waits for the last record of each kind in each message, since messages
// are stored side by side.
func seeListed(ctx context.Context, api *apiclient.Client, last importer.Batch) error {
	for i := range last.Messages {
		seen := map[commerce.Kind]bool{}
		for _, change := range slices.Backward(changesOf(last.Messages[i : i+1])) {
			id, err := commerce.Identify(change)
			if err != nil || change.Op != commerce.OpPut || seen[change.Kind] {
				continue
			}
			seen[change.Kind] = true
			if err := until(ctx, func() (bool, error) { return isListed(ctx, api, change.Kind, id) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// isListed reports whether a list has a record in its state or a later one, if it
// is stored.
func isListed(ctx context.Context, api *apiclient.Client, kind commerce.Kind, id value.ID) (bool, error) {
	var stored struct {
		UpdatedAt value.Time `json:"updatedAt"`
	}
	path := "/api/" + kind.Plural()
	switch err := api.Get(ctx, path+"/"+id.String(), &stored); {
	case apiclient.Refused(err) == http.StatusNotFound:
		return true, nil
	case err != nil:
		return false, err
	}
	page := struct {
		Data []struct {
			UpdatedAt value.Time `json:"updatedAt"`
		} `json:"data"`
	}{}
	err := api.Get(ctx, path+"?ids="+id.String(), &page)
	return err == nil && len(page.Data) == 1 && page.Data[0].UpdatedAt >= stored.UpdatedAt, err
}
