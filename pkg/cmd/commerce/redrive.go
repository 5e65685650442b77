package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
)

// maxRedriveRate is SQS's limit.
const maxRedriveRate = 500

func newRedriveCommand() *cobra.Command {
	var t target
	var rate int32
	var asJSON jsonFlag
	cmd := &cobra.Command{
		Use:   "redrive records|deliveries|index-jobs",
		Short: "Move messages from a dead letter queue back to its queue",
		Long: `Redrive moves all messages of a dead letter queue back to their queue, where
they are processed again, and waits until all are moved. Fix the cause first:
messages that fail again come back. The redrive policy of the queue names the
dead letter queue, unless --dlq-url does. An interrupt stops the move; messages
already moved stay moved.`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"records", "deliveries", "index-jobs"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if rate < 0 || rate > maxRedriveRate {
				return wrongUsage("--rate %d: must be between 1 and %d", rate, maxRedriveRate)
			}
			return redrive(cmd.Context(), &t, args[0], rate, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	t.deadLetterFlags(cmd)
	cmd.Flags().Int32Var(&rate, "rate", 0, fmt.Sprintf("most messages a second, 1 to %d (default: as fast as SQS goes)", maxRedriveRate))
	asJSON.flag(cmd)
	return cmd
}

func redrive(ctx context.Context, t *target, queue string, rate int32, asJSON jsonFlag, out, errOut io.Writer) error {
	client, err := t.openQueue(ctx, func(f *runner.Info) string {
		switch queue {
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
	task, err := ops.StartRedrive(ctx, client, from, to, rate)
	if err != nil {
		return err
	}
	bar := newBar(errOut, "moving", -1, progressbar.OptionShowCount())
	moved, err := task.Wait(ctx, func(moved, all int64) {
		if all > 0 {
			bar.ChangeMax64(all)
		}
		_ = bar.Set64(moved)
	})
	_ = bar.Finish()
	result := struct {
		Moved int64  `json:"moved"`
		From  string `json:"from"`
		To    string `json:"to"`
	}{moved, from, to}
	return errors.Join(err, asJSON.printf(out, result, "moved %d messages from %s to %s\n", moved, from, to))
}
