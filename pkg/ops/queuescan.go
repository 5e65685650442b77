package ops

import (
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
	"golang.org/x/sync/errgroup"
)

const (
	// MaxScan bounds the messages of a scan. All that it leaves in the queue
	// are in flight until it ends, and SQS allows about 120,000 in flight.
	MaxScan = 100_000

	// scanVisibility is the visibility timeout of a received message, which
	// matters only when the scan is killed. Eight receivers see MaxScan
	// messages in less time, even over a slow connection.
	scanVisibility = 5 * time.Minute
	scanWorkers    = 8
	receiveBatch   = 10 // messages of one SQS call
	receiveWait    = time.Second
	maxIdle        = 3 // receives in a row without a new message
	// An interrupted scan still deletes and gives back, within these times.
	deleteTimeout   = 30 * time.Second
	giveBackTimeout = 2 * time.Minute // 10,000 calls over a slow connection
)

// QueueScan visits each message of a queue once. SQS shows a message only to a
// receiver, which makes the message invisible to others for a time and raises
// its receive count. A scan therefore keeps what it does not delete in flight
// until it ends, and gives it back then. The messages of a killed scan become
// visible by their visibility timeout. A receive count has no effect without a
// redrive policy, so a scan refuses a queue that has one.
type QueueScan struct {
	client   *sqs.Client
	queueURL string

	mu      sync.Mutex
	handles map[string]string // of messages not deleted, by ID: the last receipt handle
	seen    int
	left    int // how often Take still says yes
	stopped bool
}

// NewQueueScan returns a scan whose handler may take up to limit messages, 0
// for MaxScan.
func NewQueueScan(client *sqs.Client, queueURL string, limit int) *QueueScan {
	if limit == 0 {
		limit = MaxScan
	}
	return &QueueScan{client: client, queueURL: queueURL, left: limit, handles: map[string]string{}}
}

// Message is a received message.
type Message struct {
	ID         string            `json:"messageId"`
	SentAt     time.Time         `json:"sentAt"`
	Body       string            `json:"-"`
	Attributes map[string]string `json:"-"`
	SourceARN  string            `json:"-"` // of the queue from which SQS itself moved the message here
}

// Handler gets new messages and returns those that the scan may delete. All
// workers of a scan call it at the same time.
type Handler func(context.Context, []Message) (done []Message, err error)

// Run scans until no new message comes, until Take has used up the limit, or
// until it has seen MaxScan messages.
func (s *QueueScan) Run(ctx context.Context, workers int, handle Handler) error {
	dead, err := DeadLetterARN(ctx, s.client, s.queueURL)
	if err != nil {
		return err
	}
	if dead != "" {
		return fmt.Errorf("queue %s has a redrive policy, by which looking at its messages would move them away", s.queueURL)
	}
	group, scanning := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error { return s.work(scanning, handle) })
	}
	err = group.Wait()
	return errors.Join(err, s.giveBack(context.WithoutCancel(ctx)))
}

// Take reports whether the handler may act on one more message. The last one
// of the limit ends the scan.
func (s *QueueScan) Take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left--
	s.stopped = s.stopped || s.left <= 0
	return s.left >= 0
}

// Seen returns the number of messages that the scan has seen. The scan is not
// complete if it ended because of MaxScan.
func (s *QueueScan) Seen() (messages int, complete bool) { return s.seen, s.seen < MaxScan }

func (s *QueueScan) work(ctx context.Context, handle Handler) error {
	for idle := 0; idle < maxIdle && s.more() && ctx.Err() == nil; idle++ {
		// An interrupt waits for this call: the messages of a receive that is
		// cut off are in flight, but their receipt handles are unknown.
		out, err := s.client.ReceiveMessage(context.WithoutCancel(ctx), &sqs.ReceiveMessageInput{
			QueueUrl: &s.queueURL, MaxNumberOfMessages: receiveBatch,
			VisibilityTimeout: int32(scanVisibility / time.Second), WaitTimeSeconds: int32(receiveWait / time.Second),
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return fmt.Errorf("receive from %s: %w", s.queueURL, err)
		}
		if len(out.Messages) == 0 {
			return nil
		}
		fresh := s.record(out.Messages)
		if len(fresh) == 0 || ctx.Err() != nil {
			continue
		}
		idle = -1
		done, err := handle(ctx, fresh)
		if err := errors.Join(err, s.delete(context.WithoutCancel(ctx), done)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *QueueScan) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.stopped && s.seen < MaxScan
}

// record keeps the receipt handles and returns the messages that are new.
func (s *QueueScan) record(messages []types.Message) (fresh []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		id := aws.ToString(m.MessageId)
		_, known := s.handles[id]
		s.handles[id] = aws.ToString(m.ReceiptHandle)
		if !known {
			s.seen++
			fresh = append(fresh, newMessage(m))
		}
	}
	return fresh
}

func newMessage(from types.Message) Message {
	m := Message{
		ID: aws.ToString(from.MessageId), Body: aws.ToString(from.Body), SourceARN: from.Attributes["DeadLetterQueueSourceArn"],
		Attributes: make(map[string]string, len(from.MessageAttributes)),
	}
	for name, v := range from.MessageAttributes {
		m.Attributes[name] = aws.ToString(v.StringValue)
	}
	if ms, err := strconv.ParseInt(from.Attributes["SentTimestamp"], 10, 64); err == nil {
		m.SentAt = time.UnixMilli(ms).UTC()
	}
	return m
}

func (s *QueueScan) delete(ctx context.Context, done []Message) error {
	if len(done) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	entries := make([]types.DeleteMessageBatchRequestEntry, len(done))
	s.mu.Lock()
	for i, m := range done {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(s.handles[m.ID])}
	}
	s.mu.Unlock()
	out, err := s.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &s.queueURL, Entries: entries})
	if err == nil && len(out.Failed) > 0 {
		err = failure(out.Failed[0])
	}
	if err != nil {
		return fmt.Errorf("delete finished messages, which the next run repeats: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range done {
		delete(s.handles, m.ID)
	}
	return nil
}

func failure(f types.BatchResultErrorEntry) error {
	return fmt.Errorf("%s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
}

// giveBack makes all messages that are left visible again.
func (s *QueueScan) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, giveBackTimeout)
	defer cancel()
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, 0, len(s.handles))
	for _, handle := range s.handles {
		entries = append(entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(len(entries))), ReceiptHandle: &handle, VisibilityTimeout: 0,
		})
	}
	var group errgroup.Group
	group.SetLimit(scanWorkers)
	for batch := range slices.Chunk(entries, receiveBatch) {
		group.Go(func() error {
			out, err := s.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &s.queueURL, Entries: batch})
			if err != nil {
				return err
			}
			for _, f := range out.Failed {
				if !f.SenderFault { // a sender's fault: the message is visible already
					return failure(f)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("give messages back to %s, which come back by themselves within %s: %w", s.queueURL, scanVisibility, err)
	}
	return nil
}
