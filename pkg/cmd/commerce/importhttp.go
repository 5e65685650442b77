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
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/ops/importer"
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

// service is the destination of an import over HTTP.
func (c *importCommand) service(ctx context.Context) (*destination, error) {
	switch {
	case c.api.url == "":
		return nil, wrongUsage("--token goes with --url")
	case c.signer.path != "" || c.endpoint != "":
		return nil, wrongUsage("--token: the records go to the service at --url, not to a queue; leave out --sender-key and --endpoint")
	}
	api := apiclient.New(c.api.url, c.token)
	owner, err := organizationOf(ctx, api)
	if err != nil {
		return nil, err
	}
	if c.organization = cmp.Or(c.organization, owner.String()); c.organization != owner.String() {
		return nil, wrongUsage("--organization %s: the token is of organization %s", c.organization, owner)
	}
	return &destination{
		name: c.api.url, maxMessage: maxPosted,
		sender: func(run value.ID) importer.Sender { return &postSender{api: api, run: run, noWait: c.noWait} },
		wait: func(ctx context.Context, last importer.Batch, errOut io.Writer) error {
			return waitPosted(ctx, api, last, errOut)
		},
	}, nil
}

// overHTTP reports whether the records go to the service at --url.
func (c *importCommand) overHTTP() bool {
	if c.api.url != "" && c.queueURL == "" {
		c.token = cmp.Or(c.token, os.Getenv(tokenVariable))
	}
	return c.token != ""
}

// postSender posts each message of a batch in a request, and waits for the receipts.
type postSender struct {
	api    *apiclient.Client
	run    value.ID // of the import, whose requests may be repeated
	noWait bool
}

// Send implements [importer.Sender].
func (s *postSender) Send(ctx context.Context, batch importer.Batch) (refused []importer.Refused, err error) {
	receipts := make([]receipt.Receipt, len(batch.Messages))
	group, posting := errgroup.WithContext(ctx)
	for i, body := range batch.Messages {
		group.Go(func() error {
			key := value.DeriveID(s.run, string(body)).String()
			return persist(posting, func() error { return s.api.Submit(posting, "/ingest/records", key, body, &receipts[i]) })
		})
	}
	if err := group.Wait(); err != nil || s.noWait {
		return nil, err
	}
	for i := range slices.Backward(receipts) { // after the last one the others are complete, too, as a rule
		if err := s.complete(ctx, &receipts[i]); err != nil {
			return nil, err
		}
	}
	for i := range receipts {
		for _, bad := range receipts[i].Refusals {
			refused = append(refused, refusedBy(i, bad))
		}
	}
	return refused, nil
}

// refusedBy names the field as the author of the record does.
func refusedBy(message int, bad receipt.Refusal) importer.Refused {
	member := fmt.Sprintf("records[%d]", bad.Position)
	field := strings.TrimPrefix(strings.TrimPrefix(bad.Field, member), ".")
	return importer.Refused{
		Message: message, Position: bad.Position, Reason: bad.Code,
		Field: strings.TrimPrefix(field, "record."), Text: strings.TrimPrefix(bad.Message, bad.Field+" "),
	}
}

// complete reads a receipt until it is completed.
func (s *postSender) complete(ctx context.Context, r *receipt.Receipt) error {
	start := time.Now()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, lookPause) {
		err := persist(ctx, func() error { return s.api.Get(ctx, "/ingest/receipts/"+r.ID.String(), r) })
		switch {
		case err != nil || r.Status == receipt.Completed:
			return err
		case time.Since(start) > maxPending:
			return fmt.Errorf("the receipt %s is still %s after %s; it waits for the service's operator", r.ID, r.Status, maxPending)
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

// waitPosted waits until the lists show the last of what is stored, if the token
// may read it.
func waitPosted(ctx context.Context, api *apiclient.Client, last importer.Batch, errOut io.Writer) error {
	done := "all is stored except what was rejected, and the lists show the last of it"
	switch err := waitListed(ctx, api, last, false); {
	case apiclient.Refused(err) == http.StatusForbidden:
		done = "all is stored except what was rejected"
	case err != nil:
		return fmt.Errorf("all is stored except what was rejected; the wait for the lists ended: %w", unlessInterrupted(err))
	}
	fmt.Fprintln(errOut, done)
	return nil
}
