package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lists/index"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/pause"
	"github.com/commerce-integration/service/pkg/value"
)

// Exit codes of commerce verify, as those of diff.
const (
	exitDifferent = 1
	exitTrouble   = 2
)

// verifyCommand is one run of commerce verify.
type verifyCommand struct {
	target listsTarget
	waits  []time.Duration // before each further look
	pause  func(context.Context, time.Duration) error
}

func newVerifyCommand() *cobra.Command {
	return (&verifyCommand{waits: []time.Duration{3 * time.Second, 7 * time.Second}, pause: pause.For}).command()
}

func (c *verifyCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Compare the index of lists with the table",
		Long: `Verify compares the index of lists with the records in the table, of all
organizations or of one, of all lists or of one, and prints a line for each
difference: the organization, the list and what differs. A list that differs is
looked at again, twice within about ten seconds, because a change may be on its
way to the index; only what has not moved by then counts. An index that cannot
be read is one difference.

The exit code is 0 when nothing differs, 1 when something does, and 2 when the
comparison could not be made. commerce reindex mends what differs.`,
		Args: func(cmd *cobra.Command, args []string) error { return troubled(cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return troubled(err) })
	c.target.flags(cmd)
	return cmd
}

func troubled(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitTrouble, unlessInterrupted(err)}
}

func (c *verifyCommand) run(ctx context.Context, out, errOut io.Writer) error {
	s, err := c.target.open(ctx)
	if err != nil {
		return troubled(err)
	}
	bar := newListsBar(s, errOut, "verifying")
	defer bar.end()
	found := 0
	for _, org := range s.organizations {
		for _, list := range s.lists {
			differences, err := c.verify(ctx, s.table, org, list)
			switch {
			case err != nil && !index.Damaged(err):
				return troubled(fmt.Errorf("verify %s of organization %s: %w", list.Name, org, err))
			case err != nil:
				fmt.Fprintf(out, "%s %s cannot be read: %v\n", org, list.Name, err)
				found++
				continue
			}
			for _, d := range differences {
				fmt.Fprintf(out, "%s %s %s\n", org, list.Name, d)
			}
			found += len(differences)
			bar.list()(1, 1)
		}
	}
	if found > 0 {
		return &exitError{exitDifferent, fmt.Errorf("%s in %s", counted(found, "difference"), s)}
	}
	fmt.Fprintf(out, "no differences in %s\n", s)
	return nil
}

// verify returns the differences of a list that are there at every look. An
// index that could not be read may have changed meanwhile, and is looked at
// again, too.
func (c *verifyCommand) verify(ctx context.Context, table *dynamo.Table, org value.ID, list *index.List) ([]ops.Difference, error) {
	differences, err := ops.Verify(ctx, table, org, list, time.Now())
	seen := err == nil
	for _, wait := range c.waits {
		if err == nil && len(differences) == 0 {
			return nil, nil
		}
		if err := c.pause(ctx, wait); err != nil {
			return nil, err
		}
		var now []ops.Difference
		switch now, err = ops.Verify(ctx, table, org, list, time.Now()); {
		case err == nil && seen:
			differences = persisting(differences, now)
		case err == nil:
			differences, seen = now, true
		}
	}
	slices.SortFunc(differences, func(a, b ops.Difference) int {
		return cmp.Or(bytes.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.Partition, b.Partition))
	})
	return differences, err
}

// persisting returns which of the differences found before are found now, too:
// those in which the index has not come to what the table held before.
func persisting(before, now []ops.Difference) []ops.Difference {
	type place struct {
		id   value.ID
		sub  uint8
		part int32
	}
	at := func(d ops.Difference) place { return place{d.ID, d.Sub, d.Partition} }
	found := make(map[place]ops.Difference, len(now))
	for _, d := range now {
		found[at(d)] = d
	}
	var rest []ops.Difference
	for _, was := range before {
		if is, still := found[at(was)]; still && (is.Index == was.Index || is.Index < was.Table) {
			rest = append(rest, is)
		}
	}
	return rest
}
