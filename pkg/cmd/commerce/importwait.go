package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/ops/importer"
)

// pollPause is the pause between two looks at the queues, which cost nothing.
const pollPause = 300 * time.Millisecond

// waitQueued waits until the service has stored and listed what was sent. The local
// service has stored it when its queues are empty; of a service elsewhere only
// the last records are looked at, and without its URL and a key nothing is known.
func (c *importCommand) waitQueued(ctx context.Context, client *sqs.Client, last importer.Batch, errOut io.Writer) error {
	info, err := runner.ReadInfo(c.data)
	local := err == nil && info.RecordsQueueURL == c.queueURL
	if local && c.api.url == "" {
		if c.api.key == "" && info.OrganizationID == c.organization.String() {
			c.api.key = info.APIKey
		}
		c.api.url = info.BaseURL
	}
	if c.api.key = cmp.Or(c.api.key, os.Getenv(keyVariable)); c.api.url == "" || c.api.key == "" {
		fmt.Fprintln(errOut, "all is in the queue; whether it is stored is not known here, without --url and --key of the service")
		return nil
	}
	api := apiclient.NewWithKey(c.api.url, c.api.key)
	var owner value.ID
	err = persist(ctx, func() (err error) {
		owner, err = organizationOf(ctx, api)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("all was sent; whether it is stored is not known: %w", unlessInterrupted(err))
	case owner != c.organization:
		return fmt.Errorf("all was sent; whether it is stored is not known, because the key is of organization %s", owner)
	}
	fmt.Fprintln(errOut, "waiting until it is stored and listed (Ctrl-C ends the wait only) …")
	start, done := time.Now(), "the last records are stored and listed; whether all are is not known here"
	if local {
		done = asCalled("all is stored except what commerce rejects shows, and the lists show the last of it")
		err = waitStored(ctx, client, info, errOut)
	}
	if err == nil {
		err = waitListed(ctx, api, last, !local)
	}
	if err != nil {
		return fmt.Errorf("all was sent, but the wait ended: %w", unlessInterrupted(err))
	}
	fmt.Fprintf(errOut, "%s (%s)\n", done, time.Since(start).Round(100*time.Millisecond))
	return nil
}

// waitStored waits until no message waits. A message of many records goes from
// the first queue to the second, and is in one of them at every moment.
func waitStored(ctx context.Context, client *sqs.Client, info *runner.Info, errOut io.Writer) error {
	bar := newBar(errOut, "waiting", -1)
	defer func() { _ = bar.Finish() }()
	reader := &ops.StatusReader{Client: client, Local: true}
	for {
		waiting := 0
		for _, queueURL := range []string{info.RecordsQueueURL, info.ImportsQueueURL} {
			statuses, err := reader.Read(ctx, []string{queueURL})
			if err != nil {
				return err
			}
			for _, status := range statuses {
				if !status.Stuck { // a dead letter queue, which Read adds
					waiting += status.All()
				}
			}
		}
		if waiting == 0 {
			return nil
		}
		bar.Describe(counted(waiting, "message") + " to store")
		_ = bar.Add(1)
		if err := pause.For(ctx, pollPause); err != nil {
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

// waitListed waits until the lists show the last record of each kind in each
// message, since messages are stored side by side, as it is stored and, unless it
// may have been refused, until it is stored.
func waitListed(ctx context.Context, api *apiclient.Client, last importer.Batch, mustBeStored bool) error {
	for i := range last.Messages {
		seen := map[commerce.Kind]bool{}
		for _, change := range slices.Backward(changesOf(last.Messages[i : i+1])) {
			id, err := commerce.Identify(change)
			if err != nil || change.Op != commerce.OpPut || seen[change.Kind] {
				continue
			}
			seen[change.Kind] = true
			if err := until(ctx, func() (bool, error) { return isListed(ctx, api, change.Kind, id, mustBeStored) }); err != nil {
				return fmt.Errorf("see whether all is listed: %w", err)
			}
		}
	}
	return nil
}

// isListed reports whether a list has a stored record in its state or a later one.
func isListed(ctx context.Context, api *apiclient.Client, kind commerce.Kind, id value.ID, mustBeStored bool) (bool, error) {
	var stored struct {
		UpdatedAt value.Time `json:"updatedAt"`
	}
	path := "/api/" + kind.Plural()
	switch err := api.Get(ctx, path+"/"+id.String(), &stored); {
	case apiclient.Refused(err) == http.StatusNotFound:
		return !mustBeStored, nil
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
