// Package queue sends messages to SQS queues and changes the visibility of
// received ones. It is the only user of the SQS SDK in the functions. A send is
// done when every message was accepted; when SQS is busy it fails with a fault
// of kind Unavailable, and sending all messages again is always safe for the
// readers. The event source, which drives the functions, receives, deletes and
// redrives.
package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/pause"
)

// Limits of SQS.
const (
	MaxMessage           = 1 << 20 // bytes of a message, and of a batch together
	MaxDelay             = 15 * time.Minute
	MaxVisibilityTimeout = 12 * time.Hour // from when the message was received
	maxBatch             = 10

	senders       = 8 // batches under way at a time
	batchAttempts = 5
	firstPause    = 50 * time.Millisecond
)

// Queue is one queue. It is safe for concurrent use.
type Queue struct {
	client *sqs.Client
	url    string
}

// New returns the queue at the URL.
func New(client *sqs.Client, url string) *Queue { return &Queue{client: client, url: url} }

// Message is a message to be sent. Messages of one group get no more than
// their fair share of the readers.
type Message struct {
	Body       string
	Group      string        // "": none
	Delay      time.Duration // up to MaxDelay, rounded up to seconds
	Attributes map[string]string
}

// Ping makes one cheap call, so that a function's first message finds an open
// connection.
func (q *Queue) Ping(ctx context.Context) error {
	_, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameVisibilityTimeout},
	})
	if err != nil {
		return wrap("reach the queue", err)
	}
	return nil
}

// Send sends all of the messages, in batches. After an error some of them
// may have been sent.
func (q *Queue) Send(ctx context.Context, messages ...Message) error {
	var batches [][]Message
	for len(messages) > 0 {
		n := batchOf(messages)
		batches = append(batches, messages[:n])
		messages = messages[n:]
	}
	return parallel.UntilError(ctx, senders, slices.All(batches), func(ctx context.Context, _ int, batch []Message) error {
		return q.sendBatch(ctx, batch)
	})
}

// batchOf counts the messages that fit into one call, at least one.
func batchOf(messages []Message) int {
	size := 0
	for i, m := range messages {
		size += m.size()
		if i == maxBatch || i > 0 && size > MaxMessage {
			return i
		}
	}
	return len(messages)
}

func (m *Message) size() int {
	n := len(m.Body)
	for name, v := range m.Attributes {
		n += len(name) + len(v) + len(stringType)
	}
	return n
}

const stringType = "String"

func (m *Message) entry(id int) types.SendMessageBatchRequestEntry {
	e := types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(id)), MessageBody: &m.Body}
	if m.Group != "" {
		e.MessageGroupId = &m.Group
	}
	if m.Delay > 0 {
		e.DelaySeconds = int32(seconds(min(m.Delay, MaxDelay))) //nolint:gosec // at most 900
	}
	if len(m.Attributes) > 0 {
		e.MessageAttributes = make(map[string]types.MessageAttributeValue, len(m.Attributes))
		for name, v := range m.Attributes {
			e.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String(stringType), StringValue: &v}
		}
	}
	return e
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// sendBatch sends one batch, and again those that SQS did not take for a
// reason of its own.
func (q *Queue) sendBatch(ctx context.Context, batch []Message) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i := range batch {
		entries[i] = batch[i].entry(i)
	}
	return callForAll(ctx, "send messages", entries, func(left []types.SendMessageBatchRequestEntry) ([]types.BatchResultErrorEntry, error) {
		out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: left})
		if err != nil {
			return nil, err
		}
		return out.Failed, nil
	})
}

// VisibilityChange keeps a received message, named by its receipt handle,
// from its readers for a time from now on.
type VisibilityChange struct {
	Receipt string
	For     time.Duration // rounded up to seconds
}

// ChangeVisibility changes the visibility of received messages. After an
// error some of them may be changed; the others come again when the queue's
// own timeout is over.
func (q *Queue) ChangeVisibility(ctx context.Context, changes ...VisibilityChange) error {
	var errs []error
	for batch := range slices.Chunk(changes, maxBatch) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
		for i, c := range batch {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &batch[i].Receipt,
				VisibilityTimeout: int32(seconds(min(max(0, c.For), MaxVisibilityTimeout))), //nolint:gosec // at most 12 hours
			}
		}
		errs = append(errs, callForAll(ctx, "change the visibility of messages", entries,
			func(left []types.ChangeMessageVisibilityBatchRequestEntry) ([]types.BatchResultErrorEntry, error) {
				out, err := q.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: left})
				if err != nil {
					return nil, err
				}
				return out.Failed, nil
			}))
	}
	return errors.Join(errs...)
}

// callForAll makes a call for entries, whose ids are their numbers, and again
// for those that SQS did not do for a reason of its own. An entry that is
// wrong in itself does not stop the others; it ends in an internal error.
func callForAll[E any](ctx context.Context, tried string, entries []E, call func(left []E) ([]types.BatchResultErrorEntry, error)) error {
	var wrong error
	left, delay := entries, firstPause
	for attempt := 1; ; attempt++ {
		failed, err := call(left)
		if err != nil {
			return wrap(fmt.Sprintf("%s: %d at once", tried, len(left)), err)
		}
		left = nil
		for _, f := range failed {
			i, err := strconv.Atoi(aws.ToString(f.Id))
			if f.SenderFault || err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("%s: %s: %s", tried, aws.ToString(f.Code), aws.ToString(f.Message)))
				continue
			}
			left = append(left, entries[i])
		}
		if len(left) == 0 {
			return wrong
		}
		if attempt == batchAttempts {
			return fault.Busy(fmt.Errorf("%s: %d were not accepted: %s", tried, len(left), aws.ToString(failed[0].Code)))
		}
		if err := pause.For(ctx, delay); err != nil {
			return wrap(tried, err)
		}
		delay *= 2
	}
}

// maxBackOff bounds the wait of a message after a failure of the service.
const maxBackOff = 5 * time.Minute

// BackOff is how long a message that could not be worked on stays invisible,
// by its receive count, from 1: 2 s, doubling up to 5 min. The cause may be
// over by then.
func BackOff(receives int) time.Duration {
	return min(time.Second<<min(receives, 10), maxBackOff)
}

// RetryLater keeps a received message that could not be worked on invisible,
// by [BackOff].
func RetryLater(m *events.SQSMessage) VisibilityChange {
	return VisibilityChange{Receipt: m.ReceiptHandle, For: BackOff(Receives(m))}
}

// Receives is how often a message was received, at least 1.
func Receives(m *events.SQSMessage) int {
	n, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	return max(1, n)
}

// isSourceOf reports whether a received message came from the queue.
func (q *Queue) isSourceOf(m *events.SQSMessage) bool {
	return strings.HasSuffix(m.EventSourceARN, ":"+path.Base(q.url))
}

// InFlight is about how many messages are with readers or invisible to them.
func (q *Queue) InFlight(ctx context.Context) (int, error) {
	const name = types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{name},
	})
	if err != nil {
		return 0, wrap("count the messages in flight", err)
	}
	n, err := strconv.Atoi(out.Attributes[string(name)])
	if err != nil {
		return 0, fmt.Errorf("count the messages in flight: %w", err)
	}
	return n, nil
}

// wrap names the attempted call. A request that SQS refuses as wrong is an internal error;
// anything else passes.
func wrap(tried string, err error) error {
	err = fmt.Errorf("%s: %w", tried, err)
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorFault() == smithy.FaultClient && !throttled(api.ErrorCode()) {
		return err
	}
	return fault.Busy(err)
}

func throttled(code string) bool {
	return slices.Contains([]string{"RequestThrottled", "ThrottlingException", "Throttling", "OverLimit", "KmsThrottled"}, code)
}
