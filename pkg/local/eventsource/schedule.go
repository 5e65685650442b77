package eventsource

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// ScheduleConfig is a scheduled rule.
type ScheduleConfig struct {
	Host
	Expression string // required: rate(1 minute), rate(5 minutes), rate(1 hour), rate(2 days)
	RuleARN    string // in resources of the events
	Account    string // default 000000000000
	Input      string // JSON that the function gets instead of the event
	// Ticks makes the clock of the rule and the function that stops it; the default is a time.Ticker, which drops ticks
	// that are not received in time.
	Ticks func(every time.Duration) (<-chan time.Time, func())
}

// A Schedule invokes a function at a fixed rate, never twice at a time. After an invocation during which ticks came, it
// invokes the function once for them. A failed invocation is logged and not retried before the next tick.
type Schedule struct {
	function Function
	every    time.Duration
	cfg      ScheduleConfig
}

// NewSchedule checks the configuration.
func NewSchedule(function Function, cfg ScheduleConfig) (*Schedule, error) {
	function, err := function.check()
	if err != nil {
		return nil, err
	}
	every, err := parseRate(cfg.Expression)
	if err != nil {
		return nil, fmt.Errorf("the schedule of %s: %w", function.Name, err)
	}
	cfg.Host = cfg.Host.withDefaults()
	cfg.Region, cfg.Account = cmp.Or(cfg.Region, "local"), cmp.Or(cfg.Account, "000000000000")
	if cfg.Ticks == nil {
		cfg.Ticks = func(every time.Duration) (<-chan time.Time, func()) {
			ticker := time.NewTicker(every)
			return ticker.C, ticker.Stop
		}
	}
	return &Schedule{function: function, every: every, cfg: cfg}, nil
}

// parseRate reads a rate expression. As in AWS, the unit is singular exactly when the value is 1.
func parseRate(expression string) (time.Duration, error) {
	parts := regexp.MustCompile(`^rate\(([1-9][0-9]{0,5}) (minute|hour|day)(s?)\)$`).FindStringSubmatch(expression)
	if parts == nil || (parts[1] == "1") != (parts[3] == "") {
		return 0, fmt.Errorf("%q is no rate expression like rate(1 minute) or rate(2 hours)", expression)
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, fmt.Errorf("reading rate expression %q: %w", expression, err)
	}
	return time.Duration(n) * map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}[parts[2]], nil
}

// Run fires until ctx ends and the invocation in progress, within the host's grace, with it. The first tick comes after
// one interval.
func (s *Schedule) Run(ctx context.Context) {
	ticks, stop := s.cfg.Ticks(s.every)
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
	if s.cfg.Input != "" {
		return []byte(s.cfg.Input), nil
	}
	event := events.EventBridgeEvent{
		Version: "0", ID: uuid.NewString(), DetailType: "Scheduled Event", Source: "aws.events",
		AccountID: s.cfg.Account, Time: at.UTC().Truncate(time.Second), Region: s.cfg.Region,
		Detail: []byte("{}"),
	}
	if s.cfg.RuleARN != "" {
		event.Resources = []string{s.cfg.RuleARN}
	}
	encoded, err := json.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("encoding the event of the schedule of %s: %w", s.function.Name, err)
	}
	return encoded, nil
}
