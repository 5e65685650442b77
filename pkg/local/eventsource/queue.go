package eventsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// QueueClient is the part of *sqs.Client that a queue source calls.
type QueueClient interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

const (
	maxRequestMessages = 10 // in one request to SQS
	maxDeleteAttempts  = 3
)

// QueueConfig is an event source mapping on a queue.
type QueueConfig struct {
	Host
	QueueURL                string        // required
	QueueARN                string        // eventSourceARN of the events
	BatchSize               int           // 1 to 10,000, more than 10 only with a window; default 10
	MaximumBatchingWindow   time.Duration // how long to wait for a full batch, in whole seconds, default not at all, at most 5 min
	MaximumConcurrency      int           // invocations at a time, default 10
	Filters                 []string      // patterns in Lambda's syntax; a message that matches none is deleted
	ReportBatchItemFailures bool

	LongPoll time.Duration // of a receive, in whole seconds, default 20 s
	RetryMin time.Duration // pause after a first failed request, default 100 ms
	RetryMax time.Duration // to which the pause doubles, default 5 s
}

// A Queue invokes a function with the messages of a queue. It deletes those that succeeded; one that failed keeps its
// visibility timeout, or the one that the function gave it, and is received again after it.
type Queue struct {
	client   QueueClient
	function Function
	cfg      QueueConfig
	format   messageFormat
}

// NewQueue checks the configuration.
func NewQueue(client QueueClient, function Function, cfg QueueConfig) (*Queue, error) {
	function, err := function.check()
	if err != nil {
		return nil, err
	}
	if cfg.QueueURL == "" {
		return nil, fmt.Errorf("the queue source of %s needs a QueueURL", function.Name)
	}
	cfg.BatchSize = cmp.Or(cfg.BatchSize, maxRequestMessages)
	if cfg.BatchSize < 0 || cfg.BatchSize > 10_000 || cfg.BatchSize > maxRequestMessages && cfg.MaximumBatchingWindow < time.Second {
		return nil, fmt.Errorf("the queue source of %s has BatchSize %d and a window of %v: 1 to 10000 are allowed, more than 10 only with a window of at least 1s",
			function.Name, cfg.BatchSize, cfg.MaximumBatchingWindow)
	}
	if cfg.MaximumBatchingWindow < 0 || cfg.MaximumBatchingWindow > 5*time.Minute {
		return nil, fmt.Errorf("the queue source of %s has a batching window of %v, 0 to 5m are allowed", function.Name, cfg.MaximumBatchingWindow)
	}
	parsed, err := parseFilter(cfg.Filters)
	if err != nil {
		return nil, fmt.Errorf("the queue source of %s: %w", function.Name, err)
	}
	if cfg.MaximumConcurrency <= 0 {
		cfg.MaximumConcurrency = 10
	}
	cfg.Host = cfg.Host.withDefaults()
	cfg.Region = cmp.Or(cfg.Region, "local")
	setDefault(&cfg.LongPoll, 20*time.Second)
	setDefault(&cfg.RetryMin, 100*time.Millisecond)
	setDefault(&cfg.RetryMax, 5*time.Second)
	return &Queue{client: client, function: function, cfg: cfg, format: messageFormat{cfg.QueueARN, cfg.Region, parsed, function.Messages == nil}}, nil
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
		received, err := q.receiveBatch(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			q.cfg.Logger.WarnContext(ctx, "queue not read, trying again", "function", q.function.Name, "queue", q.cfg.QueueURL, "error", err)
			_ = q.cfg.Wait(ctx, backoff(failures, q.cfg.RetryMin, q.cfg.RetryMax))
		} else {
			failures = 0
		}
		if len(received) == 0 {
			<-invocations
			continue
		}
		running.Go(func() {
			defer func() { <-invocations }()
			q.process(ctx, received)
		})
	}
}

// receiveBatch receives one batch: the messages of one long poll, and with a window those that come until the window is
// over or the batch full. It returns the messages that it received before an error as well as the error.
func (q *Queue) receiveBatch(ctx context.Context) ([]types.Message, error) {
	received, err := q.receive(ctx, min(maxRequestMessages, q.cfg.BatchSize), q.cfg.LongPoll)
	if err != nil || len(received) == 0 || q.cfg.MaximumBatchingWindow < time.Second {
		return received, err
	}
	end := q.cfg.Now().Add(q.cfg.MaximumBatchingWindow)
	for len(received) < q.cfg.BatchSize && sizeOf(received) < maxPayload && ctx.Err() == nil {
		left := end.Sub(q.cfg.Now())
		more, err := q.receive(ctx, min(maxRequestMessages, q.cfg.BatchSize-len(received)), max(0, left))
		received = append(received, more...)
		if err != nil || left < time.Second && len(more) == 0 || left <= 0 {
			return received, err
		}
	}
	return received, nil
}

func (q *Queue) receive(ctx context.Context, most int, longPoll time.Duration) ([]types.Message, error) {
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    aws.String(q.cfg.QueueURL),
		MaxNumberOfMessages:         int32(most),
		WaitTimeSeconds:             int32(min(longPoll, 20*time.Second) / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		return nil, fmt.Errorf("receiving from %s: %w", q.cfg.QueueURL, err)
	}
	return out.Messages, nil
}

func sizeOf(messages []types.Message) int {
	size := 0
	for _, one := range messages {
		size += len(aws.ToString(one.Body))
	}
	return size
}

// process filters a batch, invokes the function with the rest, in pieces that fit an event, and deletes the processed
// messages.
func (q *Queue) process(ctx context.Context, received []types.Message) {
	log := q.cfg.Logger.With("function", q.function.Name, "queue", q.cfg.QueueURL)
	var wanted, unwanted []record
	for _, from := range received {
		converted, passes, err := q.format.convert(from)
		switch {
		case err != nil:
			log.ErrorContext(ctx, "message not converted, it stays in the queue", "error", err)
		case passes:
			wanted = append(wanted, converted)
		default:
			unwanted = append(unwanted, converted)
		}
	}
	if err := q.remove(ctx, unwanted); err != nil {
		log.WarnContext(ctx, "messages that no filter wants not deleted, they come again", "error", err)
	}
	for len(wanted) > 0 {
		n := fitting(wanted, len(wanted))
		batch := wanted[:n:n]
		wanted = wanted[n:]
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
	var failed []error
	for chunk := range slices.Chunk(messages, maxRequestMessages) {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(chunk))
		for i := range chunk {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(chunk[i].receipt)}
		}
		failed = append(failed, q.removeEntries(ctx, entries))
	}
	return errors.Join(failed...)
}

func (q *Queue) removeEntries(ctx context.Context, entries []types.DeleteMessageBatchRequestEntry) error {
	for try := 1; ; try++ {
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
		if try == maxDeleteAttempts || q.cfg.Wait(ctx, backoff(try, q.cfg.RetryMin, q.cfg.RetryMax)) != nil {
			return fmt.Errorf("deleting %d messages from %s: %w", len(entries), q.cfg.QueueURL, err)
		}
	}
}
