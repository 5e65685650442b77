package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/ops"
)

// eraseCommand is one run of commerce erase. Its queues are found as those of
// commerce status.
type eraseCommand struct {
	statusCommand
	customer value.ID
	yes      bool
}

func newEraseCommand() *cobra.Command {
	c := &eraseCommand{}
	cmd := &cobra.Command{
		Use: "erase", Short: "Erase an organization or a customer everywhere", Args: cobra.NoArgs,
		Long: `Erase deletes for good what the service keeps of an organization, or of one
customer of it: no tombstone and no event says so. Without --yes it only counts.
Stop the senders first: what arrives later is new. pkg/ops/OPERATING.md says what
erase finds, what to do before and after it, and what backups and logs keep.

At its end erase looks for everything again. The exit code is 0 when nothing is
left, 1 when something is, 2 when it could not tell. It may be interrupted and
repeated.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.tableFlags(cmd)
	f := cmd.Flags()
	f.Var(idFlag{&c.organization}, "organization", "the organization (required)")
	f.Var(idFlag{&c.customer}, "customer", "a customer of the organization (default: the whole organization)")
	f.BoolVar(&c.yes, "yes", false, "erase; without it only count")
	c.json.flag(cmd)
	c.endpointFlag(cmd)
	f.StringVar(&c.stack, "stack", "", "name of the state's stack in AWS, for its queues")
	f.StringArrayVar(&c.queueURLs, "queue-url", nil, "URL of a queue; may be repeated, instead of --stack")
	urlFlag(cmd, &c.parkURL, "park-url", "URL of the park, with --queue-url")
	_ = cmd.MarkFlagRequired("organization")
	return cmd
}

// eraseResult is what commerce erase prints.
type eraseResult struct {
	Erased   bool            `json:"erased"`
	Items    ops.EraseCounts `json:"items"`
	Messages map[string]int  `json:"messages"` // by queue
	Left     []string        `json:"left"`
}

func (c *eraseCommand) run(ctx context.Context, out, errOut io.Writer) error {
	e, err := c.open(ctx, errOut)
	if err != nil {
		return trouble(err)
	}
	bar := newBar(errOut, "erasing", -1)
	e.Progress = func(erased int) { _ = bar.Set(erased) }
	result, err := c.erase(ctx, e)
	_ = bar.Finish()
	if err != nil {
		return trouble(fmt.Errorf("%w; give the same command again to go on", unlessInterrupted(err)))
	}
	if err := c.json.print(out, result, func() error { return result.print(out) }); err != nil {
		return trouble(err)
	}
	if len(result.Left) > 0 {
		return &exitError{exitFound, errors.New("not everything is erased")}
	}
	return trouble(e.Checkpoint.Remove())
}

func (c *eraseCommand) open(ctx context.Context, errOut io.Writer) (*ops.Erasure, error) {
	e := &ops.Erasure{Pause: pause.For, Organization: c.organization, Customer: c.customer}
	table, info, err := c.openTable(ctx)
	if err != nil {
		return nil, err
	}
	if info == nil && c.stack == "" && len(c.queueURLs) == 0 {
		return nil, wrongUsage("with --table, name the queues by --stack or --queue-url")
	}
	e.Table, e.Lists = table, index.NewLists(table, dynamo.Shards)
	e.Compactor = compactor.New(table, e.Lists.All(), time.Now, newLogger(errOut, slog.LevelError))
	fingerprint := ops.Fingerprint("erase", c.table, table.Name(), os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), e.Organization, e.Customer)
	e.Checkpoint = ops.PositionFile(c.data, "erase", fingerprint)
	err = e.Open()
	if !c.yes {
		e.Checkpoint = "" // an interrupted erasure still needs it
	}
	return e, err
}

// erase erases, or only counts, and looks for what is left.
func (c *eraseCommand) erase(ctx context.Context, e *ops.Erasure) (*eraseResult, error) {
	queues, client, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	result, items := &eraseResult{Erased: c.yes, Left: []string{}}, e.Find
	if c.yes {
		items = e.Erase
	}
	if result.Items, err = items(ctx); err != nil {
		return nil, err
	}
	var mixed map[string]int
	if result.Messages, mixed, err = e.EraseMessages(ctx, client, queues, c.yes); err != nil || !c.yes {
		return result, err
	}
	again, _, err := e.EraseMessages(ctx, client, queues, false)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(mixed)) {
		result.Left = append(result.Left, fmt.Sprintf("%s in %s with records of others too: redrive them first", counted(mixed[name], "message"), name))
	}
	for _, name := range slices.Sorted(maps.Keys(again)) {
		result.Left = append(result.Left, fmt.Sprintf("%s in %s", counted(again[name], "message"), name))
	}
	left, err := e.Left(ctx)
	result.Left = append(result.Left, left...)
	return result, err
}

func (r *eraseResult) print(out io.Writer) error {
	head := "FOUND"
	if r.Erased {
		head = "ERASED"
	}
	rows := [][]string{{"WHAT", head}}
	for _, what := range slices.Sorted(maps.Keys(r.Items)) {
		rows = append(rows, []string{what, fmt.Sprint(r.Items[what])})
	}
	for _, queue := range slices.Sorted(maps.Keys(r.Messages)) {
		rows = append(rows, []string{"message in " + queue, fmt.Sprint(r.Messages[queue])})
	}
	if err := writeTable(out, rows); err != nil {
		return err
	}
	text := "nothing is left\n"
	switch {
	case !r.Erased:
		text = "nothing was erased: give --yes to erase\n"
	case len(r.Left) > 0:
		text = "left:\n  " + visible(strings.Join(r.Left, "; ")) + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
