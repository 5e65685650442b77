package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/pause"
)

// Limits of SQS.
const (
	MaxMessage = 1 << 20 // bytes of a message, and of a batch together
	MaxDelay   = 15 * time.Minute
	maxBatch   = 10

	senders      = 8 // batches under way at a time
	sendAttempts = 5
	firstPause   = 50 * time.Millisecond
)

// Queue is one queue. It is safe for concurrent use.
type Queue struct {
	client *sqs.Client
	url    string
}

// New returns the queue at the URL.
func New(client *sqs.Client, url string) *Queue { return &Queue{client: client, url: url} }

// Message is what is sent. Messages of one group get their fair share of the
// readers beside those of others.
type Message struct {
	Body       string
	Group      string        // "": none
	Delay      time.Duration // up to MaxDelay; what is finer than a second rounds up
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
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	for len(messages) > 0 {
		n := batchOf(messages)
		batch := messages[:n]
		messages = messages[n:]
		group.Go(func() error { return q.sendBatch(ctx, batch) })
	}
	return group.Wait()
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
	delay := firstPause
	for attempt := 1; ; attempt++ {
		out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &q.url, Entries: entries})
		if err != nil {
			return wrap(fmt.Sprintf("send %d messages", len(entries)), err)
		}
		if len(out.Failed) == 0 {
			return nil
		}
		if entries, err = remaining(entries, out.Failed); err != nil {
			return err
		}
		if attempt == sendAttempts {
			return fault.Busy(fmt.Errorf("send messages: %d were not accepted: %s", len(entries), aws.ToString(out.Failed[0].Code)))
		}
		if err := pause.For(ctx, delay); err != nil {
			return wrap("send messages", err)
		}
		delay *= 2
	}
}

// remaining picks the entries to send again. A message that is wrong in
// itself is an internal error.
func remaining(entries []types.SendMessageBatchRequestEntry, failed []types.BatchResultErrorEntry) ([]types.SendMessageBatchRequestEntry, error) {
	again := make(map[string]bool, len(failed))
	for _, f := range failed {
		if f.SenderFault {
			return nil, fmt.Errorf("send a message: %s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
		}
		again[aws.ToString(f.Id)] = true
	}
	var rest []types.SendMessageBatchRequestEntry
	for _, e := range entries {
		if again[*e.Id] {
			rest = append(rest, e)
		}
	}
	return rest, nil
}

// Hide keeps a received message from its readers for d, whole seconds up,
// from now on.
func (q *Queue) Hide(ctx context.Context, receipt string, d time.Duration) error {
	_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &q.url, ReceiptHandle: &receipt, VisibilityTimeout: int32(max(0, seconds(d))), //nolint:gosec // at most 12 hours
	})
	if err != nil {
		return wrap("hide a message", err)
	}
	return nil
}

// wrap names what was tried. What SQS refuses as wrong is an internal error;
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
	switch code {
	case "RequestThrottled", "ThrottlingException", "Throttling", "OverLimit", "KmsThrottled":
		return true
	}
	return false
}
