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

// compare notes where two sides differ; the zero value stands for none.
func compare[V comparable](c *check, what string, got, want map[value.ID]V) {
	for id, w := range want {
		if got[id] != w {
			c.breach("%s %s: %v, want %v", what, id, got[id], w)
		}
	}
	for id, g := range got {
		if _, known := want[id]; !known {
			c.breach("%s %s: %v, want none", what, id, g)
		}
	}
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
	got, want := map[value.ID]value.ID{}, map[value.ID]value.ID{} // the endpoints of deliveries
	for id, x := range e.expected {
		want[id] = x.endpoint
	}
	for id, d := range e.deliveries {
		got[id] = d.EndpointID
	}
	compare(&c, "delivery", got, want)
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

func (e *evidence) received() check {
	c := check{promise: "DELIVERED was received", found: fmt.Sprintf("%d events accepted in %d requests", len(e.accepted), e.receipts)}
	for id, d := range e.deliveries {
		if d.Status == webhook.DeliveryDelivered && e.accepted[id] == 0 {
			c.breach("delivery %s: no receiver has accepted it", id)
		}
	}
	return c
}

// again looks for deliveries that were accepted more than once. Kills and faults cause some.
func (e *evidence) again() check {
	const oneIn = 10
	c, twice := check{promise: "few were accepted twice, and none that came after the faults"}, 0
	for id, times := range e.accepted {
		if times > 1 {
			twice++
		}
		if times > 1 && e.expected[id].calm {
			c.breach("delivery %s: accepted %d times without a fault", id, times)
		}
	}
	if twice*oneIn > len(e.accepted) {
		c.breach("more than one in %d", oneIn)
	}
	c.found = fmt.Sprintf("%d of %d", twice, len(e.accepted))
	return c
}

// count is what an endpoint counts.
type count struct{ successes, failures int64 }

// counted compares the endpoints' counters with their deliveries.
func (e *evidence) counted() check {
	c := check{promise: "each endpoint's counters equal its deliveries' attempts"}
	got, want := map[value.ID]count{}, map[value.ID]count{}
	for id, counters := range e.counters {
		got[id], want[id] = count{counters.SuccessCount, counters.FailureCount}, count{}
	}
	var sum count
	for id, d := range e.deliveries {
		if d.AttemptCount != len(d.Attempts) && len(d.Attempts) < webhook.MaxAttempts {
			c.breach("delivery %s: attemptCount %d with %d attempts", id, d.AttemptCount, len(d.Attempts))
		}
		own := want[d.EndpointID]
		for _, a := range d.Attempts {
			if a.Error == nil {
				own.successes, sum.successes = own.successes+1, sum.successes+1
			} else {
				own.failures, sum.failures = own.failures+1, sum.failures+1
			}
		}
		want[d.EndpointID] = own
	}
	compare(&c, "endpoint", got, want)
	c.found = fmt.Sprintf("%d successes, %d failures", sum.successes, sum.failures)
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
	c := check{promise: "the lists equal the table", found: e.verified}
	if e.differs {
		c.breach("commerce verify found a difference")
	}
	return c
}

func (e *evidence) streamed() check {
	c := check{promise: "a copy by the feed of changes equals the table", found: fmt.Sprintf("%d records", len(e.copied))}
	compare(&c, "record", e.copied, e.records)
	return c
}

func countsText(by map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, by[name]))
	}
	return strings.Join(parts, ", ")
}

// report judges the evidence. Its error says that promises are broken.
func (r *run) report(e *evidence) error {
	const maxExamples = 5
	broken := 0
	fmt.Fprintf(r.Out, "\n%d events, seed %d, %s\n\n", r.sent, r.Seed, time.Since(r.started).Round(time.Second))
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
	if broken > 0 {
		return fmt.Errorf("seed %d: %d promises are broken", r.Seed, broken)
	}
	return nil
}
