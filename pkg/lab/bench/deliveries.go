package bench

import (
	"context"
	"fmt"
	"time"
)

// warmupEvents go through a service before a measurement, so that connections are open and code has run.
const warmupEvents = 300

// deliveries measures events of so many organizations: one at a time, and in a burst. Where there are many, the first
// come so that each is alone in its organization.
func (b *bench) deliveries(ctx context.Context, organizations int) error {
	l, err := b.service.NewLoad(ctx, organizations)
	if err != nil {
		return err
	}
	if _, err := l.Burst(ctx, min(max(warmupEvents, organizations), b.Events)); err != nil {
		return err
	}
	rate, events, name := b.Rate, max(1, int(float64(b.Rate)*b.Paced.Seconds())), "one at a time"
	if organizations > 1 {
		const slower = 5
		rate, events, name = max(1, b.Rate/slower), organizations, "alone in its organization"
	}
	of := fmt.Sprintf(", organizations: %d", organizations)
	err = b.measure(ctx, name+of, events, func() (figures, error) {
		latencies, err := l.Pace(ctx, time.Second/time.Duration(rate), events)
		if err != nil {
			return figures{}, err
		}
		return figures{events, float64(rate), latencies}, b.service.Quiet(ctx)
	})
	if err != nil {
		return err
	}
	return b.measure(ctx, "burst"+of, b.Events, func() (figures, error) {
		took, err := l.Burst(ctx, b.Events)
		if err != nil {
			return figures{}, err
		}
		return figures{of: b.Events, perSecond: float64(b.Events) / took.Seconds()}, b.service.Quiet(ctx)
	})
}
