package eventsource

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// clockwork runs a schedule whose ticks come from the returned channel.
func clockwork(t *testing.T, invoke Invoke, cfg ScheduleConfig) (tick chan<- time.Time, stop func()) {
	t.Helper()
	ticks := make(chan time.Time)
	cfg.Every = time.Minute
	cfg.Ticks = func(every time.Duration) (<-chan time.Time, func()) {
		if every != time.Minute {
			t.Errorf("ticks every %v, want every minute", every)
		}
		return ticks, func() {}
	}
	schedule, err := NewSchedule(Function{Name: "sweeper", Invoke: invoke, Timeout: 10 * time.Second}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { schedule.Run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return ticks, stop
}

func TestATickIsAScheduledEvent(t *testing.T) {
	payloads := make(chan []byte, 1)
	invoke := func(_ context.Context, payload []byte) ([]byte, error) { payloads <- payload; return nil, nil }
	tick, _ := clockwork(t, invoke, ScheduleConfig{Host: Host{Region: region}})
	tick <- time.Date(2026, 11, 21, 7, 35, 41, 242e6, time.FixedZone("CET", 3600))
	payload := <-payloads
	var got map[string]any
	if err := json.Unmarshal(payload, &got); err != nil {
		t.Fatal(err)
	}
	if id, _ := got["id"].(string); len(id) != 36 {
		t.Errorf("id = %v, want a UUID", got["id"])
	}
	delete(got, "id")
	want := map[string]any{
		"version": "0", "detail-type": "Scheduled Event", "source": "aws.events", "account": "000000000000",
		"time": "2026-11-21T06:35:41Z", "region": region, "resources": []any{}, "detail": map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	var typed events.EventBridgeEvent
	if err := json.Unmarshal(payload, &typed); err != nil {
		t.Errorf("the event is no events.EventBridgeEvent: %v", err)
	}
}

func TestScheduledInvocationsNeverOverlapAndOutliveFailures(t *testing.T) {
	var now, most, calls atomic.Int32
	leave := make(chan struct{})
	invoke := func(context.Context, []byte) ([]byte, error) {
		most.Store(max(most.Load(), now.Add(1)))
		<-leave
		now.Add(-1)
		calls.Add(1)
		return nil, errors.New("failed")
	}
	tick, stop := clockwork(t, invoke, ScheduleConfig{})
	tick <- time.Now()
	select {
	case tick <- time.Now():
		t.Error("a tick is taken while an invocation runs")
	case <-time.After(10 * time.Millisecond):
	}
	close(leave)
	tick <- time.Now()
	waitUntil(t, "the second invocation", func() bool { return calls.Load() == 2 })
	stop()
	if most.Load() != 1 || calls.Load() != 2 {
		t.Errorf("%d invocations, %d at a time; want 2, one at a time", calls.Load(), most.Load())
	}
}

func TestUnusableSchedulesAreRefused(t *testing.T) {
	invoke := func(context.Context, []byte) ([]byte, error) { return nil, nil }
	if _, err := NewSchedule(Function{Invoke: invoke}, ScheduleConfig{}); err == nil {
		t.Error("NewSchedule accepts no rate")
	}
	if _, err := NewSchedule(Function{}, ScheduleConfig{Every: time.Minute}); err == nil {
		t.Error("NewSchedule accepts a function without Invoke")
	}
}
