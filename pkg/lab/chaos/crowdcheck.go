package chaos

import (
	"fmt"
	"time"

	"github.com/commerce-integration/service/pkg/sqsqueue"
)

// inHand is how many messages of a queue functions may have received beside
// those that wait for a retry: the concurrency of the main lane in the
// template times its batch.
const inHand = 200 * 10

// crowdEvidence is what is known after a run with very many dead endpoints.
type crowdEvidence struct {
	crowd CrowdConfig

	made    int            // events of dead endpoints
	rows    map[string]int // theirs, by status
	untried int
	took    time.Duration // from their messages to the end of the backlog
	peaks   *peaks

	sent      int             // events of the endpoint that is well
	latencies []time.Duration // of those that came, in ascending order
}

// bound is how many messages of a queue may be in flight: those that wait for
// a retry until the queue counts as crowded, what fails in the two seconds for
// which a count holds, and what is being worked on. After that retries are
// delayed messages, which are not in flight. A queue has room for 120,000.
func (e *crowdEvidence) bound() int {
	const counted = 2 * time.Second
	failures := float64(e.made) * counted.Seconds() / max(e.took.Seconds(), 1)
	return sqsqueue.MaxInFlight + inHand + int(failures)
}

func (e *crowdEvidence) judge() []check {
	return []check{e.handled(), e.bounded(), e.unaffected()}
}

func (e *crowdEvidence) handled() check {
	c := check{promise: "every event of a dead endpoint has its row, and was tried or is held", found: fmt.Sprintf("%d rows: %s", total(e.rows), tallied(e.rows))}
	if total(e.rows) != e.made {
		c.breach("%d of %d rows are there", total(e.rows), e.made)
	}
	if e.untried > 0 {
		c.breach("%d were not tried", e.untried)
	}
	return c
}

func (e *crowdEvidence) bounded() check {
	p := e.peaks
	c := check{
		promise: fmt.Sprintf("no queue has more than %d messages in flight", e.bound()),
		found: fmt.Sprintf("at most in flight %s, both together %d; at most delayed %s; at most visible %d",
			tallied(p.inFlight), p.together, tallied(p.delayed), p.visible),
	}
	if len(p.inFlight) == 0 {
		c.breach("nobody has looked")
	}
	for name, n := range p.inFlight {
		if n > e.bound() {
			c.breach("%s: %d", name, n)
		}
	}
	return c
}

func (e *crowdEvidence) unaffected() check {
	p99 := percentile(e.latencies, 99)
	c := check{
		promise: fmt.Sprintf("99 of 100 events of the endpoint that is well take less than %s", e.crowd.Most),
		found: fmt.Sprintf("%d events: p50 %s, p99 %s, at most %s", len(e.latencies), percentile(e.latencies, 50).Round(time.Millisecond),
			p99.Round(time.Millisecond), percentile(e.latencies, 100).Round(time.Millisecond)),
	}
	if p99 >= e.crowd.Most || len(e.latencies) == 0 {
		c.breach("p99 of %d events: %s", len(e.latencies), p99)
	}
	if missing := e.sent - len(e.latencies); missing > 0 {
		c.breach("%d of %d events have not come", missing, e.sent)
	}
	return c
}
