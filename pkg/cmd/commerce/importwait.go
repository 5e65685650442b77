package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
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

// The pauses between two looks at the queues, which cost nothing, and at what is
// stored or listed, which the rate limit of the key counts.
const (
	pollPause = 300 * time.Millisecond
	lookPause = 2 * time.Second
)

// wait waits until the service has stored and listed what was sent. The local
// service has stored it when its queues are empty; of a service elsewhere only
// the last records are looked at, and without its URL and a key nothing is known.
func (c *importCommand) wait(ctx context.Context, client *sqs.Client, last importer.Batch, errOut io.Writer) error {
	info, err := runner.ReadInfo(c.data)
	local := err == nil && info.RecordsQueueURL == c.queueURL && info.BaseURL != ""
	if local && c.api.url == "" && c.api.key == "" && info.OrganizationID == c.organizationID.String() {
		c.api.key = info.APIKey
	}
	if local && c.api.url == "" {
		c.api.url = info.BaseURL
	}
	if c.api.key = cmp.Or(c.api.key, os.Getenv(keyVariable)); c.api.url == "" || c.api.key == "" {
		fmt.Fprintln(errOut, "all is in the queue; whether it is stored is not known here, without --url and --key of the service")
		return nil
	}
	api, err := c.api.open()
	if err != nil {
		return err
	}
	var owner value.ID
	err = again(ctx, func() (bool, error) {
		owner, err = organizationOf(ctx, api)
		return err == nil, err
	})
	switch {
	case err != nil:
		return fmt.Errorf("all was sent; whether it is stored is not known: %w", unlessInterrupted(err))
	case owner != c.organizationID:
		return fmt.Errorf("all was sent; whether it is stored is not known, because the key is of organization %s", owner)
	}
	fmt.Fprintln(errOut, "waiting until it is stored and listed (Ctrl-C ends the wait only) …")
	start, done := time.Now(), "the last records are stored and listed; whether all are is not known here"
	if local {
		done = asCalled("all is stored except what commerce rejects shows, and the lists show the last of it")
		err = c.waitStored(ctx, client, info, errOut)
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
func (c *importCommand) waitStored(ctx context.Context, client *sqs.Client, info *runner.Info, errOut io.Writer) error {
	bar := newBar(errOut, "waiting", -1)
	defer func() { _ = bar.Finish() }()
	lines := progressLines{out: errOut, last: time.Now()}
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
		left := counted(waiting, "message") + " to store"
		lines.add(time.Now(), left)
		bar.Describe(left)
		_ = bar.Add(1)
		if err := pause.For(ctx, pollPause); err != nil {
			return err
		}
	}
}

// waitListed waits until the lists show the last records of each message, since
// messages are stored side by side, as they are stored and, unless they may have
// been refused, until they are stored.
func waitListed(ctx context.Context, api *apiclient.Client, last importer.Batch, mustBeStored bool) error {
	ids, most := map[commerce.Kind][]string{}, 0
	for i := range last.Messages {
		most += max(1, 20/len(last.Messages))
		for _, change := range slices.Backward(changesOf(last.Messages[i : i+1])) {
			if id, err := commerce.Identify(change); err == nil && change.Op == commerce.OpPut && len(ids[change.Kind]) < most {
				ids[change.Kind] = append(ids[change.Kind], id.String())
			}
		}
	}
	for kind, ids := range ids {
		stored := map[string]value.Time{}
		if err := again(ctx, func() (bool, error) {
			missing := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, ok := stored[id]; return ok })
			err := readStored(ctx, api, kind, missing, stored)
			return err == nil && (len(stored) == len(ids) || !mustBeStored), err
		}); err != nil {
			return err
		}
		if err := again(ctx, func() (bool, error) {
			shown, err := readListed(ctx, api, kind, ids)
			return err == nil && showsAll(shown, stored), err
		}); err != nil {
			return err
		}
	}
	return nil
}

// again calls look until it is done. A rate limit and a busy service make it wait,
// too.
func again(ctx context.Context, look func() (done bool, err error)) error {
	for {
		done, err := look()
		status := apiclient.Refused(err)
		if done || err != nil && status != http.StatusTooManyRequests && status < http.StatusInternalServerError {
			return err
		}
		if err := pause.For(ctx, lookPause); err != nil {
			return err
		}
	}
}

// readStored finds out when each record was updated that is stored.
func readStored(ctx context.Context, api *apiclient.Client, kind commerce.Kind, ids []string, stored map[string]value.Time) error {
	for _, id := range ids {
		var record listedRecord
		switch err := api.Get(ctx, "/api/"+kind.Plural()+"/"+id, &record); {
		case apiclient.Refused(err) == http.StatusNotFound:
		case err != nil:
			return fmt.Errorf("see whether all is stored: %w", err)
		default:
			stored[id] = record.UpdatedAt
		}
	}
	return nil
}

type listedRecord struct {
	ID        string     `json:"id"`
	UpdatedAt value.Time `json:"updatedAt"`
}

func readListed(ctx context.Context, api *apiclient.Client, kind commerce.Kind, ids []string) (map[string]value.Time, error) {
	var page struct {
		Data []listedRecord `json:"data"`
	}
	query := url.Values{"ids": {strings.Join(ids, ",")}, "limit": {fmt.Sprint(len(ids))}}
	if err := api.Get(ctx, "/api/"+kind.Plural()+"?"+query.Encode(), &page); err != nil {
		return nil, fmt.Errorf("see whether all is listed: %w", err)
	}
	shown := map[string]value.Time{}
	for _, record := range page.Data {
		shown[record.ID] = record.UpdatedAt
	}
	return shown, nil
}

// showsAll reports whether a list has each stored record in its state or a later
// one.
func showsAll(shown, stored map[string]value.Time) bool {
	for id, at := range stored {
		if shown[id] < at {
			return false
		}
	}
	return true
}
