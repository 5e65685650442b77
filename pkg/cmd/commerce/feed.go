package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/apiclient"
	"github.com/commerce-integration/service/pkg/local/runner"
)

// keyVariable is the environment's variable with the API key.
const keyVariable = "COMMERCE_API_KEY"

// feedReader reads the feed of changes of a service: the local one, or one at
// a URL with an API key or in the name of who has signed in.
type feedReader struct {
	data, url, key string
	kinds          []string
	after          string // the cursor
	again          time.Duration
}

func (f *feedReader) keyFlags(cmd *cobra.Command) {
	f.again = 2 * time.Second
	cmd.Flags().StringVar(&f.key, "key", "", "API key of the service at the URL (default: $"+keyVariable+", or what commerce login was granted)")
	cmd.Flags().StringSliceVar(&f.kinds, "kinds", nil, "only changes of these kinds, such as order,invoice (default: all that the key may read)")
}

// feedChange is a change as the feed has it.
type feedChange struct {
	Kind      commerce.Kind  `json:"kind"`
	Op        commerce.Op    `json:"op"`
	ID        value.ID       `json:"id"`
	ChangedAt value.Time     `json:"changedAt"`
	Object    jsontext.Value `json:"object"`
}

func (f *feedReader) open() (*apiclient.Client, error) {
	if f.url == "" {
		info, err := runner.ReadInfo(f.data)
		if err != nil {
			return nil, fmt.Errorf("%w, or name a service by its URL with --url", err)
		}
		return apiclient.NewWithKey(info.BaseURL, info.APIKey), nil
	}
	if f.key = cmp.Or(f.key, os.Getenv(keyVariable)); f.key != "" {
		return apiclient.NewWithKey(f.url, f.key), nil
	}
	l, err := loginAt(f.url)
	if err == nil && l.Tokens == nil {
		err = wrongUsage("--key or $%s must be an API key of %s, unless you have signed in by commerce login", keyVariable, f.url)
	}
	return apiclient.NewWithTokens(f.url, l), err
}

// organizationOf asks the service whose the client's credential is.
func organizationOf(ctx context.Context, api *apiclient.Client) (value.ID, error) {
	var me struct {
		OrganizationID value.ID `json:"organizationId"`
	}
	err := api.Get(ctx, "/api/me", &me)
	return me.OrganizationID, err
}

// waitForChanges is how many seconds an answer of the feed waits for a change, less
// than the client waits for an answer.
const waitForChanges = 10

// changesOfPage is the most changes that an answer of the feed may have.
const changesOfPage = "1000"

// read hands each change to each: those up to the present, or without an end if it
// waits for more. It asks again when the service is away.
func (f *feedReader) read(ctx context.Context, api *apiclient.Client, wait int, errOut io.Writer, each func(feedChange) error) error {
	for {
		lines, header, err := f.ask(ctx, api, wait)
		switch {
		case passes(err) && ctx.Err() == nil:
			fmt.Fprintf(errOut, "%v; asking again\n", err)
			if err := pause.For(ctx, f.again); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		for line := range bytes.Lines(lines) {
			var change feedChange
			if err := json.Unmarshal(line, &change); err != nil {
				return fmt.Errorf("read the feed of changes: %w", err)
			}
			if err := each(change); err != nil {
				return err
			}
		}
		if f.after = header.Get("X-Next-Cursor"); f.after == "" {
			return errors.New("the feed of changes answered without a cursor: is the URL right?")
		}
		if wait == 0 && header.Get("Link") == "" { // which has the next page only
			return nil
		}
	}
}

// passes reports whether the same request may get an answer later.
func passes(err error) bool {
	status := apiclient.Refused(err)
	refused := status >= http.StatusMultipleChoices && status < http.StatusInternalServerError && status != http.StatusTooManyRequests
	return err != nil && !refused && !errors.Is(err, http.ErrSchemeMismatch)
}

func (f *feedReader) ask(ctx context.Context, api *apiclient.Client, wait int) (lines []byte, header http.Header, err error) {
	query := url.Values{"wait": {strconv.Itoa(wait)}, "limit": {changesOfPage}}
	if f.after != "" {
		query.Set("after", f.after)
	}
	if len(f.kinds) > 0 {
		query.Set("kinds", strings.Join(f.kinds, ","))
	}
	return api.Lines(ctx, "/api/changes?"+query.Encode())
}
