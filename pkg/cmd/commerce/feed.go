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
// a URL with an API key.
type feedReader struct {
	data, url, key string
	kinds          []string
	after          string // the cursor
	again          time.Duration
}

// flags are those of a command that reads the local service's feed or another's.
func (f *feedReader) flags(cmd *cobra.Command) {
	f.keyFlags(cmd)
	cmd.Flags().StringVar(&f.data, "data", defaultData, "data folder of the local runner")
	urlFlag(cmd, &f.url, "url", "base URL of a service, instead of the local one")
}

func (f *feedReader) keyFlags(cmd *cobra.Command) {
	f.again = 2 * time.Second
	cmd.Flags().StringVar(&f.key, "key", "", "API key of the service at the URL (default: $"+keyVariable+")")
	cmd.Flags().StringSliceVar(&f.kinds, "kinds", nil, "only changes of these kinds, such as order,invoice (default: all that the key may read)")
	complete(cmd, "kinds", kindNames())
}

func (f *feedReader) afterFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.after, "after", "now", "cursor to go on from, as a run before printed it; '' begins with every record")
}

// feedChange is a change as the feed has it, and its text.
type feedChange struct {
	Kind      commerce.Kind  `json:"kind"`
	Op        commerce.Op    `json:"op"`
	ID        value.ID       `json:"id"`
	ChangedAt value.Time     `json:"changedAt"`
	Object    jsontext.Value `json:"object"`

	text jsontext.Value
}

func (f *feedReader) open() (*apiclient.Client, error) {
	if f.url == "" {
		info, err := runner.ReadInfo(f.data)
		if err != nil {
			return nil, fmt.Errorf("%w, or name a service by its URL with --url", err)
		}
		return apiclient.NewWithKey(info.BaseURL, info.APIKey), nil
	}
	if f.key = cmp.Or(f.key, os.Getenv(keyVariable)); f.key == "" {
		return nil, wrongUsage("--key or $%s must be an API key of %s", keyVariable, f.url)
	}
	return apiclient.NewWithKey(f.url, f.key), nil
}

// organizationOf asks the service whose the client's credential is.
func organizationOf(ctx context.Context, api *apiclient.Client) (value.ID, error) {
	var me struct {
		OrganizationID value.ID `json:"organizationId"`
	}
	err := api.Get(ctx, "/api/me", &me)
	return me.OrganizationID, err
}

// follow hands each change to each until the context is done, and then says
// from where to go on.
func (f *feedReader) follow(ctx context.Context, api *apiclient.Client, errOut io.Writer, each func(feedChange) error) error {
	before := f.after
	err := f.read(ctx, api, waitForChanges, errOut, each)
	if f.after != before {
		fmt.Fprintf(errOut, "to go on from here: --after %s\n", f.after)
	}
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// waitForChanges is how many seconds an answer of the feed waits for a change, less
// than the client waits for an answer.
const waitForChanges = 10

// read hands each change to each: those up to the present, or without an end if it
// waits for more. It asks again when the service is away.
func (f *feedReader) read(ctx context.Context, api *apiclient.Client, wait int, errOut io.Writer, each func(feedChange) error) error {
	for {
		page, err := f.ask(ctx, api, wait)
		switch {
		case passes(err) && ctx.Err() == nil:
			fmt.Fprintf(errOut, "%v; asking again\n", plainly(err))
			if err := pause.For(ctx, f.again); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		for _, change := range page.Data {
			head := feedChange{text: change}
			if err := json.Unmarshal(change, &head); err != nil {
				return fmt.Errorf("read a change: %w", err)
			}
			if err := each(head); err != nil {
				return err
			}
		}
		f.after = page.Meta.Next
		if wait == 0 && !page.Meta.More {
			return nil
		}
	}
}

// passes reports whether the same request may get an answer later.
func passes(err error) bool {
	status := apiclient.Refused(err)
	refused := status >= http.StatusBadRequest && status < http.StatusInternalServerError && status != http.StatusTooManyRequests
	return err != nil && !refused && !errors.Is(err, http.ErrSchemeMismatch)
}

// changesPage is an answer of the feed.
type changesPage struct {
	Data []jsontext.Value `json:"data"`
	Meta struct {
		Next string `json:"next"`
		More bool   `json:"more"`
	} `json:"meta"`
}

func (f *feedReader) ask(ctx context.Context, api *apiclient.Client, wait int) (page changesPage, err error) {
	query := url.Values{"wait": {strconv.Itoa(wait)}}
	if f.after != "" {
		query.Set("after", f.after)
	}
	if len(f.kinds) > 0 {
		query.Set("kinds", strings.Join(f.kinds, ","))
	}
	return page, api.Get(ctx, "/api/changes?"+query.Encode(), &page)
}

func newTailCommand() *cobra.Command {
	var f feedReader
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tail", Short: "Show changes of records as they come", Args: cobra.NoArgs,
		Long: `Tail follows the feed of changes of the local service, or of one that --url names,
and prints a line for each change: when, put or delete, kind and id. A record that
changed several times at once is shown once. At its end it prints the cursor with
which --after goes on.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := f.open()
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), asCalled("following the changes; commerce trigger makes some, Ctrl-C ends it"))
			return f.follow(cmd.Context(), api, cmd.ErrOrStderr(), func(c feedChange) error {
				line := fmt.Sprintf("%s  %-6s  %-8s  %s", c.ChangedAt, c.Op, c.Kind, c.ID)
				if asJSON {
					line = string(c.text)
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), line)
				return err
			})
		},
	}
	f.flags(cmd)
	f.afterFlag(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each change with its record, as JSON in a line")
	return cmd
}
