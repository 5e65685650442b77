package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// check is one promise, compared with the evidence.
type check struct {
	promise string
	found   string   // what there was
	broken  []string // where it does not hold
}

// breach notes a case in which the promise does not hold.
func (c *check) breach(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// judge compares every promise with the evidence.
func judge(e *evidence) []check {
	return []check{
		e.stored(), e.complete(), e.ended(), e.received(), e.again(), e.counted(), e.drained(), e.listed(), e.streamed(),
	}
}

func (e *evidence) stored() check {
	c := check{promise: "every record is stored", found: fmt.Sprintf("%d records", len(e.records))}
	for _, p := range e.lost {
		c.breach("%s %s is not there", p.kind, p.id)
	}
	return c
}

func (e *evidence) complete() check {
	c := check{promise: "each event has one delivery for each endpoint that wants it", found: fmt.Sprintf("%d deliveries", len(e.deliveries))}
	for id, want := range e.expected {
		if e.deliveries[id] == nil {
			c.breach("delivery %s: no %s for endpoint %s", id, want.eventType, want.endpoint)
		}
	}
	for id, d := range e.deliveries {
		if _, known := e.expected[id]; !known {
			c.breach("delivery %s: a %s for endpoint %s that nobody expects", id, d.Type, d.EndpointID)
		}
	}
	return c
}

func (e *evidence) ended() check {
	c := check{promise: "each delivery is DELIVERED, FAILED after its retries or HELD, or the probe of an open circuit"}
	by := map[string]int{}
	for id, d := range e.deliveries {
		by[string(d.Status)]++
		switch want := d.ScheduleStart + e.expected[id].retries + 1; {
		case d.Status == webhook.DeliveryFailed && d.AttemptCount != want:
			c.breach("delivery %s: FAILED after %d attempts, want %d", id, d.AttemptCount, want)
		case d.Status == webhook.DeliveryDelivered, d.Status == webhook.DeliveryFailed, d.Status == webhook.DeliveryHeld, d.Pending() && d.Probe:
		default:
			c.breach("delivery %s: %s after %d attempts, next at %v, due at %v", id, d.Status, d.AttemptCount, d.NextAttemptAt, d.DueAt)
		}
	}
	c.found = countsText(by)
	return c
}

// accepted counts the requests of each delivery that its receiver accepted.
func (e *evidence) accepted() map[value.ID]int {
	accepted := map[value.ID]int{}
	for i := range e.requests {
		if e.requests[i].accepted() {
			accepted[e.requests[i].delivery]++
		}
	}
	return accepted
}

func (e *evidence) received() check {
	accepted := e.accepted()
	c := check{promise: "DELIVERED was received", found: fmt.Sprintf("%d events accepted in %d requests", len(accepted), len(e.requests))}
	for id, d := range e.deliveries {
		if d.Status == webhook.DeliveryDelivered && accepted[id] == 0 {
			c.breach("delivery %s: no receiver has accepted it", id)
		}
	}
	return c
}

// again looks for deliveries that were accepted more than once. Kills and faults cause some.
func (e *evidence) again() check {
	const oneIn = 10
	c, accepted, twice := check{promise: "few were accepted twice, and none that came after the faults"}, e.accepted(), 0
	for id, times := range accepted {
		if times > 1 {
			twice++
		}
		if times > 1 && e.expected[id].calm {
			c.breach("delivery %s: accepted %d times without a fault", id, times)
		}
	}
	if twice*oneIn > len(accepted) {
		c.breach("more than one in %d", oneIn)
	}
	c.found = fmt.Sprintf("%d of %d", twice, len(accepted))
	return c
}

// counted compares the endpoints' counters with their deliveries.
func (e *evidence) counted() check {
	c := check{promise: "each endpoint's counters equal its deliveries' attempts"}
	type pair struct{ successes, failures int64 }
	want := map[value.ID]pair{}
	for id := range e.counters {
		want[id] = pair{}
	}
	var all pair
	for id, d := range e.deliveries {
		if d.AttemptCount != len(d.Attempts) && len(d.Attempts) < webhook.MaxAttempts {
			c.breach("delivery %s: attemptCount %d with %d attempts", id, d.AttemptCount, len(d.Attempts))
		}
		sum := want[d.EndpointID]
		for _, a := range d.Attempts {
			if a.Error == nil {
				sum.successes, all.successes = sum.successes+1, all.successes+1
			} else {
				sum.failures, all.failures = sum.failures+1, all.failures+1
			}
		}
		want[d.EndpointID] = sum
	}
	for id, w := range want {
		if got := e.counters[id]; got.SuccessCount != w.successes || got.FailureCount != w.failures {
			c.breach("endpoint %s: counts %d successes and %d failures, its deliveries %d and %d", id, got.SuccessCount, got.FailureCount, w.successes, w.failures)
		}
	}
	c.found = fmt.Sprintf("%d successes, %d failures", all.successes, all.failures)
	return c
}

func (e *evidence) drained() check {
	c := check{promise: "no queue holds anything, dead letters included", found: fmt.Sprintf("%d queues", len(e.queues))}
	if waiting, dead := e.messages(); waiting > 0 || dead > 0 {
		c.breach("%+v", e.queues)
	}
	return c
}

func (e *evidence) listed() check {
	c := check{promise: "commerce verify finds no difference between lists and table"}
	if e.differs != "" {
		c.breach("%s", e.differs)
	}
	return c
}

// streamed compares the records of the table with the copies by the feed.
func (e *evidence) streamed() check {
	c := check{promise: "a copy by the feed of changes equals the table, and no record went back", found: fmt.Sprintf("%d records", len(e.fed))}
	for id, at := range e.records {
		if e.fed[id] != at {
			c.breach("record %s of %s: the copy has it of %s", id, at, e.fed[id])
		}
	}
	for id, at := range e.fed {
		if _, stored := e.records[id]; !stored {
			c.breach("record %s of %s is in the copy alone", id, at)
		}
	}
	for _, id := range e.disordered {
		c.breach("record %s: an earlier change came after a later one", id)
	}
	return c
}

func countsText(by map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, by[name]))
	}
	return strings.Join(parts, ", ")
}

// maxExamples is how many breaches of a promise a report shows.
const maxExamples = 5

// report judges the evidence, and returns how many promises are broken.
func (r *run) report(e *evidence) (broken int) {
	kills := map[string]int{}
	for _, name := range r.killer.kills {
		kills[name]++
	}
	fmt.Fprintf(r.Out, "\n%d events, seed %d, %s; kills: %s\n\n", r.load.sent(), r.Seed, time.Since(r.started).Round(time.Second), countsText(kills))
	for _, c := range judge(e) {
		result := "holds"
		if len(c.broken) > 0 {
			result = "BROKEN"
			broken++
		}
		fmt.Fprintf(r.Out, "  %-7s %s\n          %s\n", result, c.promise, c.found)
		for _, text := range c.broken[:min(len(c.broken), maxExamples)] {
			fmt.Fprintf(r.Out, "          - %s\n", text)
		}
		if more := len(c.broken) - maxExamples; more > 0 {
			fmt.Fprintf(r.Out, "          and %d more\n", more)
		}
	}
	return broken
}
