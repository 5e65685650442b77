package queueserver

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

type receiveMessageInput struct {
	queueRef
	AttributeNames              []string // the older name of the next
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	MaxNumberOfMessages         *int64
	VisibilityTimeout           *int64
	WaitTimeSeconds             *int64
}

type receiveMessageOutput struct {
	Messages []received `json:",omitempty"`
}

type received struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	MD5OfBody              string
	Body                   string
	Attributes             map[string]string         `json:",omitempty"`
	MD5OfMessageAttributes string                    `json:",omitzero"`
	MessageAttributes      map[string]attributeValue `json:",omitempty"`
}

func (in *receiveMessageInput) check() error {
	if n := in.MaxNumberOfMessages; n != nil && (*n < 1 || *n > maxBatch) {
		return errValue(*n, "MaxNumberOfMessages", "Must be between 1 and 10, if provided.")
	}
	if t := in.WaitTimeSeconds; t != nil && (*t < 0 || *t > 20) {
		return errValue(*t, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")
	}
	return checkVisibility(in.VisibilityTimeout)
}

// receiveMessage answers as soon as there is a message, at the latest when the wait is over. It receives nothing for a
// client that has gone away.
func (s *Server) receiveMessage(req call, in *receiveMessageInput) (out receiveMessageOutput, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	var until int64 // when the wait is over
	for {
		var pause time.Duration
		var wakeup <-chan struct{}
		err = s.onQueue(in.queueRef, func(c *change, q *queue) (err error) {
			wait := q.settings.wait
			if in.WaitTimeSeconds != nil {
				wait = *in.WaitTimeSeconds * 1000
			}
			if until == 0 {
				until = c.now + wait
			}
			if out.Messages, err = c.receive(q, in, wait); err != nil || len(out.Messages) > 0 || c.now >= until {
				return err
			}
			pause, wakeup = c.pause(q, until)
			return nil
		})
		if err != nil || wakeup == nil {
			return out, err
		}
		if !s.sleep(req, pause, wakeup) {
			return out, nil
		}
	}
}

// pause returns how long a long poll can sleep, and the channel that wakes it earlier.
func (c *change) pause(q *queue, until int64) (time.Duration, <-chan struct{}) {
	if first := q.invisible.first(); first != nil {
		until = min(until, first.Visible)
	}
	q.waiting = true
	return time.UnixMilli(until).Sub(c.server.config.Clock()), q.wakeup
}

// sleep reports whether to try again: not when the client has gone away or the server closes.
func (s *Server) sleep(req call, pause time.Duration, wakeup <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-wakeup:
		return req.Err() == nil
	case <-req.Done():
		return false
	case <-s.stop:
		return false
	}
}

// receive receives the next messages, the groups one after the other, and moves those that were received often enough
// to the dead-letter queue.
func (c *change) receive(q *queue, in *receiveMessageInput, wait int64) ([]received, error) {
	free := q.maxInFlight - q.inFlight
	if free <= 0 && wait == 0 {
		return nil, plain(http.StatusForbidden, "OverLimit",
			"Too many messages are in flight in queue %s: the limit is %d.", q.name, q.maxInFlight)
	}
	limit := 1
	if in.MaxNumberOfMessages != nil {
		limit = int(*in.MaxNumberOfMessages)
	}
	visible := c.now + q.settings.visibility
	if in.VisibilityTimeout != nil {
		visible = c.now + *in.VisibilityTimeout*1000
	}
	var out []received
	for limit = min(limit, free); len(out) < limit; {
		m := q.next()
		if m == nil {
			break
		}
		moved, err := c.redrive(q, m)
		if err != nil {
			return nil, err
		}
		if moved {
			continue
		}
		if err := c.write(&messageReceived{Queue: q.id, Seq: m.Seq, At: c.now, Visible: visible}); err != nil {
			return nil, err
		}
		out = append(out, c.describe(q, m, in))
	}
	q.showDue(c.now)
	return out, nil
}

// describe returns a message as its receiver sees it.
func (c *change) describe(q *queue, m *message, in *receiveMessageInput) received {
	r := received{
		MessageID:     m.ID,
		ReceiptHandle: receipt{queue: q.id, seq: m.Seq, count: m.Count}.String(),
		MD5OfBody:     m.Content.hexMD5(),
		Body:          m.Content.Body,
		Attributes:    c.systemAttributes(m, in),
	}
	if selected := selectAttributes(m.Content.Attributes, in.MessageAttributeNames); len(selected) > 0 {
		r.MD5OfMessageAttributes = attributesMD5(selected)
		r.MessageAttributes = make(map[string]attributeValue, len(selected))
		for _, a := range selected {
			r.MessageAttributes[a.Name] = a.attributeValue
		}
	}
	return r
}

// systemAttributes returns the system attributes of a message that the receiver asked for.
func (c *change) systemAttributes(m *message, in *receiveMessageInput) map[string]string {
	if len(in.AttributeNames)+len(in.MessageSystemAttributeNames) == 0 {
		return nil
	}
	asked := func(name string) bool {
		is := func(n string) bool { return n == name || n == "All" }
		return slices.ContainsFunc(in.MessageSystemAttributeNames, is) || slices.ContainsFunc(in.AttributeNames, is)
	}
	attributes := make(map[string]string, 6)
	add := func(name, value string) {
		if value != "" && asked(name) {
			attributes[name] = value
		}
	}
	add("SenderId", c.server.config.AccountID)
	add("SentTimestamp", strconv.FormatInt(m.Sent, 10))
	add("ApproximateReceiveCount", strconv.Itoa(m.Count))
	add("ApproximateFirstReceiveTimestamp", strconv.FormatInt(m.First, 10))
	add("MessageGroupId", m.group.name)
	add("DeadLetterQueueSourceArn", m.Source)
	add(traceHeader, m.Content.Trace)
	return attributes
}
