package eventsource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/base/pause"
)

// QueueClient is the part of *sqs.Client that a queue source calls.
type QueueClient interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

const (
	maxRequestMessages = 10 // in one request to SQS
	maxDeleteAttempts  = 3
	longPoll           = 20 // seconds, of a receive
)

// QueueConfig is an event source mapping on a queue.
type QueueConfig struct {
	Host
	QueueURL                string
	QueueARN                string // eventSourceARN of the events
	BatchSize               int    // 1 to 10, default 10
	MaximumConcurrency      int    // invocations at a time, default 10
	ReportBatchItemFailures bool
}

// A Queue invokes a function with the messages of a queue. It deletes those that succeeded; one that failed keeps its
// visibility timeout, or the one that the function gave it, and is received again after it.
type Queue struct {
	client   QueueClient
	function Function
	cfg      QueueConfig
}

// NewQueue makes a source.
func NewQueue(client QueueClient, function Function, cfg QueueConfig) *Queue {
	cfg.Host = cfg.Host.withDefaults()
	cfg.BatchSize, cfg.MaximumConcurrency = cmp.Or(cfg.BatchSize, maxRequestMessages), cmp.Or(cfg.MaximumConcurrency, 10)
	return &Queue{client: client, function: function, cfg: cfg}
}

// Run polls the queue until ctx ends and the invocations in progress, within the host's grace, with it. It asks for
// messages only when an invocation may begin, so that none waits here while its visibility timeout runs. Errors of the
// queue are logged and tried again without end.
func (q *Queue) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	invocations := make(chan struct{}, q.cfg.MaximumConcurrency)
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case invocations <- struct{}{}:
		}
		received, err := q.receive(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			q.cfg.Logger.WarnContext(ctx, "queue not read, trying again", "function", q.function.Name, "queue", q.cfg.QueueURL, "error", err)
			_ = pause.For(ctx, backoff(failures))
		} else {
			failures = 0
		}
		if len(received) == 0 {
			<-invocations
			continue
		}
		running.Add(1)
		q.cfg.start(ctx, func() {
			defer running.Done()
			defer func() { <-invocations }()
			q.process(ctx, received)
		})
	}
}

func (q *Queue) receive(ctx context.Context) ([]types.Message, error) {
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    aws.String(q.cfg.QueueURL),
		MaxNumberOfMessages:         int32(q.cfg.BatchSize),
		WaitTimeSeconds:             longPoll,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		return nil, fmt.Errorf("receiving from %s: %w", q.cfg.QueueURL, err)
	}
	return out.Messages, nil
}

// process invokes the function with a batch, in pieces that fit an event, and deletes the processed messages.
func (q *Queue) process(ctx context.Context, received []types.Message) {
	log := q.cfg.Logger.With("function", q.function.Name, "queue", q.cfg.QueueURL)
	var records []record
	for _, from := range received {
		records = append(records, messageRecord(from, q.cfg.QueueARN, q.cfg.Region))
	}
	for len(records) > 0 {
		n := fitting(records, len(records))
		batch := records[:n:n]
		records = records[n:]
		failed, err := q.function.handle(ctx, q.cfg.Host, batch, q.cfg.ReportBatchItemFailures)
		if err != nil {
			log.WarnContext(ctx, "messages failed, they come again", "messages", n, "error", err)
			continue
		}
		done := slices.DeleteFunc(batch, func(r record) bool { return slices.Contains(failed, r.id) })
		if len(done) < n {
			log.DebugContext(ctx, "messages come again as the function asks", "messages", n-len(done), "of", n)
		}
		if err := q.remove(ctx, done); err != nil {
			log.WarnContext(ctx, "messages done but not deleted, they come again", "error", err)
		}
	}
}

// remove deletes messages, even if ctx has ended meanwhile.
func (q *Queue) remove(ctx context.Context, messages []record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	entries := make([]types.DeleteMessageBatchRequestEntry, len(messages)) // no more than one request received
	for i := range messages {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(messages[i].message.ReceiptHandle)}
	}
	for try := 1; len(entries) > 0; try++ {
		out, err := q.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(q.cfg.QueueURL), Entries: entries})
		if err == nil {
			if len(out.Failed) == 0 {
				return nil
			}
			entries = slices.DeleteFunc(entries, func(entry types.DeleteMessageBatchRequestEntry) bool {
				return !slices.ContainsFunc(out.Failed, func(f types.BatchResultErrorEntry) bool { return aws.ToString(f.Id) == aws.ToString(entry.Id) })
			})
			err = fmt.Errorf("%s: %s", aws.ToString(out.Failed[0].Code), aws.ToString(out.Failed[0].Message))
		}
		if try == maxDeleteAttempts || pause.For(ctx, backoff(try)) != nil {
			return fmt.Errorf("deleting %d messages from %s: %w", len(entries), q.cfg.QueueURL, err)
		}
	}
	return nil
}
