package queue

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
)

// Attributes of a received message, as SQS names them, and the one that says
// when a message that was moved to the imports had arrived. Such a message names
// in [attrSource] the one that it was.
const (
	systemGroup = "MessageGroupId"
	systemSent  = "SentTimestamp"
	attrArrived = "arrived" // ms
)

// Records are the queues of incoming records: the one that everybody sends to,
// and the imports, which take messages with many records, so that an import
// does not delay anybody's single record. Each organization is a group in
// both.
type Records struct{ records, imports *Queue }

// NewRecords returns the queues of records.
func NewRecords(records, imports *Queue) Records { return Records{records, imports} }

// Move sends received messages to the imports, with the ids of their receipts.
// They are then to be deleted as done.
func (r Records) Move(ctx context.Context, received ...*events.SQSMessage) error {
	messages := make([]Message, len(received))
	for n, m := range received {
		id, arrived := r.Origin(m)
		messages[n] = Message{Body: m.Body, Group: m.Attributes[systemGroup], Attributes: map[string]string{
			attrArrived: strconv.FormatInt(int64(arrived), 10), attrSource: id,
		}}
		if id := aws.ToString(m.MessageAttributes[receipt.Attribute].StringValue); id != "" {
			messages[n].Attributes[receipt.Attribute] = id
		}
		// A message of the full size leaves room for what it came with only.
		for _, name := range []string{attrSource, attrArrived} {
			if messages[n].size() > MaxMessage {
				delete(messages[n].Attributes, name)
			}
		}
	}
	return r.imports.Send(ctx, messages...)
}

// Moved reports whether a received message came by the imports.
func (r Records) Moved(m *events.SQSMessage) bool { return r.imports.isSourceOf(m) }

// Postpone keeps received messages that could not be worked on invisible, each
// by [BackOff], instead of for their queue's own timeout.
func (r Records) Postpone(ctx context.Context, received ...*events.SQSMessage) error {
	var records, imports []VisibilityChange
	for _, m := range received {
		if r.Moved(m) {
			imports = append(imports, RetryLater(m))
		} else {
			records = append(records, RetryLater(m))
		}
	}
	return errors.Join(r.records.ChangeVisibility(ctx, records...), r.imports.ChangeVisibility(ctx, imports...))
}

// Origin returns the id of the message as which a received one was first sent, ""
// where it was moved and had no room for that, and when that was, by the queue's
// clock, 0 when that is not known. A sender could write the attributes that hold
// them, so they count only in messages that came by the imports.
func (r Records) Origin(m *events.SQSMessage) (messageID string, arrived value.Time) {
	messageID, text := m.MessageId, m.Attributes[systemSent]
	if r.Moved(m) {
		messageID = aws.ToString(m.MessageAttributes[attrSource].StringValue)
		text = cmp.Or(aws.ToString(m.MessageAttributes[attrArrived].StringValue), text)
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return messageID, 0
	}
	return messageID, value.Time(at)
}

// SendLater sends a message of an organization's records with a delay.
func (r Records) SendLater(ctx context.Context, org value.ID, body []byte, delay time.Duration) error {
	return r.records.Send(ctx, Message{Body: string(body), Group: org.String(), Delay: delay})
}

// Posts is the records queue for records that are posted to the API.
type Posts struct{ queue *Queue }

// NewPosts returns the posts in the records queue.
func NewPosts(q *Queue) Posts { return Posts{q} }

// Send sends the message that brings an organization's records, with the id of
// its receipt.
func (p Posts) Send(ctx context.Context, org, id value.ID, message []byte) error {
	return p.queue.Send(ctx, Message{Body: string(message), Group: org.String(), Attributes: map[string]string{receipt.Attribute: id.String()}})
}
