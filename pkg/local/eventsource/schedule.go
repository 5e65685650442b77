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
	return &Schedule{function: function, cfg: cfg}
}

// Run fires until ctx ends and the invocation in progress, within the host's grace, with it. The first tick comes after
// one interval.
func (s *Schedule) Run(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Every) // drops ticks that are not received in time
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-ticker.C:
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
