package webhook

import "github.com/commerce-integration/service/pkg/base/value"

// EventDay is what an endpoint counted on one day of UTC, by the time at which
// the attempts were recorded. Its zero value has counted nothing.
type EventDay struct {
	Start     value.Time
	Events    int64 // whose first attempt was recorded
	Delivered int64 // that became DELIVERED
	Failed    int64 // that became FAILED
}

// Count counts a delivery by how it was before an attempt and is after it.
func (d *EventDay) Count(previous, next *Delivery) {
	if previous.AttemptCount == 0 {
		d.Events++
	}
	switch next.Status {
	case DeliveryDelivered:
		d.Delivered++
	case DeliveryFailed:
		d.Failed++
	case DeliveryPending, DeliveryHeld, DeliveryCancelled:
	}
}
