package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
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
customer of it, of whose records tombstones stay. It makes no event. Without --yes
it only counts. Stop the senders first: what arrives later is new.
pkg/ops/OPERATING.md says what erase finds, what to do before and after it, and
what backups, tails of lists and logs keep.

At its end erase looks for everything again. The exit code is 0 when nothing is
left, 1 when something is, 2 when it could not tell. It may be interrupted and
repeated.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.tableFlags(cmd)
	c.stackFlags(cmd)
	f := cmd.Flags()
	f.Var(idFlag{&c.organization}, "organization", "the organization (required)")
	f.Var(idFlag{&c.customer}, "customer", "a customer of the organization (default: the whole organization)")
	f.BoolVar(&c.yes, "yes", false, "erase; without it only count")
	_ = cmd.MarkFlagRequired("organization")
	return cmd
}

func (c *eraseCommand) run(ctx context.Context, out, errOut io.Writer) error {
	e, err := c.open(ctx, errOut)
	if err != nil {
		return trouble(err)
	}
	look := e.Find
	if c.yes {
		look = e.Erase
	}
	erased, err := look(ctx)
	if err == nil {
		err = c.print(out, erased)
	}
	if err != nil {
		return trouble(err)
	}
	if len(erased.Left) > 0 {
		return &exitError{exitFound, errors.New("not everything is erased")}
	}
	return nil
}

func (c *eraseCommand) open(ctx context.Context, errOut io.Writer) (*ops.Erasure, error) {
	table, info, err := c.openTable(ctx)
	if err != nil {
		return nil, err
	}
	if info == nil && c.stack == "" && len(c.queueURLs) == 0 {
		return nil, wrongUsage("with --table, name the queues by --stack or --queue-url")
	}
	queues, client, err := c.read(ctx)
	lists := index.NewLists(table, dynamo.Shards)
	return &ops.Erasure{
		Table: table, Lists: lists, Compactor: compactor.New(table, lists.All(), time.Now, newLogger(errOut, slog.LevelError)),
		Client: client, Queues: queues, Organization: c.organization, Customer: c.customer, Clock: time.Now, Pause: pause.For,
	}, err
}

func (c *eraseCommand) print(out io.Writer, erased *ops.Erased) error {
	head, text := "ERASED", "nothing is left\n"
	switch {
	case !c.yes:
		head, text = "FOUND", "nothing was erased: give --yes to erase\n"
	case len(erased.Left) > 0:
		text = "left:\n  " + visible(strings.Join(erased.Left, "; ")) + "\n"
	case c.customer != value.ID{}:
		text = "nothing is left, but the tails of the lists, which forget within 30 days\n"
	}
	rows := [][]string{{"WHAT", head}}
	for _, what := range slices.Sorted(maps.Keys(erased.Items)) {
		rows = append(rows, []string{what, fmt.Sprint(erased.Items[what])})
	}
	for _, queue := range slices.Sorted(maps.Keys(erased.Messages)) {
		rows = append(rows, []string{"message in " + queue, fmt.Sprint(erased.Messages[queue])})
	}
	if err := writeTable(out, rows); err != nil {
		return err
	}
	_, err := io.WriteString(out, text)
	return err
}
