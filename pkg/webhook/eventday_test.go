package webhook_test

import (
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestADayCountsEventsByTheirStates(t *testing.T) {
	for _, test := range []struct {
		name     string
		attempts int
		status   webhook.DeliveryStatus
		want     webhook.EventDay
	}{
		{"delivered at once", 0, webhook.DeliveryDelivered, webhook.EventDay{Events: 1, Delivered: 1}},
		{"delivered by a retry", 3, webhook.DeliveryDelivered, webhook.EventDay{Delivered: 1}},
		{"failed at once", 0, webhook.DeliveryFailed, webhook.EventDay{Events: 1, Failed: 1}},
		{"failed in the end", 8, webhook.DeliveryFailed, webhook.EventDay{Failed: 1}},
		{"to be retried", 0, webhook.DeliveryPending, webhook.EventDay{Events: 1}},
		{"held by a circuit", 1, webhook.DeliveryHeld, webhook.EventDay{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got webhook.EventDay
			got.Count(&webhook.Delivery{AttemptCount: test.attempts}, &webhook.Delivery{AttemptCount: test.attempts + 1, Status: test.status})
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAShardFinishesItsDay(t *testing.T) {
	midnight := value.TimeOf(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
	s := &webhook.CounterShard{}
	for _, step := range []struct {
		name     string
		now      value.Time
		counted  webhook.EventDay
		finished *webhook.EventDay
		day      webhook.EventDay
	}{
		{"the first", midnight - 2, webhook.EventDay{Events: 2, Delivered: 1}, nil, webhook.EventDay{Start: midnight.Add(-24 * time.Hour), Events: 2, Delivered: 1}},
		{"the same day", midnight - 1, webhook.EventDay{Failed: 1}, nil, webhook.EventDay{Start: midnight.Add(-24 * time.Hour), Events: 2, Delivered: 1, Failed: 1}},
		{
			"the next day", midnight,
			webhook.EventDay{Events: 5},
			&webhook.EventDay{Start: midnight.Add(-24 * time.Hour), Events: 2, Delivered: 1, Failed: 1},
			webhook.EventDay{Start: midnight, Events: 5},
		},
		{"a clock a little behind", midnight - 1, webhook.EventDay{Events: 1}, nil, webhook.EventDay{Start: midnight, Events: 6}},
	} {
		t.Run(step.name, func(t *testing.T) {
			next, _ := s.Add(nil, webhook.Health{}, step.now)
			finished := next.CountEvents(step.counted, step.now)
			if (finished == nil) != (step.finished == nil) || finished != nil && *finished != *step.finished || next.Day() != step.day {
				t.Errorf("finished %+v, the day is %+v; want %+v, %+v", finished, next.Day(), step.finished, step.day)
			}
			var err error
			if s, err = webhook.DecodeCounterShard(next.Encode()); err != nil || s.Day() != step.day {
				t.Errorf("read back: %+v, %v", s, err)
			}
		})
	}
}
