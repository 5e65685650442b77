package webhook

import (
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// CircuitState is the state of a circuit.
type CircuitState string

// The states of a circuit. An endpoint without one is asked as usual.
const (
	// CircuitOpen holds the endpoint's deliveries, except for probes.
	CircuitOpen CircuitState = "OPEN"
	// CircuitDraining lets deliveries pass again, while those that were held
	// are being sent.
	CircuitDraining CircuitState = "DRAINING"
)

// Values lists every state.
func (CircuitState) Values() []string { return []string{string(CircuitOpen), string(CircuitDraining)} }

// Rules of a circuit, of lanes and of disabling.
const (
	runToOpen    = 10 // failed attempts in a row
	runSpan      = time.Minute
	recentToOpen = 50 // attempts of the last five minutes
	failedToOpen = 80 // percent of them
	// ProbeInterval is the wait before the first probe, unproven that of an
	// endpoint that has never answered 2xx: most likely it is being set up.
	ProbeInterval = time.Minute
	unproven      = 10 * time.Second
	// MaxProbeInterval is the longest wait between two probes.
	MaxProbeInterval = time.Hour

	runToDisable  = 20 // failed attempts in a row
	disableSpan   = 5 * 24 * time.Hour
	recentForLane = 5 // attempts of the last five minutes
	runForLane    = 5 // failed attempts in a row
	slowForLane   = 5 // percent over which attempts are slow: the p95
	failedForLane = 50
	percent       = 100
)

// Circuit keeps a failing endpoint from being asked for every event. It is
// written on transitions only.
type Circuit struct {
	State      CircuitState `json:"state"`
	OpenedAt   value.Time   `json:"openedAt"`
	ProbeAt    value.Time   `json:"probeAt"`           // of the next probe, while OPEN
	IntervalMs int64        `json:"intervalMs"`        // before ProbeAt
	ClosedAt   *value.Time  `json:"closedAt,omitzero"` // while DRAINING
	// Redelivery is the delivery that the owner chose last as a probe; zero once
	// a probe failed.
	Redelivery value.ID `json:"redelivery,omitzero"`
}

// Interval is the time before ProbeAt.
func (c *Circuit) Interval() time.Duration { return time.Duration(c.IntervalMs) * time.Millisecond }

// StateName is the circuit's state, "" for none.
func (c *Circuit) StateName() CircuitState {
	if c == nil {
		return ""
	}
	return c.State
}

// openCircuit is a circuit that opens, to be probed after the wait.
func openCircuit(first time.Duration, now value.Time) *Circuit {
	return &Circuit{State: CircuitOpen, OpenedAt: now, ProbeAt: now.Add(first), IntervalMs: first.Milliseconds()}
}

// Soon reports whether the next probe comes before the sweeper would look: the
// counter, which planned it, brings it about.
func (c *Circuit) Soon() bool { return c.Open() && c.IntervalMs > 0 && c.Interval() < ProbeInterval }

// LookAt is when the sweeper looks at the circuit: at one whose probe comes soon, in
// case that was lost.
func (c *Circuit) LookAt() value.Time {
	switch {
	case !c.Open() && c.ClosedAt != nil:
		return *c.ClosedAt
	case c.Soon():
		return c.ProbeAt.Add(ProbeInterval)
	}
	return c.ProbeAt
}

// Open reports whether the circuit holds events.
func (c *Circuit) Open() bool { return c != nil && c.State == CircuitOpen }

// Drain returns the circuit as it closes: the deliveries that it held are
// sent now.
func (c *Circuit) Drain(now value.Time) *Circuit {
	next := *c
	next.State, next.ClosedAt = CircuitDraining, &now
	return &next
}

// Settled reports whether a draining circuit may end once no delivery that it
// held is left: by then the sweeper has found those that were held a moment
// after it closed, and attempts from before it closed are no longer recent.
func (c *Circuit) Settled(now value.Time) bool {
	return c.ClosedAt != nil && now >= c.ClosedAt.Add(RecentSpan)
}

// OwnerReset returns the circuit after its endpoint's owner changed where
// events are sent or activated it: an open one is probed at once and its
// interval begins anew, and a draining one goes on at once. nil stays nil.
func (c *Circuit) OwnerReset(now value.Time) *Circuit {
	if c == nil {
		return nil
	}
	if !c.Open() {
		return c.Drain(now)
	}
	next := *c
	next.ProbeAt, next.IntervalMs = now, 0
	return &next
}

// Redeliver returns an open circuit whose probe is the delivery that its
// endpoint's owner sends again. The next one waits for its outcome, which may be
// lost. ProbeAt always rises: of two redeliveries at a time, also of the same
// delivery as the last, the second meets another circuit than it has read.
func (c *Circuit) Redeliver(delivery value.ID, now value.Time) *Circuit {
	next := *c
	next.Redelivery, next.ProbeAt = delivery, max(c.ProbeAt+1, now.Add(Lease))
	return &next
}

// awaits reports whether the failure of a probe that ended at the time is news:
// outcomes may come late, and more than once.
func (c *Circuit) awaits(probe value.ID, ended value.Time) bool {
	if c.Redelivery != (value.ID{}) {
		return c.Redelivery == probe
	}
	return ended > c.ProbeAt.Add(-c.Interval())
}

// probeFailed returns the circuit after a probe that failed; first is the wait
// with which its interval begins.
func (c *Circuit) probeFailed(first time.Duration, now value.Time) *Circuit {
	next := *c
	next.IntervalMs = min(max(2*c.IntervalMs, first.Milliseconds()), MaxProbeInterval.Milliseconds())
	next.ProbeAt, next.Redelivery = now.Add(next.Interval()), value.ID{}
	return &next
}

// Equal reports whether both are the same; none equals none.
func (c *Circuit) Equal(o *Circuit) bool {
	if c == nil || o == nil {
		return c == o
	}
	a, b := *c, *o
	sameClosed := !before(a.ClosedAt, b.ClosedAt) && !before(b.ClosedAt, a.ClosedAt)
	a.ClosedAt, b.ClosedAt = nil, nil
	return sameClosed && a == b
}

// Lane is the queue that an endpoint's deliveries take.
type Lane string

// The lanes.
const (
	LaneMain Lane = ""
	LaneSlow Lane = "SLOW" // of endpoints that are slow or fail
)

// Routing is how an endpoint's deliveries travel at present: which lane they
// take, and whether the circuit holds them; and the last announcement. The
// service changes it while the owner changes the configuration, so the two are
// stored apart.
type Routing struct {
	Circuit *Circuit
	Lane    Lane
	Alert   Alert
}

// Equal reports whether both are the same.
func (c Routing) Equal(o Routing) bool {
	return c.Lane == o.Lane && c.Alert == o.Alert && c.Circuit.Equal(o.Circuit)
}

// Routing is the endpoint's.
func (e *Endpoint) Routing() Routing {
	return Routing{Circuit: e.Circuit, Lane: e.Lane, Alert: e.Alert}
}

// Unsettled reports whether a success alone may change the routing.
func (e *Endpoint) Unsettled() bool {
	return e.Lane != LaneMain || e.Circuit != nil || e.Alert.troubled()
}

// HealthStart is the time from which attempts count for
// [Endpoint.NextRouting]: since the endpoint was created, activated or got
// another url, and since its circuit closed.
func (e *Endpoint) HealthStart() value.Time {
	since := max(e.HealthSince, e.CreatedAt)
	if e.Circuit != nil && e.Circuit.ClosedAt != nil {
		since = max(since, *e.Circuit.ClosedAt)
	}
	return since
}

// NextRouting is the endpoint's routing after attempts whose outcomes are
// counted, and the reason to disable it, "" when it stays enabled. h is its
// health since [Endpoint.HealthStart].
//
// A circuit opens after ten failed attempts in a row over at least a minute,
// or when at least 80% of 50 or more in five minutes failed. Its probe is one
// of the oldest deliveries that it holds; while it holds none there is none. It
// comes after a minute, 10 s where nothing ever succeeded. A failed one doubles
// the wait for the next, up to an hour; a success closes the circuit.
// An endpoint is disabled when all of at least 20 attempts in five days
// failed. The sweeper ends a draining circuit.
func (e *Endpoint) NextRouting(h Health, outcomes []StreamOutcome, now value.Time) (next Routing, disable string) {
	succeeded, probeFailed := e.observe(outcomes)
	next = Routing{Circuit: e.Circuit, Lane: h.lane(e.Lane), Alert: e.Alert}
	if e.Status != Active {
		return next, ""
	}
	if h.Run.Count >= runToDisable && now >= h.Run.Start.Add(disableSpan) {
		next.Circuit = nil
		return next, h.disableReason()
	}
	if succeeded && e.Alert.troubled() {
		next.Alert = Alert{commerce.EventEndpointRecovered, now}
	}
	switch {
	case e.Circuit.Open() && succeeded:
		next.Circuit = e.Circuit.Drain(now)
	case e.Circuit.Open() && probeFailed:
		next.Circuit = e.Circuit.probeFailed(h.firstProbe(), now)
	case !e.Circuit.Open() && h.opens():
		next.Circuit = openCircuit(h.firstProbe(), now)
	}
	return next, ""
}

// observe reports what outcomes say about the endpoint as it is: whether an attempt
// succeeded, and whether a probe failed. Attempts that ended before its health
// began, or before its circuit opened, say nothing.
func (e *Endpoint) observe(outcomes []StreamOutcome) (succeeded, probeFailed bool) {
	since := e.HealthStart()
	if e.Circuit.Open() {
		since = max(since, e.Circuit.OpenedAt)
	}
	for i := range outcomes {
		o := &outcomes[i]
		a := o.Attempt()
		switch ended := a.End(); {
		case ended < since:
		case a.Error == nil:
			succeeded = true
		case o.Previous.Probe && e.Circuit.Open():
			probeFailed = probeFailed || e.Circuit.awaits(o.Next.ID, ended)
		}
	}
	return succeeded, probeFailed
}

func (h *Health) disableReason() string {
	reason := "every attempt failed for 5 days"
	if h.Counters.LastFailureReason != nil {
		reason += fmt.Sprintf("; the last: %s", *h.Counters.LastFailureReason)
	}
	return reason
}

// firstProbe is the wait before the first probe of a circuit.
func (h *Health) firstProbe() time.Duration {
	if h.Counters.LastSuccessAt == nil {
		return unproven
	}
	return ProbeInterval
}

// opens reports whether a circuit must open.
func (h *Health) opens() bool {
	inRow := h.Run.Count >= runToOpen && h.Run.Last >= h.Run.Start.Add(runSpan)
	return inRow || h.Recent.Attempts >= recentToOpen && h.Recent.Failed*percent >= h.Recent.Attempts*failedToOpen
}

// lane is the lane to take after the one that is taken.
func (h *Health) lane(taken Lane) Lane {
	r := h.Recent
	enough := r.Attempts >= recentForLane
	slow := r.Slow*percent > r.Attempts*slowForLane
	failing := r.Failed*percent >= r.Attempts*failedForLane
	switch {
	case enough && (slow || failing) || h.Run.Count >= runForLane:
		return LaneSlow
	case enough, r.Attempts > 0 && r.Slow == 0 && r.Failed == 0 && h.Run.Count == 0:
		return LaneMain
	}
	return taken
}
