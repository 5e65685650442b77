package queue

import (
	"context"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
)

// Posts is the records queue for records that are posted to the API.
type Posts struct{ queue *Queue }

// NewPosts returns the posts in the records queue.
func NewPosts(q *Queue) Posts { return Posts{q} }

// Send sends the message that brings an organization's records, with the id of
// its receipt.
func (p Posts) Send(ctx context.Context, org, id value.ID, message []byte) error {
	return p.queue.Send(ctx, Message{Body: string(message), Group: org.String(), Attributes: map[string]string{receipt.Attribute: id.String()}})
}
