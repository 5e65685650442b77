package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/delivery/snstopic"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/queue"
)

// replayCommand is one run of commerce replay. Its target's queue is the park.
type replayCommand struct {
	target
	deliveriesURL, slowDeliveriesURL, indexJobsURL string

	alertTopic string
	consumer   string
	dryRun     bool
	limit      int
}

func newReplayCommand() *cobra.Command {
	c := &replayCommand{}
	cmd := &cobra.Command{
		Use: "replay", Short: "Hand the parked changes to their consumers again", Args: cobra.NoArgs,
		Long: `Replay takes stream records that the dispatcher or the indexer could not process
out of the park, and processes them in this process, with the given table and
queues. Fix the cause first, and run the command of the deployed version. A record
that fails again stays, gets a line with the reason, and makes the exit code 1.
Replay may be interrupted and repeated: repeating a record has no effect.

--dry-run counts the parked records by consumer and reason and changes nothing.
Other receivers do not see the messages meanwhile.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return unlessInterrupted(c.run(cmd.Context(), cmd.OutOrStdout()))
		},
	}
	c.tableFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.queueURL, "queue-url", "", "URL of the park in AWS, instead of the local runner's")
	flags.StringVar(&c.deliveriesURL, "deliveries-queue-url", "", "URL of the deliveries queue in AWS, for the dispatcher")
	flags.StringVar(&c.slowDeliveriesURL, "slow-deliveries-queue-url", "", "URL of the slow deliveries queue in AWS, for the dispatcher")
	flags.StringVar(&c.indexJobsURL, "index-jobs-queue-url", "", "URL of the queue of index jobs in AWS, for the indexer")
	flags.StringVar(&c.alertTopic, "alert-topic", "", "ARN of the SNS topic that alerts are published to (default: none is)")
	addEnum(cmd, &c.consumer, "consumer", "dispatcher or indexer (default: both)", []string{ops.Dispatcher, ops.Indexer})
	flags.BoolVar(&c.dryRun, "dry-run", false, "count the parked records by consumer and reason")
	flags.IntVar(&c.limit, "limit", 0, fmt.Sprintf("most records to replay (default: all, of %d messages at most)", ops.MaxScan))
	cmd.MarkFlagsMutuallyExclusive("dry-run", "limit")
	return cmd
}

func (c *replayCommand) run(ctx context.Context, out io.Writer) error {
	client, err := c.openQueues(ctx)
	if err != nil {
		return err
	}
	scan := ops.NewQueueScan(client, c.queueURL, c.limit)
	if c.dryRun {
		return c.count(ctx, scan, out)
	}
	table, _, err := c.openTable(ctx)
	if err != nil {
		return err
	}
	queueAt := func(url string) *queue.Queue { return queue.New(client, url) }
	r := &ops.Replay{
		Table: table, Consumer: c.consumer,
		Deliveries: queue.NewDeliveries(queueAt(c.deliveriesURL), queueAt(c.slowDeliveriesURL)),
		IndexJobs:  queue.NewIndexJobs(queueAt(c.indexJobsURL)),
		Failed: func(record string, err error) {
			fmt.Fprintln(out, visible(record)+": "+visible(ops.FirstLine(err.Error())))
		},
	}
	if c.alertTopic != "" {
		cfg, err := awsConfig(ctx)
		if err != nil {
			return err
		}
		r.Topic = snstopic.New(sns.NewFromConfig(cfg), c.alertTopic)
	}
	replayed, failed, err := r.Run(ctx, scan)
	fmt.Fprintf(out, "replayed %s\n", counted(replayed, "record"))
	printIncomplete(out, scan)
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("failed again and parked still: %s", counted(failed, "record")))
	}
	return err
}

// openQueues returns a client for the queues: all of the local runner, or all
// in AWS, where each must be named.
func (c *replayCommand) openQueues(ctx context.Context) (*sqs.Client, error) {
	given := []string{c.queueURL, c.table, c.deliveriesURL, c.slowDeliveriesURL, c.indexJobsURL}
	switch whole := !slices.Contains(given, ""); {
	case whole, c.dryRun && c.queueURL != "":
		return newSQSClient(ctx, c.queueURL)
	case strings.Join(given, "") != "":
		return nil, wrongUsage("the park in AWS needs --queue-url, and without --dry-run --table, " +
			"--deliveries-queue-url, --slow-deliveries-queue-url and --index-jobs-queue-url")
	}
	client, info, err := c.openSQS(ctx, "name the park with --queue-url")
	if err != nil {
		return nil, err
	}
	c.deliveriesURL, c.slowDeliveriesURL, c.indexJobsURL = info.DeliveriesQueueURL, info.SlowDeliveriesQueueURL, info.IndexJobsQueueURL
	c.queueURL, err = ops.QueueURL(ctx, client, ops.ParkQueueName)
	return client, err
}

func (c *replayCommand) count(ctx context.Context, scan *ops.QueueScan, out io.Writer) error {
	counts, err := ops.CountParked(ctx, scan, c.consumer)
	if err != nil {
		return err
	}
	groups := counts.Sorted(func(a, b ops.ParkedGroup) int { return strings.Compare(a.Consumer+a.Reason, b.Consumer+b.Reason) })
	return printCounts(out, scan, groups, []string{"CONSUMER", "RECORDS", "OLDEST", "REASON"}, func(g ops.GroupCount[ops.ParkedGroup]) []string {
		return []string{g.Group.Consumer, fmt.Sprint(g.Messages), timeCell(g.Oldest), g.Group.Reason}
	}, "parked record")
}
