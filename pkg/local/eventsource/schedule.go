package eventsource

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// ScheduleConfig is a scheduled rule.
type ScheduleConfig struct {
	Host
	Every time.Duration
	// Ticks makes the clock of the rule and the function that stops it; the default is a time.Ticker, which drops ticks
	// that are not received in time.
	Ticks func(every time.Duration) (<-chan time.Time, func())
}

// A Schedule invokes a function at a fixed rate, never twice at a time. After an invocation during which ticks came, it
// invokes the function once for them. A failed invocation is logged and not retried before the next tick.
type Schedule struct {
	function Function
	cfg      ScheduleConfig
}

// NewSchedule makes a source.
func NewSchedule(function Function, cfg ScheduleConfig) *Schedule {
	cfg.Host = cfg.Host.withDefaults()
	if cfg.Ticks == nil {
		cfg.Ticks = func(every time.Duration) (<-chan time.Time, func()) {
			ticker := time.NewTicker(every)
			return ticker.C, ticker.Stop
		}
	}
	return &Schedule{function: function, cfg: cfg}
}

// Run fires until ctx ends and the invocation in progress, within the host's grace, with it. The first tick comes after
// one interval.
func (s *Schedule) Run(ctx context.Context) {
	ticks, stop := s.cfg.Ticks(s.cfg.Every)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-ticks:
			if ctx.Err() != nil {
				return
			}
			payload, err := s.event(at)
			if err == nil {
				_, err = s.function.call(ctx, s.cfg.Host, payload)
			}
			if err != nil {
				s.cfg.Logger.WarnContext(ctx, "scheduled invocation failed", "function", s.function.Name, "error", err)
			}
		}
	}
}

func (s *Schedule) event(at time.Time) ([]byte, error) {
	event := events.EventBridgeEvent{
		Version: "0", ID: uuid.NewString(), DetailType: "Scheduled Event", Source: "aws.events",
		AccountID: "000000000000", Time: at.UTC().Truncate(time.Second), Region: s.cfg.Region,
		Detail: []byte("{}"),
	}
	encoded, err := json.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("encoding the event of the schedule of %s: %w", s.function.Name, err)
	}
	return encoded, nil
}
