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

// CountEvents adds the new counts to the shard's day, and returns the day
// that this finished, if any. Only a shard that [CounterShard.Add] has returned,
// and that is not stored yet, may count.
func (s *CounterShard) CountEvents(counted EventDay, now value.Time) (finished *EventDay) {
	if start := StatsDay.Start(now); start > s.day.Start {
		if s.day.Events+s.day.Delivered+s.day.Failed > 0 {
			before := s.day
			finished = &before
		}
		s.day = EventDay{Start: start}
	}
	s.day.Events += counted.Events
	s.day.Delivered += counted.Delivered
	s.day.Failed += counted.Failed
	return finished
}

// Day is the share of the present day, or of the last one on which something was
// recorded.
func (s *CounterShard) Day() EventDay { return s.day }
