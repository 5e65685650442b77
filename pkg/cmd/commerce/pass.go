package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"
)

const (
	// passMost bounds the messages of a pass: all that are left are in flight
	// until its end, and SQS keeps about 120,000 of a queue in flight.
	passMost = 100_000
	// passHidden is how long a message stays hidden when the pass is killed.
	// Eight receivers see passMost messages in less, over a slow line too.
	passHidden  = 5 * time.Minute
	passWorkers = 8
	passBatch   = 10 // messages that SQS hands out or takes back in one call
	passWait    = time.Second
	passIdle    = 3 // receives in a row that bring nothing new
	// What a pass does at its end, also of one that is interrupted, is bounded.
	passRemove   = 30 * time.Second
	passGiveBack = 2 * time.Minute // 10,000 calls over a slow line
)

// pass is one walk over the messages of a queue, each of which it sees once.
// SQS has no way to look at a message but to receive it, which hides it from
// everybody for a time and raises its receive count by one. So what is not
// done stays hidden until the end of the pass and is given back then; a pass
// that is killed gives it back by the time that it is hidden for. From the
// count nothing follows in a queue without a redrive policy, which is why a
// queue with one is refused.
type pass struct {
	client   *sqs.Client
	queueURL string
	workers  int
	// each is given messages and returns those that are done with, which are
	// deleted. It is called by all workers side by side.
	each func(context.Context, []received) (done []received, err error)

	mu    sync.Mutex
	held  map[string]string // what is not deleted, by id: the handle of its last receive
	seen  int
	ended bool
}

// received is a message of a pass.
type received struct {
	id, body   string
	attributes map[string]string
	sent       time.Time
	source     string // ARN of the queue from which SQS itself moved it here, if it did
}

// run walks until nothing new comes, until each calls end, or until passMost
// messages were seen.
func (p *pass) run(ctx context.Context) error {
	attributes, err := queueAttributes(ctx, p.client, p.queueURL)
	if err != nil {
		return err
	}
	if attributes[string(types.QueueAttributeNameRedrivePolicy)] != "" {
		return fmt.Errorf("queue %s has a redrive policy, by which looking at its messages would move them away", p.queueURL)
	}
	p.held = map[string]string{}
	group, walking := errgroup.WithContext(ctx)
	for range max(1, p.workers) {
		group.Go(func() error { return p.walk(walking) })
	}
	err = group.Wait()
	return errors.Join(err, p.giveBack(context.WithoutCancel(ctx)))
}

// end lets no more messages be received.
func (p *pass) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// full tells whether the pass saw as many messages as it may, so that there
// may be more.
func (p *pass) full() bool { return p.seen >= passMost }

func (p *pass) walk(ctx context.Context) error {
	for idle := 0; idle < passIdle && p.more(); {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// What a receive that is broken off would have brought stays hidden, and
		// nobody can give it back: an interrupt waits for it.
		out, err := p.client.ReceiveMessage(context.WithoutCancel(ctx), &sqs.ReceiveMessageInput{
			QueueUrl: &p.queueURL, MaxNumberOfMessages: passBatch,
			VisibilityTimeout: int32(passHidden / time.Second), WaitTimeSeconds: int32(passWait / time.Second),
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return fmt.Errorf("receive from %s: %w", p.queueURL, err)
		}
		if len(out.Messages) == 0 {
			return nil
		}
		fresh := p.fresh(out.Messages)
		if idle++; len(fresh) == 0 {
			continue
		}
		idle = 0
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done, err := p.each(ctx, fresh)
		if err := errors.Join(err, p.remove(context.WithoutCancel(ctx), done)); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) more() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ended && p.seen < passMost
}

// fresh keeps the handles of the messages and returns those that the pass has
// not seen yet.
func (p *pass) fresh(messages []types.Message) []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	var fresh []received
	for _, m := range messages {
		id := aws.ToString(m.MessageId)
		_, known := p.held[id]
		p.held[id] = aws.ToString(m.ReceiptHandle)
		if known {
			continue
		}
		p.seen++
		fresh = append(fresh, newReceived(m))
	}
	return fresh
}

func newReceived(m types.Message) received {
	r := received{id: aws.ToString(m.MessageId), body: aws.ToString(m.Body), attributes: make(map[string]string, len(m.MessageAttributes))}
	for name, v := range m.MessageAttributes {
		r.attributes[name] = aws.ToString(v.StringValue)
	}
	if ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		r.sent = time.UnixMilli(ms).UTC()
	}
	r.source = m.Attributes["DeadLetterQueueSourceArn"]
	return r
}

// remove deletes messages that are done with, also of a pass that is
// interrupted.
func (p *pass) remove(ctx context.Context, done []received) error {
	if len(done) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, passRemove)
	defer cancel()
	entries := make([]types.DeleteMessageBatchRequestEntry, len(done))
	p.mu.Lock()
	for i, m := range done {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(p.held[m.id])}
	}
	p.mu.Unlock()
	out, err := p.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &p.queueURL, Entries: entries})
	if err == nil && len(out.Failed) > 0 {
		err = fmt.Errorf("%s: %s", aws.ToString(out.Failed[0].Code), aws.ToString(out.Failed[0].Message))
	}
	if err != nil {
		return fmt.Errorf("delete messages that are done with, which the next run does again: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range done {
		delete(p.held, m.id)
	}
	return nil
}

// giveBack shows what was left to everybody again.
func (p *pass) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passGiveBack)
	defer cancel()
	var batches [][]types.ChangeMessageVisibilityBatchRequestEntry
	n := 0
	for _, handle := range p.held {
		if n%passBatch == 0 {
			batches = append(batches, nil)
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(n)), ReceiptHandle: aws.String(handle), VisibilityTimeout: 0,
		})
		n++
	}
	var group errgroup.Group
	group.SetLimit(passWorkers)
	for _, entries := range batches {
		group.Go(func() error {
			out, err := p.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &p.queueURL, Entries: entries})
			if err != nil {
				return err
			}
			for _, f := range out.Failed {
				// A message that is not hidden any more is back already.
				if !f.SenderFault {
					return fmt.Errorf("%s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("give messages back to %s, which come back by themselves within %s: %w", p.queueURL, passHidden, err)
	}
	return nil
}

// namedQueue returns the URL of the queue of a name, of another account when
// owner says so.
func namedQueue(ctx context.Context, client *sqs.Client, name, owner string) (string, error) {
	in := &sqs.GetQueueUrlInput{QueueName: &name}
	if owner != "" {
		in.QueueOwnerAWSAccountId = &owner
	}
	out, err := client.GetQueueUrl(ctx, in)
	if err != nil {
		return "", fmt.Errorf("find the queue %s: %w", name, err)
	}
	return aws.ToString(out.QueueUrl), nil
}

// queueOfARN returns the URL of a queue, such as
// arn:aws:sqs:eu-central-1:123456789012:name.
func queueOfARN(ctx context.Context, client *sqs.Client, arn string) (string, error) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 {
		return "", fmt.Errorf("%q is not the ARN of a queue", arn)
	}
	return namedQueue(ctx, client, parts[5], parts[4])
}
