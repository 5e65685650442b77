package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/ops"
)

// statusCommand is one run of commerce status.
type statusCommand struct {
	target
	stack     string
	queueURLs []string
}

func newStatusCommand() *cobra.Command {
	c := &statusCommand{}
	cmd := &cobra.Command{
		Use: "status", Short: "Show what waits in the queues, and what to do about it", Args: cobra.NoArgs,
		Long: `Status shows how many messages of each queue are visible, in flight and delayed.
For each dead letter queue and the park it names the command to run next. It takes
no message out of a queue.

The exit code is 0 when nothing needs attention, 1 otherwise, and 2 when the
command could not look.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			queues, _, err := c.read(cmd.Context())
			if err == nil {
				err = printQueues(cmd.OutOrStdout(), queues)
			}
			if err != nil {
				return trouble(err)
			}
			return stuck(queues)
		},
	}
	c.dataFlag(cmd)
	c.stackFlags(cmd)
	return cmd
}

// stackFlags name queues in AWS.
func (c *statusCommand) stackFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.stack, "stack", "", "name of the state's stack in AWS, for its queues")
	cmd.Flags().StringArrayVar(&c.queueURLs, "queue-url", nil, "URL of a queue, whose dead letter queue is found; may be repeated")
	cmd.MarkFlagsMutuallyExclusive("stack", "queue-url")
}

func printQueues(out io.Writer, queues []*ops.QueueStatus) error {
	rows := [][]string{{"QUEUE", "VISIBLE", "IN FLIGHT", "DELAYED", "NEXT"}}
	for _, q := range queues {
		rows = append(rows, []string{q.Name, fmt.Sprint(q.Visible), fmt.Sprint(q.InFlight), fmt.Sprint(q.Delayed), asCalled(q.Next)})
	}
	return writeTable(out, rows)
}

// stuck is the error of queues that only an operator takes from.
func stuck(queues []*ops.QueueStatus) error {
	var waiting []string
	for _, q := range queues {
		if q.Stuck {
			waiting = append(waiting, fmt.Sprintf("%s in %s", counted(q.All(), "message"), q.Name))
		}
	}
	if len(waiting) > 0 {
		return &exitError{exitFound, errors.New(strings.Join(waiting, ", "))}
	}
	return nil
}

func (c *statusCommand) read(ctx context.Context) ([]*ops.QueueStatus, *sqs.Client, error) {
	urls, local, prefix := c.queueURLs, false, ""
	var client *sqs.Client
	var err error
	switch {
	case c.stack != "":
		prefix = c.stack + "-"
		client, err = newSQSClient(ctx, "")
	default:
		if local = len(urls) == 0; !local {
			c.queueURL = urls[0]
		}
		client, _, err = c.openSQS(ctx, "name a stack with --stack or queues with --queue-url")
	}
	if err == nil && len(urls) == 0 {
		urls, err = ops.QueuesWithPrefix(ctx, client, prefix)
	}
	if err != nil {
		return nil, nil, err
	}
	queues, err := ops.ReadStatus(ctx, client, urls, local)
	return queues, client, err
}
