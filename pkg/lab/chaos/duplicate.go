package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// The service delivers at least once. An event is accepted again when the
// answer to an earlier request was never written into its delivery, and only these
// causes of that are taken for an explanation:
const (
	// The worker's process that made the request was killed before it could
	// write, in the invocation that made it, or before it could even log.
	byWorker = "its worker was killed"
	byWhole  = "the whole was killed"
	// The worker's process logged that it could not write the outcome.
	byTable = "the table did not take the outcome"
	// The delivery knows the attempt, as one that failed: the answer came when the
	// worker had given up, or its connection broke.
	byWire = "the answer did not arrive in time"
	// Two messages of the delivery were worked on side by side, of which one was
	// sent once more by the run itself,
	byCopy = "a copy of its message was worked on at the same time"
	// or by a dispatcher or sweeper that was killed, or failed, before it knew
	// that it had sent it.
	bySender = "its message was sent again by a sender that was killed or failed"
)

const (
	// bookkeeping is how long after an answer its outcome may still be on the
	// way into the table: the 20 s for which a worker asks a table that fails,
	// after the other attempts of its batch. invocation is how long until the
	// worker says that it gave up.
	bookkeeping = 25 * time.Second
	invocation  = time.Minute
	// telling is how long after an answer a process may not have logged it yet.
	telling = 2 * time.Second
	// skew is how much later than a request an attempt may seem to begin, of
	// which the delivery keeps milliseconds.
	skew = 2 * time.Millisecond
)

// trail is what is known of one delivery's way.
type trail struct {
	delivery *webhook.Delivery
	requests []*request
	attempts []attempt
}

// causes sorts the evidence by what explains duplicates.
type causes struct {
	kills   map[int][]kill    // of a process; ids come again
	made    map[int][]attempt // by a process
	workers []kill            // of workers, in order
	whole   []kill
	senders []time.Time // when a dispatcher or sweeper was killed or complained
	failed  map[value.ID][]complaint
	copied  map[value.ID][]time.Time
}

// cause is what explains an answer that a delivery does not know of, and how long
// after the answer it was.
type cause struct {
	why   string // "" for nothing
	after time.Duration
}

func (e *evidence) causes() *causes {
	k := &causes{kills: map[int][]kill{}, made: map[int][]attempt{}, failed: map[value.ID][]complaint{}, copied: map[value.ID][]time.Time{}}
	for _, a := range e.attempts {
		k.made[a.pid] = append(k.made[a.pid], a)
	}
	sends := func(function string) bool { return function == "dispatcher" || function == "sweeper" }
	for _, one := range e.kills {
		switch one.function {
		case "":
			k.whole = append(k.whole, one)
		case "worker":
			k.workers = append(k.workers, one)
		}
		if one.function != "" {
			k.kills[one.pid] = append(k.kills[one.pid], one)
		}
		if one.function == "" || sends(one.function) {
			k.senders = append(k.senders, one.at)
		}
	}
	for _, one := range e.complaints {
		if sends(one.function) {
			k.senders = append(k.senders, one.at)
		}
		if one.function == "worker" && !one.delivery.IsZero() {
			k.failed[one.delivery] = append(k.failed[one.delivery], one)
		}
	}
	for _, one := range e.copies {
		k.copied[one.delivery] = append(k.copied[one.delivery], one.at)
	}
	return k
}

// trails puts together what is known of each delivery that was accepted.
func (e *evidence) trails() map[value.ID]*trail {
	found := map[value.ID]*trail{}
	for i := range e.requests {
		q := &e.requests[i]
		if found[q.delivery] == nil {
			found[q.delivery] = &trail{delivery: e.deliveries[q.delivery]}
		}
		found[q.delivery].requests = append(found[q.delivery].requests, q)
	}
	for _, a := range e.attempts {
		if t := found[a.delivery]; t != nil {
			t.attempts = append(t.attempts, a)
		}
	}
	for _, t := range found {
		slices.SortFunc(t.requests, func(a, b *request) int { return a.arrived.Compare(b.arrived) })
	}
	return found
}

// duplicates counts what was accepted more than once, and holds each answer
// that no delivery knows of against what may explain it. It returns how many there
// were of each cause.
func (e *evidence) duplicates() (check, map[string]int) {
	c := check{promise: "what was accepted again is explained"}
	k, again := e.causes(), 0
	explained, longest := map[string]int{}, map[string]time.Duration{}
	for id, t := range e.trails() {
		var accepted []*request
		for _, q := range t.requests {
			if q.accepted() {
				accepted = append(accepted, q)
			}
		}
		again += max(0, len(accepted)-1)
		for _, q := range t.unknown(accepted) {
			found := k.explain(t, q)
			if found.why == "" {
				c.breach("delivery %s: accepted at %s, and nothing explains why its delivery does not know%s", id, q.arrived.Format(timeOfDay), t.history())
				continue
			}
			explained[found.why]++
			longest[found.why] = max(longest[found.why], found.after)
		}
	}
	c.found = fmt.Sprintf("%d accepted again", again)
	for _, why := range slices.SortedFunc(maps.Keys(explained), func(a, b string) int { return cmp.Compare(explained[b], explained[a]) }) {
		c.found += fmt.Sprintf("\n          %4d answers that no delivery knows of: %s", explained[why], why)
		if after := longest[why]; after > 0 {
			c.found += fmt.Sprintf(", at most %s later", after.Round(time.Millisecond))
		}
	}
	return c, explained
}

// unknown returns the requests that were accepted and are not the success that
// the delivery knows of.
func (t *trail) unknown(accepted []*request) []*request {
	if t.delivery == nil {
		return nil // which another check tells
	}
	left := slices.Clone(accepted)
	for _, a := range t.delivery.Attempts {
		if a.Error != nil {
			continue
		}
		best := -1
		for i, q := range left {
			if !q.arrived.Before(a.At.Std().Add(-skew)) && (best < 0 || q.arrived.Before(left[best].arrived)) {
				best = i
			}
		}
		if best >= 0 {
			left = slices.Delete(left, best, best+1)
		}
	}
	return left
}

// explain finds the cause.
func (k *causes) explain(t *trail, q *request) cause {
	for _, a := range t.delivery.Attempts {
		if a.Error != nil && a.ResponseStatus == nil && within(q.arrived, a.At.Std().Add(-skew), a.At.Std().Add(a.Duration()+skew)) {
			return cause{why: byWire}
		}
	}
	if found := k.ended(t, q); found.why != "" || !t.crossed(q) {
		return found
	}
	for _, at := range k.copied[q.delivery] {
		if at.Before(q.answered.Add(bookkeeping)) {
			return cause{why: byCopy}
		}
	}
	for _, at := range k.senders {
		if within(at, t.delivery.CreatedAt.Std().Add(-bookkeeping), q.answered.Add(bookkeeping)) {
			return cause{why: bySender}
		}
	}
	return cause{}
}

// ended tells whether the process that made the request gave up its outcome,
// or could not write it.
func (k *causes) ended(t *trail, q *request) cause {
	made, told := t.madeBy(q)
	for _, one := range k.failed[q.delivery] {
		if told && one.pid == made.pid && within(one.at, q.arrived, q.answered.Add(invocation)) {
			return cause{byTable, one.at.Sub(q.answered)}
		}
	}
	for _, one := range k.workers {
		if !told && within(one.at, q.arrived, q.answered.Add(telling)) {
			return cause{byWorker, one.at.Sub(q.answered)}
		}
	}
	for _, one := range k.kills[made.pid] {
		if told && within(one.at, q.arrived, q.answered.Add(bookkeeping)) && !k.wentOn(made, one.at) {
			return cause{byWorker, one.at.Sub(q.answered)}
		}
	}
	for _, one := range k.whole {
		if within(one.at, q.arrived, q.answered.Add(bookkeeping)) && !(told && k.wentOn(made, one.at)) {
			return cause{byWhole, one.at.Sub(q.answered)}
		}
	}
	return cause{}
}

// wentOn tells whether the process that made an attempt had another invocation
// before it was killed: then it had told of the outcome in its answer to the
// first.
func (k *causes) wentOn(made attempt, killed time.Time) bool {
	return slices.ContainsFunc(k.made[made.pid], func(a attempt) bool {
		return a.invocation != made.invocation && within(a.at, made.at, killed)
	})
}

func within(at, from, to time.Time) bool { return !at.Before(from) && !at.After(to) }

// madeBy returns the request's attempt as its worker has logged it.
func (t *trail) madeBy(q *request) (made attempt, told bool) {
	for _, a := range t.attempts {
		if a.status == q.status && !a.at.Before(q.arrived) && !a.at.After(q.answered.Add(telling)) {
			return a, true
		}
	}
	return attempt{}, false
}

// crossed tells whether another request of the delivery was made, or on its way
// into the table, at the same time.
func (t *trail) crossed(q *request) bool {
	end := func(q *request) time.Time {
		if q.answered.IsZero() {
			return q.arrived.Add(bookkeeping)
		}
		return q.answered.Add(bookkeeping)
	}
	return slices.ContainsFunc(t.requests, func(o *request) bool {
		return o != q && o.arrived.Before(end(q)) && q.arrived.Before(end(o))
	})
}

// history writes down a delivery's way, for somebody who has to find out.
func (t *trail) history() string {
	var b strings.Builder
	for _, q := range t.requests {
		fmt.Fprintf(&b, "\n      request %s to %s: %d", q.arrived.Format(timeOfDay), q.answered.Format(timeOfDay), q.status)
	}
	for _, a := range t.attempts {
		fmt.Fprintf(&b, "\n      logged  %s by process %d: %d", a.at.Local().Format(timeOfDay), a.pid, a.status)
	}
	for _, a := range t.delivery.Attempts {
		status := 0
		if a.ResponseStatus != nil {
			status = *a.ResponseStatus
		}
		fmt.Fprintf(&b, "\n      kept    %s for %s: %d", a.At.Std().Local().Format(timeOfDay), a.Duration(), status)
	}
	return b.String()
}
