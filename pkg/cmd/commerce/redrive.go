package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/pause"
	"github.com/go-json-experiment/json"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

// redriveCommand is one run of commerce redrive.
type redriveCommand struct {
	target queueTarget
	dlqURL string
	rate   int32
	wait   time.Duration // between two looks at the task
}

func newRedriveCommand() *cobra.Command {
	c := &redriveCommand{wait: 500 * time.Millisecond}
	cmd := &cobra.Command{
		Use:   "redrive records|deliveries|index-jobs",
		Short: "Move messages from a dead letter queue back to its queue",
		Long: `Redrive moves every message of a dead letter queue back to the queue that it
came from, where it is processed again, and waits until that is done. Mend the
cause first: what fails again comes back. The dead letter queue is the one of
the queue's redrive policy, unless --dlq-url names another. Interrupting the
command stops the moving; what has been moved stays moved.`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"records", "deliveries", "index-jobs"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.target.flags(cmd)
	cmd.Flags().StringVar(&c.dlqURL, "dlq-url", "", "URL of the dead letter queue (default: by the redrive policy)")
	cmd.Flags().Int32Var(&c.rate, "rate", 0, "most messages a second, 1 to 500 (default: as fast as SQS goes)")
	return cmd
}

func (c *redriveCommand) run(ctx context.Context, queue string, out, errOut io.Writer) error {
	client, err := c.target.resolve(ctx, func(f *runner.Info) string {
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
	from, to, err := c.queues(ctx, client)
	if err != nil {
		return err
	}
	// The destination is always named: messages that the service itself put
	// into the dead letter queue have no origin that SQS could find out.
	input := &sqs.StartMessageMoveTaskInput{SourceArn: &from, DestinationArn: &to}
	if c.rate > 0 {
		input.MaxNumberOfMessagesPerSecond = &c.rate
	}
	m := &move{client: client, from: from, wait: c.wait}
	if err := m.start(ctx, input); err != nil {
		return fmt.Errorf("move messages from %s to %s: %w", from, to, err)
	}
	moved, err := m.follow(ctx, newRedriveBar(errOut))
	fmt.Fprintf(out, "moved %d messages from %s to %s\n", moved, from, to)
	return err
}

// queues returns the ARNs of the dead letter queue and of the queue itself.
func (c *redriveCommand) queues(ctx context.Context, client *sqs.Client) (from, to string, err error) {
	attributes, err := queueAttributes(ctx, client, c.target.queueURL)
	if err != nil {
		return "", "", err
	}
	to = attributes[string(types.QueueAttributeNameQueueArn)]
	if c.dlqURL != "" {
		attributes, err := queueAttributes(ctx, client, c.dlqURL)
		return attributes[string(types.QueueAttributeNameQueueArn)], to, err
	}
	policy := attributes[string(types.QueueAttributeNameRedrivePolicy)]
	if policy == "" {
		return "", "", fmt.Errorf("queue %s has no redrive policy; name its dead letter queue with --dlq-url", c.target.queueURL)
	}
	var redrive struct {
		DeadLetterTargetARN string `json:"deadLetterTargetArn"`
	}
	if err := json.Unmarshal([]byte(policy), &redrive); err != nil {
		return "", "", fmt.Errorf("read the redrive policy of %s: %w", c.target.queueURL, err)
	}
	return redrive.DeadLetterTargetARN, to, nil
}

func queueAttributes(ctx context.Context, client *sqs.Client, queueURL string) (map[string]string, error) {
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &queueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, fmt.Errorf("look up queue %s: %w", queueURL, err)
	}
	return out.Attributes, nil
}

// move is one run of SQS's own task that moves messages.
type move struct {
	client *sqs.Client
	from   string
	wait   time.Duration
	handle string
	before int64 // when the last task before this one was started
}

func (m *move) start(ctx context.Context, input *sqs.StartMessageMoveTaskInput) error {
	last, err := m.latest(ctx)
	if err != nil {
		return err
	}
	if last != nil {
		m.before = last.StartedTimestamp
	}
	task, err := m.client.StartMessageMoveTask(ctx, input)
	if err != nil {
		return err
	}
	m.handle = aws.ToString(task.TaskHandle)
	return nil
}

// latest returns the last task of the queue, nil when there was none.
func (m *move) latest(ctx context.Context) (*types.ListMessageMoveTasksResultEntry, error) {
	out, err := m.client.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &m.from, MaxResults: aws.Int32(1)})
	if err != nil || len(out.Results) == 0 {
		return nil, err
	}
	return &out.Results[0], nil
}

// maxUnseen is how often the list of tasks may still lack the new one.
const maxUnseen = 60

// follow waits for the end of the task and returns how many messages it moved.
func (m *move) follow(ctx context.Context, bar *redriveBar) (moved int64, err error) {
	defer bar.end()
	for unseen := 0; unseen < maxUnseen; {
		task, err := m.latest(ctx)
		switch {
		case errors.Is(err, context.Canceled):
			return m.cancel(context.WithoutCancel(ctx), moved)
		case err != nil:
			return moved, fmt.Errorf("follow the move from %s: %w", m.from, err)
		case task == nil || task.StartedTimestamp == m.before:
			unseen++
		default:
			moved = task.ApproximateNumberOfMessagesMoved
			bar.show(task)
			if done, err := ended(task); done {
				return moved, err
			}
		}
		if pause.For(ctx, m.wait) != nil {
			return m.cancel(context.WithoutCancel(ctx), moved)
		}
	}
	return moved, fmt.Errorf("follow the move from %s: SQS does not list the task", m.from)
}

// ended reports whether the task is over, and with what error.
func ended(task *types.ListMessageMoveTasksResultEntry) (bool, error) {
	switch status := aws.ToString(task.Status); status {
	case "COMPLETED":
		return true, nil
	case "FAILED", "CANCELLED":
		return true, fmt.Errorf("the move ended as %s: %s", status, aws.ToString(task.FailureReason))
	default:
		return false, nil
	}
}

func (m *move) cancel(ctx context.Context, moved int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := m.client.CancelMessageMoveTask(ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: &m.handle})
	if err != nil {
		return moved, fmt.Errorf("interrupted, but the move could not be stopped: %w", err)
	}
	return out.ApproximateNumberOfMessagesMoved, errors.New("interrupted; the rest stays in the dead letter queue")
}

// redriveBar shows the messages moved, on a terminal only.
type redriveBar struct{ bar *progressbar.ProgressBar }

func newRedriveBar(errOut io.Writer) *redriveBar {
	if !isTerminal(errOut) {
		return &redriveBar{}
	}
	return &redriveBar{progressbar.NewOptions64(-1, progressbar.OptionSetWriter(errOut),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription("moving"))}
}

func (b *redriveBar) show(task *types.ListMessageMoveTasksResultEntry) {
	if b.bar == nil {
		return
	}
	if all := aws.ToInt64(task.ApproximateNumberOfMessagesToMove); all > 0 {
		b.bar.ChangeMax64(all)
	}
	_ = b.bar.Set64(task.ApproximateNumberOfMessagesMoved)
}

func (b *redriveBar) end() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
