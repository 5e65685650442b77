package queue

import (
	"context"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Deliveries is the queue of the rows whose attempt is near. Each endpoint is
// a group, so that a busy or slow one does not stand before the others.
type Deliveries struct{ *Queue }

// NewDeliveries returns the deliveries in the queue.
func NewDeliveries(q *Queue) Deliveries { return Deliveries{q} }

// SendRows sends the rows to the worker, each for its next attempt.
func (d Deliveries) SendRows(ctx context.Context, now value.Time, rows ...*webhook.Row) error {
	messages := make([]Message, len(rows))
	for i, r := range rows {
		messages[i] = Message{
			Body: r.Ref().Body(), Group: r.EndpointID.String(),
			Delay: max(0, r.NextAttemptAt.Std().Sub(now.Std())),
		}
	}
	return d.Send(ctx, messages...)
}
