package queue

import (
	"context"

	"github.com/commerce-integration/service/pkg/commerce"
)

// Attributes of a refused record.
const (
	attrReason  = "reason"
	attrField   = "field"
	attrMessage = "message"
	attrSource  = "sourceMessageId"
)

// Rejects is the queue of refused records, each a message that holds it
// alone and names the fault in its attributes.
type Rejects struct{ queue *Queue }

// NewRejects returns the rejects in the queue.
func NewRejects(q *Queue) Rejects { return Rejects{q} }

// Reject sends the refused records of a message, whose id is "" when it is not
// known.
func (r Rejects) Reject(ctx context.Context, sourceMessageID string, refusals []commerce.Refusal) error {
	messages := make([]Message, len(refusals))
	for i, f := range refusals {
		attributes := map[string]string{
			attrReason: printable(f.Reason), attrMessage: printable(f.Message),
		}
		if sourceMessageID != "" {
			attributes[attrSource] = sourceMessageID
		}
		if f.Field != "" {
			attributes[attrField] = printable(f.Field)
		}
		messages[i] = Message{Body: string(f.Body), Attributes: attributes}
		// The record itself comes first where a message of the full size leaves
		// no room with it.
		for _, name := range []string{attrMessage, attrField, attrReason, attrSource} {
			if messages[i].size() > MaxMessage {
				delete(attributes, name)
			}
		}
	}
	return r.queue.Send(ctx, messages...)
}

// Rejection is what a refused record's attributes say of it. What there was no
// room for is "".
type Rejection struct {
	Reason          string `json:"reason"`          // the fault's code
	Field           string `json:"field"`           // path from the top of the message
	Message         string `json:"message"`         // how to mend it
	SourceMessageID string `json:"sourceMessageId"` // of the message that it came in, as it was first sent
}

// RejectionOf reads the attributes of a refused record.
func RejectionOf(attributes map[string]string) Rejection {
	return Rejection{
		Reason: attributes[attrReason], Field: attributes[attrField],
		Message: attributes[attrMessage], SourceMessageID: attributes[attrSource],
	}
}
