package chaos

import (
	"slices"
	"testing"
	"time"
)

func newDeadStory() *deadEvidence {
	e := &deadEvidence{
		dead: DeadDefaults(), made: 200_000, deliveries: map[string]int{"HELD": 150_000, "PENDING": 50_000}, took: 200 * time.Second,
		peaks: &peaks{inFlight: map[string]int{"DeliveriesQueue": 23_000, "SlowDeliveriesQueue": 24_000}}, sent: 400,
	}
	for range e.sent {
		e.latencies = append(e.latencies, time.Second)
	}
	return e
}

// slow has so many of the events take six seconds.
func (e *deadEvidence) slow(n int) {
	for i := range n {
		e.latencies[len(e.latencies)-1-i] = 6 * time.Second
	}
}

func TestDeadEndpointsBreakEachPromise(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*deadEvidence)
		want  []int // the promises that are broken
	}{
		"nothing":                          {func(*deadEvidence) {}, nil},
		"a delivery that is missing":       {func(e *deadEvidence) { e.deliveries["HELD"]-- }, []int{0}},
		"an event that was not tried":      {func(e *deadEvidence) { e.untried = 1 }, []int{0}},
		"a queue at the bound":             {func(e *deadEvidence) { e.peaks.inFlight["DeliveriesQueue"] = 24_000 }, nil},
		"a queue past the bound":           {func(e *deadEvidence) { e.peaks.inFlight["DeliveriesQueue"] = 24_001 }, []int{1}},
		"queues that nobody has seen":      {func(e *deadEvidence) { e.peaks = &peaks{} }, []int{1}},
		"five slow events of four hundred": {func(e *deadEvidence) { e.slow(5) }, []int{2}},
		"four of them":                     {func(e *deadEvidence) { e.slow(4) }, nil},
		"no event at all":                  {func(e *deadEvidence) { e.latencies, e.sent = nil, 0 }, []int{2}},
		"an event that is lost":            {func(e *deadEvidence) { e.sent++ }, []int{2}},
	} {
		e := newDeadStory()
		c.spoil(e)
		var got []int
		for i, check := range e.judge() {
			if !check.holds() {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: broken promises %v, want %v", name, got, c.want)
		}
	}
}
