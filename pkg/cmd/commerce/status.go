package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/ops"
)

// statusCommand is one run of commerce status.
type statusCommand struct {
	target
	stack, parkURL string
	queueURLs      []string
	secret         string
	json           jsonFlag
}

func newStatusCommand() *cobra.Command {
	c := &statusCommand{}
	cmd := &cobra.Command{
		Use: "status", Short: "Show what waits in the queues, and what to do about it", Args: cobra.NoArgs,
		Long: `Status shows how many messages of each queue are visible, in flight and delayed,
and the age of the oldest where it is known. For each dead letter queue and the
park it names the command to run next. It takes no message out of a queue. In AWS
--stack names the state's stack; --queue-url, which may be repeated, names single
queues instead, whose dead letter queues it finds. With --table and --secret it
also counts the items that are sealed under an older service key, for half a read
unit for each 4 KB of the table.

The exit code is 0 when nothing needs attention, 1 otherwise, and 2 when the
command could not look.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.data, "data", defaultData, "data folder of the local runner")
	c.endpointFlag(cmd)
	flags.StringVar(&c.stack, "stack", "", "name of the state's stack in AWS")
	flags.StringArrayVar(&c.queueURLs, "queue-url", nil, "URL of a queue; may be repeated")
	urlFlag(cmd, &c.parkURL, "park-url", "URL of the park, with --queue-url")
	flags.StringVar(&c.table, "table", "", "name of the table in AWS, with --secret")
	flags.StringVar(&c.secret, "secret", "", "ARN or name of the service key's secret in AWS")
	c.json.flag(cmd)
	cmd.MarkFlagsRequiredTogether("table", "secret")
	return cmd
}

func (c *statusCommand) run(ctx context.Context, out, errOut io.Writer) error {
	queues, _, err := c.read(ctx)
	if err != nil {
		return trouble(err)
	}
	for _, q := range queues {
		q.Next = asCalled(q.Next)
	}
	result := statusResult{Queues: queues}
	if c.secret != "" {
		look := resealCommand{target: c.target, secret: c.secret, dryRun: true}
		counts, _, err := look.reseal(ctx, errOut)
		if err != nil {
			return trouble(err)
		}
		n := counts.Left + counts.Unreadable
		result.OlderKey = &n
	}
	if err := c.json.print(out, result, func() error { return c.print(out, result) }); err != nil {
		return trouble(err)
	}
	var waiting []string
	for _, q := range queues {
		if q.Stuck {
			waiting = append(waiting, fmt.Sprintf("%s in %s", counted(q.All(), "message"), q.Name))
		}
	}
	if n := result.OlderKey; n != nil && *n > 0 {
		waiting = append(waiting, counted(*n, "item")+" under an older service key")
	}
	if len(waiting) > 0 {
		return &exitError{exitFound, errors.New(strings.Join(waiting, ", "))}
	}
	return nil
}

// statusResult is what commerce status prints as JSON.
type statusResult struct {
	Queues   []*ops.QueueStatus `json:"queues"`
	OlderKey *int               `json:"itemsUnderOlderKey"` // null when that was not asked for
}

func (c *statusCommand) print(out io.Writer, result statusResult) error {
	rows := [][]string{{"QUEUE", "VISIBLE", "IN FLIGHT", "DELAYED", "OLDEST", "NEXT"}}
	for _, q := range result.Queues {
		rows = append(rows, []string{q.Name, fmt.Sprint(q.Visible), fmt.Sprint(q.InFlight), fmt.Sprint(q.Delayed), q.Oldest, q.Next})
	}
	if err := writeTable(out, rows); err != nil {
		return err
	}
	if n := result.OlderKey; n != nil && *n > 0 {
		_, err := fmt.Fprintf(out, asCalled("\n%s under an older service key; before the next rotation: commerce reseal --table %s --secret %s\n"),
			counted(*n, "item"), c.table, c.secret)
		return err
	}
	return nil
}

func (c *statusCommand) read(ctx context.Context) ([]*ops.QueueStatus, *sqs.Client, error) {
	urls := slices.Clone(c.queueURLs)
	if c.parkURL != "" {
		urls = append(urls, c.parkURL)
	}
	local, prefix := false, ""
	var client *sqs.Client
	var err error
	switch {
	case c.stack != "" && len(urls) > 0:
		return nil, nil, errors.New("--stack names all queues; it does not go with --queue-url or --park-url")
	case c.stack != "":
		prefix = c.stack + "-"
		client, err = newSQSClient(ctx, c.endpoint)
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
	reader := &ops.StatusReader{Client: client, ParkURL: c.parkURL, Local: local, Ages: isLoopback(c.endpoint)}
	queues, err := reader.Read(ctx, urls)
	return queues, client, err
}
