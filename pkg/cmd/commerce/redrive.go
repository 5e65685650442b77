package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
)

func newRedriveCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "redrive records|deliveries|index-jobs",
		Short: "Move messages from a dead letter queue back to its queue",
		Long: `Redrive moves all messages of a dead letter queue back to their queue, where
they are processed again, and waits until all are moved. Fix the cause first:
messages that fail again come back. An interrupt stops the move; messages already
moved stay moved.`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"records", "deliveries", "index-jobs"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return redrive(cmd.Context(), &t, args[0], cmd.OutOrStdout())
		},
	}
	t.queueFlags(cmd)
	return cmd
}

func redrive(ctx context.Context, t *target, messages string, out io.Writer) error {
	client, err := t.openQueue(ctx, func(f *runner.Info) string {
		switch messages {
		case "deliveries":
			return f.DeliveriesQueueURL
		case "index-jobs":
			return f.IndexJobsQueueURL
		}
		return f.RecordsQueueURL
	})
	if err != nil {
		return err
	}
	to, err := ops.QueueARN(ctx, client, t.queueURL)
	if err != nil {
		return err
	}
	from, err := t.deadLetterARN(ctx, client)
	if err != nil {
		return err
	}
	task, err := ops.StartRedrive(ctx, client, from, to)
	if err != nil {
		return err
	}
	moved, err := task.Wait(ctx)
	fmt.Fprintf(out, "moved %d messages from %s to %s\n", moved, from, to)
	return err
}
