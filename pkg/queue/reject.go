package queue

import (
	"context"

	"github.com/commerce-integration/service/pkg/commerce"
)

// Rejects is the queue of refused records, each a message that holds it
// alone and tells in its attributes what is wrong with it.
type Rejects struct{ queue *Queue }

// NewRejects returns the rejects in the queue.
func NewRejects(q *Queue) Rejects { return Rejects{q} }

// Reject sends the refused records of a message.
func (r Rejects) Reject(ctx context.Context, sourceMessageID string, refusals []commerce.Refusal) error {
	messages := make([]Message, len(refusals))
	for i, f := range refusals {
		attributes := map[string]string{
			"reason": printable(f.Reason), "message": printable(f.Message), "sourceMessageId": sourceMessageID,
		}
		if f.Field != "" {
			attributes["field"] = printable(f.Field)
		}
		messages[i] = Message{Body: string(f.Body), Attributes: attributes}
		// The record itself comes first where a message of the full size leaves
		// no room beside it.
		for _, name := range []string{"message", "field", "reason", "sourceMessageId"} {
			if messages[i].size() > MaxMessage {
				delete(attributes, name)
			}
		}
	}
	return r.queue.Send(ctx, messages...)
}
