package chaos

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// check is one promise, compared with the evidence.
type check struct {
	promise string
	found   string   // what there was, in a few words
	broken  []string // where it does not hold
}

func (c *check) holds() bool { return len(c.broken) == 0 }

// breach notes one case in which the promise does not hold.
func (c *check) breach(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// judge compares every promise with the evidence.
func judge(e *evidence) []check {
	duplicates, _ := e.duplicates()
	return []check{
		e.stored(), e.complete(), e.ended(), e.received(), e.scheduled(), e.counted(), e.genuine(), duplicates, e.drained(), e.listed(), e.followed(), e.streamed(),
	}
}

func (e *evidence) stored() check {
	c := check{promise: "every record is stored", found: fmt.Sprintf("%d events", e.events)}
	for _, p := range e.lost {
		c.breach("%s %s of organization %s is not there", p.kind, p.id, p.of.ID)
	}
	return c
}

// complete compares the deliveries with those expected.
func (e *evidence) complete() check {
	c := check{promise: "each event has one delivery for each endpoint that wants it", found: fmt.Sprintf("%d deliveries", len(e.deliveries))}
	for id, want := range e.expected {
		if e.deliveries[id] == nil {
			c.breach("delivery %s: no %s for endpoint %s", id, want.eventType, want.endpoint)
		}
	}
	for id, r := range e.deliveries {
		if _, known := e.expected[id]; !known {
			c.breach("delivery %s: a %s for endpoint %s that nobody expects", id, r.Type, r.EndpointID)
		}
	}
	return c
}

func (e *evidence) ended() check {
	c := check{promise: "each delivery is DELIVERED, FAILED or HELD, or the probe of an open circuit"}
	by := map[string]int{}
	for id, r := range e.deliveries {
		name := string(r.Status)
		if r.HeldReason != "" {
			name += " " + string(r.HeldReason)
		}
		by[name]++
		switch {
		case r.Status == webhook.DeliveryDelivered, r.Status == webhook.DeliveryFailed, r.Status == webhook.DeliveryHeld, r.Pending() && r.Probe:
		default:
			c.breach("delivery %s: %s after %d attempts, next at %v, due at %v, its message %q", id, name, r.AttemptCount, r.NextAttemptAt, r.DueAt, r.MessageID)
		}
	}
	c.found = countsText(by)
	return c
}

// received compares the delivered events with those that the receivers accepted.
func (e *evidence) received() check {
	c := check{promise: "what is DELIVERED was received"}
	accepted := map[value.ID]bool{}
	for i := range e.requests {
		if e.requests[i].accepted() {
			accepted[e.requests[i].delivery] = true
		}
	}
	for id, r := range e.deliveries {
		if r.Status == webhook.DeliveryDelivered && !accepted[id] {
			c.breach("delivery %s: no receiver has accepted it", id)
		}
	}
	c.found = fmt.Sprintf("%d events accepted in %d requests", len(accepted), len(e.requests))
	return c
}

// scheduled compares each delivery's attempts with its schedule and with the
// requests that were made.
func (e *evidence) scheduled() check {
	c := check{promise: "each delivery's attempts are those of its schedule, and were made"}
	type answer struct {
		delivery value.ID
		status   int
	}
	made := map[answer]int{}
	for _, q := range e.requests {
		made[answer{q.delivery, q.status}]++
	}
	recorded := 0
	for id, r := range e.deliveries {
		recorded += r.AttemptCount
		if min(r.AttemptCount, webhook.MaxAttempts) != len(r.Attempts) {
			c.breach("delivery %s: attemptCount %d with %d attempts", id, r.AttemptCount, len(r.Attempts))
		}
		if want := r.ScheduleStart + e.expected[id].retries + 1; r.Status == webhook.DeliveryFailed && r.AttemptCount != want {
			c.breach("delivery %s: FAILED after %d attempts, want %d", id, r.AttemptCount, want)
		}
		for i, a := range r.Attempts {
			last := i == len(r.Attempts)-1
			if success := a.Error == nil; success != (last && r.Status == webhook.DeliveryDelivered) {
				c.breach("delivery %s: %s, and attempt %d of %d succeeded: %t", id, r.Status, i+1, len(r.Attempts), success)
			}
			if a.ResponseStatus == nil {
				continue
			}
			key := answer{id, *a.ResponseStatus}
			if made[key]--; made[key] < 0 {
				c.breach("delivery %s: attempt %d was answered %d by nobody", id, i+1, *a.ResponseStatus)
			}
		}
	}
	c.found = fmt.Sprintf("%d attempts recorded", recorded)
	return c
}

// counted compares the endpoints' counters with their deliveries.
func (e *evidence) counted() check {
	c := check{promise: "each endpoint's counters equal its deliveries' recorded attempts"}
	want := map[value.ID]webhook.Counters{}
	var successes, failures int64
	for id := range e.counters {
		want[id] = webhook.Counters{}
	}
	for _, r := range e.deliveries {
		sum := want[r.EndpointID]
		for _, a := range r.Attempts {
			if a.Error == nil {
				sum.SuccessCount++
			} else {
				sum.FailureCount++
			}
		}
		want[r.EndpointID] = sum
	}
	for id, w := range want {
		got := e.counters[id]
		successes, failures = successes+got.SuccessCount, failures+got.FailureCount
		if got.SuccessCount != w.SuccessCount || got.FailureCount != w.FailureCount {
			c.breach("endpoint %s: counts %d successes and %d failures, its deliveries %d and %d", id, got.SuccessCount, got.FailureCount, w.SuccessCount, w.FailureCount)
		}
	}
	c.found = fmt.Sprintf("%d successes, %d failures", successes, failures)
	return c
}

// genuine compares each request with its signature and with the others of its
// delivery.
func (e *evidence) genuine() check {
	c := check{promise: "each request is signed, of a delivery, and the same on every attempt"}
	bodies := map[value.ID][sha256.Size]byte{}
	for _, q := range e.requests {
		first, known := bodies[q.delivery]
		switch {
		case q.wrong != "":
			c.breach("a request at %s: %s", q.arrived.Format(timeOfDay), q.wrong)
		case e.deliveries[q.delivery] == nil:
			c.breach("a request at %s: of delivery %s, which is not there", q.arrived.Format(timeOfDay), q.delivery)
		case known && first != q.body:
			c.breach("delivery %s: another body at %s", q.delivery, q.arrived.Format(timeOfDay))
		}
		bodies[q.delivery] = q.body
	}
	c.found = fmt.Sprintf("%d requests", len(e.requests))
	return c
}

const timeOfDay = "15:04:05.000"

// drained tells whether anything is left in a queue.
func (e *evidence) drained() check {
	c := check{promise: "no queue holds anything, dead letters included", found: fmt.Sprintf("%d queues", len(e.queues))}
	for _, q := range e.queues {
		if q.All() > 0 && (q.Dead || !q.Deliveries() || e.waiting() > 0) {
			c.breach("%s: %d visible, %d in flight, %d delayed", q.Name, q.Visible, q.InFlight, q.Delayed)
		}
	}
	if e.waits != "" {
		c.breach("commerce status: %s", e.waits)
	}
	for _, what := range slices.Sorted(maps.Keys(e.redriven)) {
		c.found += fmt.Sprintf("; %s after a redrive: %s", what, e.redriven[what])
	}
	return c
}

func (e *evidence) listed() check {
	c := check{promise: "commerce verify finds no difference between lists and table", found: "none"}
	if e.differs != "" {
		c.found = "some"
		c.breach("%s", e.differs)
	}
	return c
}

// followed compares the records with the copies of those who went on from
// X-Sync-From while everything failed.
func (e *evidence) followed() check {
	c := check{
		promise: "a copy by X-Sync-From and deletions alone equals the table",
		found:   fmt.Sprintf("%d records by %d entries", len(e.copied), e.reads),
	}
	e.compare(&c, e.copied)
	return c
}

// streamed does the same with the copies of those who read the feed.
func (e *evidence) streamed() check {
	c := check{
		promise: "a copy by the feed of changes equals the table, and no record went back",
		found:   fmt.Sprintf("%d records by %d changes", len(e.fed), e.changes),
	}
	e.compare(&c, e.fed)
	for _, id := range e.disordered {
		c.breach("record %s: an earlier change came after a later one", id)
	}
	return c
}

// compare finds what differs between the records and a copy.
func (e *evidence) compare(c *check, copied map[value.ID]value.Time) {
	for id, at := range e.records {
		if copied[id] != at {
			c.breach("record %s of %s: the copy has it of %s", id, at, copied[id])
		}
	}
	for id, at := range copied {
		if _, stored := e.records[id]; !stored {
			c.breach("record %s of %s is in the copy alone", id, at)
		}
	}
}
