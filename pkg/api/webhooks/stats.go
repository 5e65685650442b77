package webhooks

import (
	"cmp"
	"net/http"
	"time"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	fromParam     = "from"
	toParam       = "to"
	intervalParam = "interval"

	// Spans that are shown when from is not given.
	hoursShown = 24 * time.Hour
	daysShown  = 30 * 24 * time.Hour

	maxStatsDays = int(webhook.MaxStatsSpan / (24 * time.Hour))
)

// WebhookEndpointStats are the statistics of an endpoint over a span of time,
// and its circuit as it is now.
type WebhookEndpointStats struct {
	Data    []webhook.StatsPoint `json:"data" doc:"Every interval of the span, the oldest first, also intervals without attempts."`
	Circuit *EndpointCircuit     `json:"circuit" doc:"The endpoint's circuit now, whatever the span. null while the circuit is closed and nothing that it held is waiting."`
}

// EndpointCircuit is a circuit that is open, or that closed and is draining.
type EndpointCircuit struct {
	State       webhook.CircuitState `json:"state" doc:"OPEN: events are HELD with CIRCUIT_OPEN, and only probes are sent. DRAINING: the circuit has closed, and the events that it held are sent beside new ones. An open enumeration."`
	OpenedAt    value.Time           `json:"openedAt" doc:"When it opened."`
	NextProbeAt *value.Time          `json:"nextProbeAt" doc:"When the next probe is due: one of the oldest held events is sent. A past time stays while no probe is made, because the endpoint is not ACTIVE, its application is suspended or the circuit holds no event. null while DRAINING."`
	ClosedAt    *value.Time          `json:"closedAt" doc:"When it closed. null when OPEN."`
}

func circuitOf(e *webhook.Endpoint) *EndpointCircuit {
	if e.Circuit == nil {
		return nil
	}
	shown := &EndpointCircuit{State: e.Circuit.State, OpenedAt: e.Circuit.OpenedAt, ClosedAt: e.Circuit.ClosedAt}
	if e.Circuit.Open() {
		shown.NextProbeAt = &e.Circuit.ProbeAt
	}
	return shown
}

func (a *area) statsOperation() api.Operation {
	return api.Operation{
		ID: "getWebhookEndpointStats", Method: http.MethodGet, Path: endpointPath + "/stats",
		Summary: "Read how an endpoint does over time",
		Description: "Attempts by hour or day in UTC. An attempt counts in the interval in which its outcome was recorded. Intervals are " +
			"whole, also those in which the span begins and ends. The latest attempts may be " +
			"missing until their outcomes are written; tests are never counted. Statistics are kept for 31 days. circuit shows whether the " +
			"endpoint fails so often that its events are held.",
		Params: []api.Param{
			{
				Name: fromParam, In: fault.InQuery, Type: "string", Format: "date-time",
				Description: "The start of the span, inclusive: before to, at most 31 days earlier, and not before the day 31 days ago in UTC. " +
					"Absent: 24 hours before to, 30 days where the interval is day, as far as statistics are kept.",
			},
			{
				Name: toParam, In: fault.InQuery, Type: "string", Format: "date-time",
				Description: "The end of the span, exclusive. Absent: now.",
			},
			{
				Name: intervalParam, In: fault.InQuery, Type: "string", Enum: webhook.StatsInterval("").Values(), Default: string(webhook.StatsHour),
				Description: "The length of an entry.",
			},
		},
		Result: WebhookEndpointStats{}, Handle: a.stats,
	}
}

func (a *area) stats(r *api.Request) (*api.Response, error) {
	span, err := spanOf(r, a.now())
	if err != nil {
		return nil, err
	}
	e, err := a.endpoint(r)
	if err != nil {
		return nil, err
	}
	until := min(span.interval.End(span.to-1), span.interval.End(a.now())) // nothing is counted in the future
	hours, err := a.store.Stats(r.Context(), r.Organization(), e.ID, span.interval.Start(span.from), until)
	if err != nil {
		return nil, err
	}
	return api.OK(WebhookEndpointStats{Data: webhook.Stats(hours, span.interval, span.from, span.to), Circuit: circuitOf(e)})
}

// span is the time that statistics are asked for: [from, to).
type span struct {
	from, to value.Time
	interval webhook.StatsInterval
}

// spanOf is the span that the parameters ask for.
func spanOf(r *api.Request, now value.Time) (span, error) {
	from, fromGiven := r.Time(fromParam)
	to, toGiven := r.Time(toParam)
	s := span{from: from, to: now, interval: webhook.StatsInterval(cmp.Or(r.Query.Get(intervalParam), string(webhook.StatsHour)))}
	if toGiven {
		s.to = to
	}
	shown := hoursShown
	if s.interval == webhook.StatsDay {
		shown = daysShown
	}
	// Statistics are kept from the start of a whole day, so that a client that asks
	// for the last 31 days gets them however long its request took.
	oldest := webhook.StatsDay.Start(now.Add(-webhook.MaxStatsSpan))
	if !fromGiven {
		s.from = max(s.to.Add(-shown), oldest)
	}
	refuse := func(name, format string, args ...any) (span, error) {
		return s, fault.Field(fault.InQuery, name, fault.DetailOutOfRange, format, args...)
	}
	switch {
	case s.from < oldest:
		return refuse(fromParam, "must not be before %s: older statistics are not kept", oldest)
	case !fromGiven && s.from >= s.to:
		return refuse(toParam, "must be after %s: older statistics are not kept", oldest)
	case !toGiven && s.from >= s.to:
		return refuse(fromParam, "must be before to, which is now when it is left out")
	case s.from >= s.to:
		return refuse(fromParam, "must be before to")
	case toGiven && s.to > s.from.Add(webhook.MaxStatsSpan):
		return refuse(fromParam, "must be at most %d days before to", maxStatsDays)
	}
	return s, nil
}
