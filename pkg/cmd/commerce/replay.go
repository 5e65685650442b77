package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	json       jsonFlag
}

func newReplayCommand() *cobra.Command {
	c := &replayCommand{}
	cmd := &cobra.Command{
		Use: "replay", Short: "Hand the parked changes to their consumers again", Args: cobra.NoArgs,
		Long: `Replay takes stream records that the dispatcher or the indexer could not process
out of the park. It processes them in this process, as the function would, with
the given table and queues. Records that succeed are deleted from the park.
Records that fail again stay there; each gets a line with the reason, and the
exit code is 1. Fix the cause first, and run the command of the deployed
version.

Replay may be repeated and interrupted: repeating a record has no effect. A
record that has changed since is indexed as of its last change. --dry-run counts
the parked records by consumer and reason and changes nothing. SQS shows a
message only to a receiver, so other receivers do not see the messages meanwhile,
or for 5 minutes when the command is killed. The park keeps a record for 14
days.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return unlessInterrupted(c.run(cmd.Context(), cmd.OutOrStdout()))
		},
	}
	c.tableFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.endpoint, "endpoint", "", "SQS endpoint (default: the local runner's, or AWS)")
	flags.StringVar(&c.queueURL, "queue-url", "", "URL of the park in AWS, instead of the local runner's")
	flags.StringVar(&c.deliveriesURL, "deliveries-queue-url", "", "URL of the deliveries queue in AWS, for the dispatcher")
	flags.StringVar(&c.slowDeliveriesURL, "slow-deliveries-queue-url", "", "URL of the slow deliveries queue in AWS, for the dispatcher")
	flags.StringVar(&c.indexJobsURL, "index-jobs-queue-url", "", "URL of the queue of index jobs in AWS, for the indexer")
	flags.StringVar(&c.alertTopic, "alert-topic", "", "ARN of the SNS topic that alerts are published to (default: none is)")
	flags.StringVar(&c.consumer, "consumer", "", "dispatcher or indexer (default: both)")
	flags.BoolVar(&c.dryRun, "dry-run", false, "count what is parked by consumer and reason")
	flags.IntVar(&c.limit, "limit", 0, fmt.Sprintf("most records to replay (default: all, of %d messages at most)", ops.MaxScan))
	c.json.flag(cmd)
	cmd.MarkFlagsMutuallyExclusive("dry-run", "limit")
	return cmd
}

func (c *replayCommand) run(ctx context.Context, out io.Writer) error {
	if c.limit < 0 {
		return wrongUsage("--limit %d: must be positive", c.limit)
	}
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
	var result replayResult
	queueAt := func(url string) *queue.Queue { return queue.New(client, url) }
	r := &ops.Replay{
		Table: table, Consumer: c.consumer,
		Deliveries: queue.NewDeliveries(queueAt(c.deliveriesURL), queueAt(c.slowDeliveriesURL)),
		IndexJobs:  queue.NewIndexJobs(queueAt(c.indexJobsURL)),
		Failed: func(record string, err error) {
			f := replayFailure{record, ops.FirstLine(err.Error())}
			result.Failed = append(result.Failed, f)
			if !c.json {
				fmt.Fprintln(out, visible(f.Record)+": "+visible(f.Message))
			}
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
	result.Replayed = replayed
	_, result.Complete = scan.Seen()
	err = errors.Join(err, c.json.print(out, result, func() error {
		fmt.Fprintf(out, "replayed %s\n", counted(replayed, "record"))
		printIncomplete(out, scan)
		return nil
	}))
	switch {
	case failed == 1:
		err = errors.Join(err, errors.New("1 record failed again and stays parked"))
	case failed > 1:
		err = errors.Join(err, fmt.Errorf("%d records failed again and stay parked", failed))
	}
	return err
}

// replayResult is what commerce replay prints as JSON.
type replayResult struct {
	Replayed int             `json:"replayed"`
	Failed   []replayFailure `json:"failed"`
	Complete bool            `json:"complete"` // false when there may be more
}

type replayFailure struct {
	Record  string `json:"record"`
	Message string `json:"message"`
}

// openQueues returns a client for the queues: all of the local runner, or all
// in AWS, where every queue that the consumers need must be named.
func (c *replayCommand) openQueues(ctx context.Context) (*sqs.Client, error) {
	if c.table+c.queueURL+c.deliveriesURL+c.slowDeliveriesURL+c.indexJobsURL != "" {
		if missing := c.missing(); len(missing) > 0 {
			return nil, wrongUsage("the park in AWS needs %s, too", strings.Join(missing, ", "))
		}
		return newSQSClient(ctx, c.endpoint)
	}
	client, info, err := c.openSQS(ctx, "name the park with --queue-url")
	if err != nil {
		return nil, err
	}
	c.deliveriesURL, c.slowDeliveriesURL, c.indexJobsURL = info.DeliveriesQueueURL, info.SlowDeliveriesQueueURL, info.IndexJobsQueueURL
	c.queueURL, err = ops.QueueURL(ctx, client, ops.ParkQueueName)
	return client, err
}

// missing returns the flags that AWS needs and were not given.
func (c *replayCommand) missing() (names []string) {
	for _, f := range []struct {
		name, value string
		needed      bool
	}{
		{"--queue-url", c.queueURL, true},
		{"--table", c.table, !c.dryRun},
		{"--deliveries-queue-url", c.deliveriesURL, !c.dryRun && c.consumer != ops.Indexer},
		{"--slow-deliveries-queue-url", c.slowDeliveriesURL, !c.dryRun && c.consumer != ops.Indexer},
		{"--index-jobs-queue-url", c.indexJobsURL, !c.dryRun && c.consumer != ops.Dispatcher},
	} {
		if f.needed && f.value == "" {
			names = append(names, f.name)
		}
	}
	return names
}

func (c *replayCommand) count(ctx context.Context, scan *ops.QueueScan, out io.Writer) error {
	counts, err := ops.CountParked(ctx, scan, c.consumer)
	if err != nil {
		return err
	}
	groups := counts.Sorted(func(a, b ops.ParkedGroup) int { return strings.Compare(a.Consumer+a.Reason, b.Consumer+b.Reason) })
	rows := [][]string{{"CONSUMER", "RECORDS", "OLDEST", "REASON"}}
	for _, g := range groups {
		rows = append(rows, []string{g.Group.Consumer, fmt.Sprint(g.Messages), timeCell(g.Oldest), g.Group.Reason})
	}
	return printCounts(out, c.json, scan, groups, rows, "parked record")
}
