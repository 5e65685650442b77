package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/local/runner"
)

// Exit codes of commerce status.
const (
	exitWaiting = 1
	exitBlind   = 2
)

// statusCommand is one run of commerce status.
type statusCommand struct {
	data, endpoint, stack string
	queueURLs             []string
	parkURL               string

	local bool // it is the local runner that is looked at
}

func newStatusCommand() *cobra.Command {
	c := &statusCommand{}
	cmd := &cobra.Command{
		Use: "status", Short: "Show what waits in the queues, and what to do about it",
		Long: `Status shows of each queue how many messages are visible, in flight and delayed,
how old the oldest is where that is known, and of each dead letter queue and the
park which command goes on with what they hold. It takes nothing out of any
queue. Without flags it looks at the local runner's queues. In AWS --stack names
the stack whose queues to look at; --queue-url names single queues instead, as
often as there are, of which the dead letter queues follow from the redrive
policies. The counts of SQS are approximate.

The exit code is 0 when no dead letter queue and no park holds a message, 1 when
one does, and 2 when the queues could not be looked at.`,
		Args: func(cmd *cobra.Command, args []string) error { return blind(cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return blind(err) })
	flags := cmd.Flags()
	flags.StringVar(&c.data, "data", defaultData, "data directory of the local runner")
	flags.StringVar(&c.endpoint, "endpoint", "", "SQS endpoint (default: the local runner's, or AWS)")
	flags.StringVar(&c.stack, "stack", "", "name of a stack in AWS")
	flags.StringArrayVar(&c.queueURLs, "queue-url", nil, "URL of a queue; may be repeated")
	flags.StringVar(&c.parkURL, "park-url", "", "URL of the park, beside --queue-url")
	return cmd
}

func blind(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitBlind, unlessInterrupted(err)}
}

func (c *statusCommand) run(ctx context.Context, out io.Writer) error {
	client, err := c.connect(ctx)
	if err != nil {
		return blind(err)
	}
	urls, err := c.urls(ctx, client)
	if err != nil {
		return blind(err)
	}
	queues, err := c.look(ctx, client, urls)
	if err != nil {
		return blind(err)
	}
	rows := [][]string{{"QUEUE", "VISIBLE", "IN FLIGHT", "DELAYED", "OLDEST", "NEXT"}}
	var waiting []string
	for _, q := range queues {
		rows = append(rows, []string{q.name, fmt.Sprint(q.visible), fmt.Sprint(q.inFlight), fmt.Sprint(q.delayed), q.oldest, q.next})
		if q.role != works && q.all() > 0 {
			waiting = append(waiting, fmt.Sprintf("%s in %s", counted(q.all(), "message"), q.name))
		}
	}
	if err := writeTable(out, rows); err != nil {
		return blind(err)
	}
	if len(waiting) > 0 {
		return &exitError{exitWaiting, errors.New(strings.Join(waiting, ", "))}
	}
	return nil
}

// connect settles where the queues are, as the commands that move messages do.
func (c *statusCommand) connect(ctx context.Context) (*sqs.Client, error) {
	if c.stack != "" && len(c.queueURLs)+len(c.parkURL) > 0 {
		return nil, errors.New("--stack names all queues; it does not go with --queue-url or --park-url")
	}
	if c.stack != "" {
		return newSQSClient(ctx, c.endpoint)
	}
	file, err := runner.ReadInfo(c.data)
	switch {
	case len(c.queueURLs) == 0 && c.parkURL == "":
		if err != nil {
			return nil, fmt.Errorf("%w, or name a stack with --stack or queues with --queue-url", err)
		}
		c.local = true
		c.endpoint = cmp.Or(c.endpoint, file.SQSEndpoint)
	case err == nil && c.endpoint == "" && sameHost(append(c.queueURLs, c.parkURL)[0], file.SQSEndpoint):
		c.endpoint = file.SQSEndpoint
	}
	return newSQSClient(ctx, c.endpoint)
}

// urls returns the queues to begin with.
func (c *statusCommand) urls(ctx context.Context, client *sqs.Client) ([]string, error) {
	if c.stack == "" && !c.local {
		urls := slices.Clone(c.queueURLs)
		if c.parkURL != "" {
			urls = append(urls, c.parkURL)
		}
		return urls, nil
	}
	in := &sqs.ListQueuesInput{MaxResults: aws.Int32(1000)}
	if c.stack != "" {
		in.QueueNamePrefix = aws.String(c.stack + "-")
	}
	var urls []string
	for pages := sqs.NewListQueuesPaginator(client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the queues: %w", err)
		}
		urls = append(urls, page.QueueUrls...)
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("there are no queues whose names begin with %q", aws.ToString(in.QueueNamePrefix))
	}
	return urls, nil
}

// role is what a queue is there for.
type role uint8

const (
	works  role = iota // brings work to a function
	buries             // keeps what was received too often, or refused
	parks              // keeps stream records
)

// watched is a queue as status shows it.
type watched struct {
	name, url, arn             string
	visible, inFlight, delayed int
	oldest                     string // how long ago it was sent, "" when that is not known
	target                     string // ARN of its own dead letter queue, "" for none
	role                       role
	next                       string // what to run, "" when there is nothing to do
}

func (q *watched) all() int { return q.visible + q.inFlight + q.delayed }

// look reads the queues and their dead letter queues, and orders them: those
// that work first.
func (c *statusCommand) look(ctx context.Context, client *sqs.Client, urls []string) ([]*watched, error) {
	var queues []*watched
	known := map[string]bool{} // ARNs
	for len(urls) > 0 {
		q, err := c.read(ctx, client, urls[0])
		if err != nil {
			return nil, err
		}
		urls = urls[1:]
		if known[q.arn] {
			continue
		}
		known[q.arn] = true
		queues = append(queues, q)
		if q.target == "" || known[q.target] {
			continue
		}
		url, err := queueOfARN(ctx, client, q.target)
		if err != nil {
			return nil, fmt.Errorf("dead letter queue of %s: %w", q.name, err)
		}
		urls = append(urls, url)
	}
	slices.SortFunc(queues, func(a, b *watched) int { return strings.Compare(a.name, b.name) })
	for _, q := range queues {
		c.assign(q, queues)
	}
	slices.SortStableFunc(queues, func(a, b *watched) int { return cmp.Compare(a.role, b.role) })
	return queues, nil
}

func (c *statusCommand) read(ctx context.Context, client *sqs.Client, url string) (*watched, error) {
	attributes, err := queueAttributes(ctx, client, url)
	if err != nil {
		return nil, err
	}
	q := &watched{name: path.Base(url), url: url, arn: attributes[string(types.QueueAttributeNameQueueArn)]}
	for name, n := range map[types.QueueAttributeName]*int{
		types.QueueAttributeNameApproximateNumberOfMessages:           &q.visible,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible: &q.inFlight,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed:    &q.delayed,
	} {
		if *n, err = strconv.Atoi(attributes[string(name)]); err != nil {
			return nil, fmt.Errorf("queue %s: %s: %w", url, name, err)
		}
	}
	if q.target, err = deadLettersOf(attributes); err != nil {
		return nil, fmt.Errorf("queue %s: %w", url, err)
	}
	if isLoopback(c.endpoint) {
		q.oldest, err = ageOfOldest(ctx, client, url)
	}
	return q, err
}

// deadLettersOf returns the ARN that a redrive policy names, "" without one.
func deadLettersOf(attributes map[string]string) (string, error) {
	policy := attributes[string(types.QueueAttributeNameRedrivePolicy)]
	if policy == "" {
		return "", nil
	}
	var redrive struct {
		Target string `json:"deadLetterTargetArn"`
	}
	if err := json.Unmarshal([]byte(policy), &redrive); err != nil {
		return "", fmt.Errorf("read the redrive policy: %w", err)
	}
	return redrive.Target, nil
}

// ageOfOldest asks the local runner's queue server, which tells what in AWS is
// a metric. Another server on this machine may not know it.
func ageOfOldest(ctx context.Context, client *sqs.Client, url string) (string, error) {
	const name = "ApproximateAgeOfOldestMessage"
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{name}})
	if unknown := (*types.InvalidAttributeName)(nil); errors.As(err, &unknown) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up queue %s: %w", url, err)
	}
	if out.Attributes[name] == "" {
		return "", nil
	}
	seconds, err := strconv.Atoi(out.Attributes[name])
	if err != nil {
		return "", fmt.Errorf("queue %s: %s: %w", url, name, err)
	}
	return (time.Duration(seconds) * time.Second).String(), nil
}

// assign tells what a queue is there for, and what to run when it holds
// something that nobody takes.
func (c *statusCommand) assign(q *watched, all []*watched) {
	from := q.sourceOf(all)
	switch {
	case from != nil:
		q.role = buries
	case q.url == c.parkURL || strings.Contains(q.name, localPark):
		q.role = parks
	}
	if q.all() == 0 || q.role == works {
		return
	}
	if q.role == parks {
		q.next = "commerce replay"
		if !c.local {
			q.next += " --dry-run --queue-url " + q.url
		}
		return
	}
	what, target := sortOf(from.name), ""
	if !c.local {
		target = " --queue-url " + from.url
	}
	q.next = "commerce redrive " + what + target
	if what == "records" {
		q.next = "commerce rejects" + target + ", " + q.next
	}
}

// sourceOf returns the queue whose dead letters this one keeps, nil when there
// is none. Of several it is the one after which this one is named: from there
// the service itself brings messages to the others.
func (q *watched) sourceOf(all []*watched) (source *watched) {
	name, _, _ := strings.Cut(q.name, "DLQ")
	for _, other := range all {
		if other.target != q.arn {
			continue
		}
		if like, _, _ := strings.Cut(other.name, "Queue"); like == name {
			return other
		}
		source = cmp.Or(source, other)
	}
	return source
}

// sortOf names the messages of a queue as commerce redrive does.
func sortOf(name string) string {
	switch {
	case strings.Contains(name, "Deliveries"):
		return "deliveries"
	case strings.Contains(name, "IndexJobs"):
		return "index-jobs"
	default:
		return "records"
	}
}
