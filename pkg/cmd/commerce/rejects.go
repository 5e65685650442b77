package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
)

// rejectsCommand is one run of commerce rejects.
type rejectsCommand struct {
	target
	filter       ops.RejectFilter
	show         int
	replay, json bool
}

func newRejectsCommand() *cobra.Command {
	c := &rejectsCommand{}
	cmd := &cobra.Command{
		Use: "rejects", Short: "Count, show and send back refused records", Args: cobra.NoArgs,
		Long: `Rejects counts the refused records in the dead letter queue of the records queue
by organization, kind, reason and field. --show prints some of them, with what is
wrong. --replay sends them to the records queue again, unchanged: a record without
a version replaces anything stored since, and one that is refused again comes
back. Messages without a single record stay; commerce redrive records moves all.

Counting and showing take nothing out. Other receivers do not see the messages
meanwhile. The queue keeps a record for 14 days.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return unlessInterrupted(c.run(cmd.Context(), cmd.OutOrStdout()))
		},
	}
	c.queueFlags(cmd)
	flags := cmd.Flags()
	flags.Var(idFlag{&c.organization}, "organization", "those of one organization")
	addEnum(cmd, &c.filter.Kind, "kind", "those of one kind, such as product", kindNames())
	flags.StringVar(&c.filter.Reason, "reason", "", "those refused for one reason, such as validation_failed")
	flags.IntVar(&c.show, "show", 0, "print so many records")
	flags.BoolVar(&c.replay, "replay", false, "send the records to the records queue again")
	flags.BoolVar(&c.json, "json", false, "with --show: print one object of JSON for each record, a line each")
	cmd.MarkFlagsMutuallyExclusive("show", "replay")
	return cmd
}

func (c *rejectsCommand) run(ctx context.Context, out io.Writer) error {
	c.filter.OrganizationID = idFlag{&c.organization}.String()
	client, err := c.openQueue(ctx, func(f *runner.Info) string { return f.RecordsQueueURL })
	if err != nil {
		return err
	}
	arn, err := c.deadLetterARN(ctx, client)
	if err != nil {
		return err
	}
	dead, err := ops.QueueURLOfARN(ctx, client, arn)
	if err != nil {
		return err
	}
	scan := ops.NewQueueScan(client, dead, c.show)
	switch {
	case c.replay:
		return c.send(ctx, scan, &ops.Resend{Client: client, QueueURL: c.queueURL, Filter: c.filter}, out)
	case c.show > 0:
		return ops.ShowRejects(ctx, scan, c.filter, func(r *ops.Reject) error { return c.print(out, r) })
	}
	return c.count(ctx, scan, out)
}

func (c *rejectsCommand) count(ctx context.Context, scan *ops.QueueScan, out io.Writer) error {
	counts, err := ops.CountRejects(ctx, scan, c.filter)
	if err != nil {
		return err
	}
	header := []string{"ORGANIZATION", "KIND", "REASON", "FIELD", "MESSAGES", "OLDEST"}
	return printCounts(out, scan, counts.Sorted(ops.RejectGroup.Compare), header, func(g ops.GroupCount[ops.RejectGroup]) []string {
		kind := g.Group.Kind
		if g.Group.Holds != ops.OneRecord {
			kind = "(" + g.Group.Holds + ")"
		}
		return []string{g.Group.OrganizationID, kind, g.Group.Reason, g.Group.Field, fmt.Sprint(g.Messages), timeCell(g.Oldest)}
	}, "message")
}

func (c *rejectsCommand) print(out io.Writer, r *ops.Reject) error {
	if c.json {
		return writeJSON(out, r)
	}
	const maxBody = 2000
	orDash := func(text string) string { return cmp.Or(text, "-") }
	name := orDash(r.OrganizationID) + " " + orDash(r.Kind) + " " + orDash(r.RecordID)
	if r.Holds != ops.OneRecord {
		name = "(" + r.Holds + ") " + name
	}
	problem := r.Reason
	if r.Field != "" {
		problem += " " + r.Field
	}
	if r.Rejection.Message != "" {
		problem += ": " + r.Rejection.Message
	}
	_, err := fmt.Fprintf(out, "%s  %s\n  %s\n  %s\n",
		timeCell(r.SentAt), visible(name), visible(orDash(problem)), visible(ops.Shorten(r.Body, maxBody)))
	return err
}

func (c *rejectsCommand) send(ctx context.Context, scan *ops.QueueScan, s *ops.Resend, out io.Writer) error {
	err := s.Run(ctx, scan)
	fmt.Fprintf(out, "sent %s to %s\n", counted(s.Sent, "record"), s.QueueURL)
	if s.RefusedAgain > 0 {
		fmt.Fprintf(out, "%s came back refused\n", counted(s.RefusedAgain, "record"))
	}
	if s.WithoutRecord > 0 {
		fmt.Fprintf(out, "left %s without a single record\n", counted(s.WithoutRecord, "message"))
	}
	printIncomplete(out, scan)
	return err
}
