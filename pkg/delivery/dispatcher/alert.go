package dispatcher

import (
	"context"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/webhook"
)

// subject is the endpoint that an alert is about, or whose event.
type subject struct{ application, endpoint value.ID }

// concerns reports whether the endpoint may hear of the event: of an alert, the
// other endpoints of the application.
func (a *addressed) concerns(e *webhook.Endpoint) bool {
	return a.about == nil || e.ApplicationID == a.about.application && e.ID != a.about.endpoint
}

// announced returns the alerts of an endpoint's change.
func (d *Dispatcher) announced(ctx context.Context, r *events.DynamoDBEventRecord) (found []addressed, err error) {
	old, next, err := dynamo.Stream{}.EndpointChange(r)
	if err != nil {
		return nil, err
	}
	alerts := webhook.Announced(old, next)
	if len(alerts) == 0 {
		return nil, nil
	}
	counters, err := d.store.Counters(ctx, next.OrganizationID, next.ID)
	if err != nil {
		return nil, err
	}
	for _, a := range alerts {
		payload, err := next.AlertEvent(a, old, counters[next.ID])
		if err != nil {
			return nil, err
		}
		found = append(found, addressed{WebhookPayload: *payload, about: &subject{next.ApplicationID, next.ID}})
	}
	return found, nil
}

// failed returns the alert of a delivery that FAILED.
func failed(r *events.DynamoDBEventRecord) ([]addressed, error) {
	old, next, err := dynamo.Stream{}.DeliveryChange(r)
	if err != nil {
		return nil, err
	}
	payload, err := webhook.FailedEvent(old, next)
	if err != nil || payload == nil {
		return nil, err
	}
	return []addressed{{WebhookPayload: *payload, about: &subject{next.ApplicationID, next.EndpointID}}}, nil
}

// Topic sends alerts to the operator.
type Topic interface {
	Publish(ctx context.Context, alert *commerce.WebhookPayload) error
}

// maxPublished is the alerts that are published at a time.
const maxPublished = 8

// publish sends the topic the alerts of applications that are there, once
// their deliveries are written. An alert that cannot be published parks its
// record, whatever the cause: webhooks do not wait for the topic.
func (d *Dispatcher) publish(ctx context.Context, changes []*change) {
	if d.Topic == nil {
		return
	}
	parallel.Each(maxPublished, slices.All(changes), func(_ int, c *change) {
		if c.err != nil {
			return
		}
		for i := range c.events {
			a := &c.events[i]
			if a.about != nil && a.directory.Applications[a.about.application] != webhook.ApplicationAbsent {
				c.fail(d.Topic.Publish(ctx, &a.WebhookPayload))
			}
		}
	})
}
