package chaos

import (
	"fmt"
	"maps"
	"slices"
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

// compare has a breach wherever two sides differ.
func compare[V comparable](promise string, got, want map[value.ID]V) check {
	c := check{promise: promise, found: fmt.Sprintf("%d of %d", len(got), len(want))}
	for id, w := range want {
		if g, known := got[id]; !known || g != w {
			c.breach("%s: %v, want %v", id, g, w)
		}
	}
	for id, g := range got {
		if _, known := want[id]; !known {
			c.breach("%s: %v, want none", id, g)
		}
	}
	return c
}

// judge compares every promise with the evidence.
func judge(e *evidence) []check {
	return []check{
		{"every record is stored", fmt.Sprintf("%d records", len(e.records)), e.lost},
		e.complete(), e.ended(), e.received(), e.counted(), e.drained(),
		{"the lists equal the table", e.verified, e.differs},
		compare("a copy by the feed of changes equals the table", e.copied, e.records),
	}
}

func (e *evidence) complete() check {
	got, want := map[value.ID]value.ID{}, map[value.ID]value.ID{} // the endpoints of deliveries
	for id, x := range e.expected {
		want[id] = x.endpoint
	}
	for id, d := range e.deliveries {
		got[id] = d.EndpointID
	}
	return compare("each event has one delivery for each endpoint that wants it", got, want)
}

func (e *evidence) ended() check {
	c := check{promise: "each delivery is DELIVERED, FAILED after its retries or HELD, or the probe of an open circuit"}
	by := map[string]int{}
	for id, d := range e.deliveries {
		by[string(d.Status)]++
		switch want := d.ScheduleStart + e.expected[id].retries + 1; {
		case d.AttemptCount != len(d.Attempts) && len(d.Attempts) < webhook.MaxAttempts:
			c.breach("delivery %s: attemptCount %d with %d attempts", id, d.AttemptCount, len(d.Attempts))
		case d.Status == webhook.DeliveryFailed && d.AttemptCount != want:
			c.breach("delivery %s: FAILED after %d attempts, want %d", id, d.AttemptCount, want)
		case d.Status == webhook.DeliveryDelivered, d.Status == webhook.DeliveryFailed, d.Status == webhook.DeliveryHeld, d.Pending() && d.Probe:
		default:
			c.breach("delivery %s: %s after %d attempts, next at %v, due at %v", id, d.Status, d.AttemptCount, d.NextAttemptAt, d.DueAt)
		}
	}
	c.found = fmt.Sprintf("%d deliveries:%s", len(e.deliveries), countsText(by, " "))
	return c
}

// received looks for deliveries that were accepted never, or again for no known reason.
func (e *evidence) received() check {
	const oneIn = 10
	c, twice, by := check{promise: "DELIVERED was received, few of them twice, and those with a cause"}, 0, map[string]int{}
	for id, d := range e.deliveries {
		accepted := e.accepted[id]
		if len(accepted) > 1 {
			twice++
		}
		if len(accepted) == 0 && d.Status == webhook.DeliveryDelivered {
			c.breach("delivery %s: DELIVERED, never accepted", id)
		}
		for _, cause := range e.causes(d) {
			if by[cause]++; cause == unproved {
				c.breach("delivery %s: %s, accepted at %v: a second acceptance without a cause", id, d.Status, accepted)
			}
		}
	}
	delete(by, "")
	if twice*oneIn > len(e.accepted) {
		c.breach("more than one in %d twice", oneIn)
	}
	c.found = fmt.Sprintf("%d accepted, %d twice%s", len(e.accepted), twice, countsText(by, "\n            "))
	return c
}

// counted compares the endpoints' counters, successes and failures, with their deliveries.
func (e *evidence) counted() check {
	got, want := map[value.ID][2]int64{}, map[value.ID][2]int64{}
	for id, counters := range e.counters {
		got[id], want[id] = [2]int64{counters.SuccessCount, counters.FailureCount}, [2]int64{}
	}
	for _, d := range e.deliveries {
		own := want[d.EndpointID]
		for _, a := range d.Attempts {
			if a.Error == nil {
				own[0]++
			} else {
				own[1]++
			}
		}
		want[d.EndpointID] = own
	}
	return compare("each endpoint's counters equal its deliveries' attempts", got, want)
}

func (e *evidence) drained() check {
	c := check{promise: "no queue holds anything, dead letters included", found: fmt.Sprintf("%d queues", len(e.queues))}
	if _, waiting, dead := e.left(); waiting > 0 || dead > 0 {
		for _, q := range e.queues {
			c.breach("%s holds %d", q.Name, q.All())
		}
	}
	return c
}

// countsText lists counts by name, each after a separator.
func countsText(by map[string]int, separator string) (text string) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		text += fmt.Sprintf("%s%s %d", separator, name, by[name])
	}
	return text
}

// report judges the evidence. Its error says that promises are broken.
func (r *run) report(e *evidence) error {
	const maxExamples = 5
	broken := 0
	fmt.Fprintf(r.Out, "\n%d events, seed %d, %s\n\n", r.Events, r.Seed, time.Since(r.started).Round(time.Second))
	for _, c := range judge(e) {
		result := "holds"
		if len(c.broken) > 0 {
			result = fmt.Sprintf("BROKEN %d times:", len(c.broken))
			broken++
		}
		fmt.Fprintf(r.Out, "  %-7s %s\n          %s\n", result, c.promise, c.found)
		for _, text := range c.broken[:min(len(c.broken), maxExamples)] {
			fmt.Fprintf(r.Out, "          - %s\n", text)
		}
	}
	if broken > 0 {
		return fmt.Errorf("seed %d: %d promises are broken", r.Seed, broken)
	}
	return nil
}
