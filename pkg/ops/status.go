package ops

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// QueueStatus is what waits in a queue.
type QueueStatus struct {
	Name                       string
	Visible, InFlight, Delayed int
	Next                       string // command to run, "" when there is nothing to do
	// Stuck says that nothing takes what the queue holds but an operator: it
	// is a dead letter queue or the park.
	Stuck bool

	url, arn, deadLetterARN string
	purpose                 purpose
}

// purpose orders the queues of a status.
type purpose uint8

const (
	work purpose = iota
	deadLetters
	park
)

// All counts the messages of the queue.
func (q *QueueStatus) All() int { return q.Visible + q.InFlight + q.Delayed }

// ReadStatus reads the status of queues and of their dead letter queues: work
// queues first, the park last. It receives no message. Local says that the queues
// are those that the commands use by default, so that Next need not name them.
func ReadStatus(ctx context.Context, client *sqs.Client, urls []string, local bool) ([]*QueueStatus, error) {
	var queues []*QueueStatus
	known := map[string]bool{} // ARNs
	for len(urls) > 0 {
		q, err := readQueue(ctx, client, urls[0])
		if err != nil {
			return nil, err
		}
		urls = urls[1:]
		if known[q.arn] {
			continue
		}
		known[q.arn] = true
		queues = append(queues, q)
		if q.deadLetterARN == "" || known[q.deadLetterARN] {
			continue
		}
		url, err := QueueURLOfARN(ctx, client, q.deadLetterARN)
		if err != nil {
			return nil, fmt.Errorf("dead letter queue of %s: %w", q.Name, err)
		}
		urls = append(urls, url)
	}
	slices.SortFunc(queues, func(a, b *QueueStatus) int { return strings.Compare(a.Name, b.Name) })
	for _, q := range queues {
		q.advise(queues, local)
	}
	slices.SortStableFunc(queues, func(a, b *QueueStatus) int { return cmp.Compare(a.purpose, b.purpose) })
	return queues, nil
}

func readQueue(ctx context.Context, client *sqs.Client, url string) (*QueueStatus, error) {
	attributes, err := QueueAttributes(ctx, client, url)
	if err != nil {
		return nil, err
	}
	q := &QueueStatus{Name: path.Base(url), url: url, arn: attributes[string(types.QueueAttributeNameQueueArn)]}
	for name, n := range map[types.QueueAttributeName]*int{
		types.QueueAttributeNameApproximateNumberOfMessages:           &q.Visible,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible: &q.InFlight,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed:    &q.Delayed,
	} {
		if *n, err = strconv.Atoi(attributes[string(name)]); err != nil {
			return nil, fmt.Errorf("queue %s: %s: %w", url, name, err)
		}
	}
	q.deadLetterARN, err = redriveTarget(url, attributes)
	return q, err
}

// advise finds out the queue's purpose, and what to run when it holds messages
// that nothing takes.
func (q *QueueStatus) advise(all []*QueueStatus, local bool) {
	source := q.source(all)
	switch {
	case source != nil:
		q.purpose = deadLetters
	case strings.Contains(q.Name, ParkQueueName):
		q.purpose = park
	}
	q.Stuck = q.purpose != work && q.All() > 0
	switch {
	case !q.Stuck:
	case q.purpose == park:
		q.Next = "commerce replay"
		if !local {
			q.Next += " --dry-run --queue-url " + q.url
		}
	default:
		messages, queueURL := redriveArgument(source.Name), ""
		if !local {
			queueURL = " --queue-url " + source.url
		}
		q.Next = "commerce redrive " + messages + queueURL
		if messages == "records" {
			q.Next = "commerce rejects" + queueURL + ", " + q.Next
		}
	}
}

// source returns the queue whose dead letters this one keeps, nil when there
// is none. Of several it prefers the one with the same name before "Queue" and
// "DLQ": the service itself moves messages from there to the others.
func (q *QueueStatus) source(all []*QueueStatus) (source *QueueStatus) {
	name, _, _ := strings.Cut(q.Name, "DLQ")
	for _, other := range all {
		if other.deadLetterARN != q.arn {
			continue
		}
		if like, _, _ := strings.Cut(other.Name, "Queue"); like == name {
			return other
		}
		source = cmp.Or(source, other)
	}
	return source
}

// redriveArgument names the messages of a queue as commerce redrive does.
func redriveArgument(queue string) string {
	switch {
	case strings.Contains(queue, "Deliveries"):
		return "deliveries"
	case strings.Contains(queue, "IndexJobs"):
		return "index-jobs"
	default:
		return "records"
	}
}
