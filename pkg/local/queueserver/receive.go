package queueserver

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func (s *Server) receiveMessage(r *http.Request, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
	return s.ReceiveMessage(r.Context(), in)
}

// ReceiveMessage is the operation without HTTP, for consumers in the server's own process. It takes no options.
//
// It answers as soon as there is a message, at the latest when the wait is over, and receives nothing for a client that
// has gone away.
func (s *Server) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if err := errors.Join(
		between("MaxNumberOfMessages", in.MaxNumberOfMessages, 0, maxBatch),
		between("WaitTimeSeconds", in.WaitTimeSeconds, 0, 20),
		between("VisibilityTimeout", in.VisibilityTimeout, 0, maxVisibility),
	); err != nil {
		return nil, err
	}
	out := &sqs.ReceiveMessageOutput{}
	var until int64 // when the wait is over
	for {
		var pause time.Duration
		var wakeup <-chan struct{}
		err := s.onQueue(in.QueueUrl, func(c change, q *queue) error {
			wait := cmp.Or(int64(in.WaitTimeSeconds)*1000, q.settings.wait)
			until = cmp.Or(until, c.now+wait)
			if out.Messages = c.receive(q, in); len(out.Messages) > 0 || c.now >= until {
				return nil
			}
			pause, wakeup = c.pause(q, until)
			return nil
		})
		if err != nil || wakeup == nil || !s.sleep(ctx, pause, wakeup) {
			return out, err
		}
	}
}

// pause returns how long a long poll can sleep, and the channel that wakes it earlier.
func (c change) pause(q *queue, until int64) (time.Duration, <-chan struct{}) {
	if first := q.invisible.first(); first != nil {
		until = min(until, first.State.Visible)
	}
	q.waiting = true
	return time.UnixMilli(until).Sub(c.config.Clock()), q.wakeup
}

// receive receives the next messages, the groups one after the other, and moves those that were received often enough
// to the dead-letter queue.
func (c change) receive(q *queue, in *sqs.ReceiveMessageInput) []types.Message {
	visible := c.now + cmp.Or(int64(in.VisibilityTimeout)*1000, q.settings.visibility)
	var out []types.Message
	for len(out) < max(int(in.MaxNumberOfMessages), 1) {
		m := q.next()
		if m == nil {
			break
		}
		if c.redrive(q, m) {
			continue
		}
		to := m.State
		to.Count++
		to.Visible, to.Received, to.First = visible, c.now, cmp.Or(to.First, c.now)
		c.set(q, m, to)
		out = append(out, c.describe(m, in))
	}
	return out
}

// redrive moves a message to its dead-letter queue when it is due.
func (c change) redrive(q *queue, m *message) bool {
	policy := q.settings.redrive
	if policy == nil || m.State.Count-m.Arrived < policy.maxReceives {
		return false
	}
	became := *m
	became.Source = arnPrefix + q.Name
	c.move(q, c.byARN(policy.target), m, became)
	return true
}

// describe returns a message as its receiver sees it.
func (c change) describe(m *message, in *sqs.ReceiveMessageInput) types.Message {
	out := types.Message{
		MessageId: &m.ID, ReceiptHandle: aws.String(receipt(m)), Body: &m.Body, MD5OfBody: hexMD5(m.Body), Attributes: map[string]string{},
	}
	for name, value := range map[types.MessageSystemAttributeName]string{
		"SenderId":                         accountID,
		"SentTimestamp":                    strconv.FormatInt(m.Sent, 10),
		"ApproximateReceiveCount":          strconv.Itoa(m.State.Count),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.State.First, 10),
		"MessageGroupId":                   m.Group,
		"DeadLetterQueueSourceArn":         m.Source,
	} {
		if value != "" && asked(in.MessageSystemAttributeNames, name) {
			out.Attributes[string(name)] = value
		}
	}
	for name, value := range m.Attributes {
		if asked(in.MessageAttributeNames, name) {
			if out.MessageAttributes == nil {
				out.MessageAttributes = map[string]types.MessageAttributeValue{}
			}
			out.MessageAttributes[name] = value
		}
	}
	return out
}

func asked[S ~string](names []S, name S) bool {
	return slices.Contains(names, "All") || slices.Contains(names, name)
}
