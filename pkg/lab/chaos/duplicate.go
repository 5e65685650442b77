package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/clocks"
	"github.com/commerce-integration/service/pkg/webhook"
)

// The service delivers at least once. An event is accepted again when the
// answer to an earlier request was never written into its delivery, and only
// these causes explain that:
const (
	// The worker's process that made the request was killed before it could
	// write, in the invocation that made it, or before it could even log.
	byWorker = "its worker was killed"
	byWhole  = "the whole was killed"
	// The worker's process logged that it could not write the outcome.
	byTable = "the table did not take the outcome"
	// The delivery has the attempt as one that failed: the answer came when the
	// worker had given up, or its connection broke.
	byNetwork = "the answer did not arrive in time"
	// Two messages of the delivery were worked on at the same time, because the
	// run itself sent one of them once more,
	byCopy = "a copy of its message was worked on at the same time"
	// or because a dispatcher or sweeper was killed, or failed, before it knew
	// that it had sent one.
	bySender = "its message was sent again by a sender that was killed or failed"
	// or because one had waited in a full queue, in which time the sweeper sends
	// another one.
	byQueue = "its message was late, and the sweeper had sent another one"
)

const (
	// bookkeeping is how long after an answer its outcome may still be on the
	// way into the table: a worker repeats a write for 20 s, after the other
	// attempts of its batch.
	bookkeeping = 25 * time.Second
	// givingUp is how long it may take until the worker logs that it gave up.
	givingUp = time.Minute
	// logging is how long after an answer a process may not have logged it yet.
	logging = 2 * time.Second
	// underway is how long after the death of its process a request may arrive.
	underway = 100 * time.Millisecond
	// skew is how much later than a request an attempt may seem to begin, whose
	// time is kept in milliseconds.
	skew = 2 * time.Millisecond
)

// trail is what is known of one delivery.
type trail struct {
	delivery *webhook.Delivery
	requests []*request
	attempts []attempt
	clocks   clocks.Clocks
}

// causes sorts the evidence by what explains duplicates.
type causes struct {
	kills   []kill
	made    map[int][]attempt // by a process
	senders []time.Time       // when a dispatcher or sweeper was killed or complained
	failed  map[value.ID][]complaint
	copied  map[value.ID][]time.Time
	ahead   time.Duration // of a process's clock, at most
}

// cause is what explains an answer that a delivery does not have, and how long
// after the answer it was.
type cause struct {
	why   string // "" for nothing
	after time.Duration
}

func (e *evidence) causes() *causes {
	k := &causes{kills: e.kills, made: map[int][]attempt{}, failed: map[value.ID][]complaint{}, copied: map[value.ID][]time.Time{}, ahead: e.clocks.Apart / 2}
	for _, a := range e.attempts {
		k.made[a.pid] = append(k.made[a.pid], a)
	}
	for _, one := range e.kills {
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

func sends(function string) bool { return function == "dispatcher" || function == "sweeper" }

// trails puts together what is known of each delivery that was requested.
func (e *evidence) trails() map[value.ID]*trail {
	found := map[value.ID]*trail{}
	for i := range e.requests {
		q := &e.requests[i]
		if found[q.delivery] == nil {
			found[q.delivery] = &trail{delivery: e.deliveries[q.delivery], clocks: e.clocks}
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

// duplicates counts what was accepted more than once, and looks for an
// explanation of each accepted answer that its delivery does not have. It
// returns how many there were of each cause.
func (e *evidence) duplicates() (check, map[string]int) {
	c := check{promise: "what was accepted again is explained"}
	k, again := e.causes(), 0
	explained, longest := map[string]int{}, map[string]time.Duration{}
	for id, t := range e.trails() {
		accepted := slices.DeleteFunc(slices.Clone(t.requests), func(q *request) bool { return !q.accepted() })
		again += max(0, len(accepted)-1)
		for _, q := range t.unknown(accepted) {
			found := k.explain(t, q)
			if found.why == "" {
				c.breach("delivery %s: accepted at %s, and nothing explains why it does not know%s", id, q.arrived.Format(timeOfDay), t.history())
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

// unknown returns the accepted requests that are not the success that the
// delivery has.
func (t *trail) unknown(accepted []*request) []*request {
	if t.delivery == nil {
		return nil // another check tells
	}
	for _, a := range t.delivery.Attempts {
		if a.Error != nil {
			continue
		}
		// They are in the order of arrival.
		began := t.began(a)
		known := slices.IndexFunc(accepted, func(q *request) bool { return !q.arrived.Before(began.Add(-skew)) })
		if known >= 0 {
			accepted = slices.Delete(accepted, known, known+1)
		}
	}
	return accepted
}

// began is when an attempt that the delivery has began. Its time there is by the
// clock of a process, which is most likely the one that logged an attempt when
// this one ended.
func (t *trail) began(a webhook.Attempt) time.Time {
	began, nearest := a.At.Std(), time.Duration(math.MaxInt64)
	for _, logged := range t.attempts {
		by := a.At.Std().Add(-t.clocks.Offset(logged.pid))
		if far := logged.at.Sub(by.Add(a.Duration())).Abs(); far < nearest {
			began, nearest = by, far
		}
	}
	return began
}

// explain finds the cause.
func (k *causes) explain(t *trail, q *request) cause {
	for _, a := range t.delivery.Attempts {
		if began := t.began(a); a.Error != nil && a.ResponseStatus == nil && within(q.arrived, began.Add(-skew), began.Add(a.Duration()+skew)) {
			return cause{why: byNetwork}
		}
	}
	if found := k.unwritten(t, q); found.why != "" || !t.overlaps(q) {
		return found
	}
	written := q.answered.Add(bookkeeping)
	if slices.ContainsFunc(k.copied[q.delivery], func(at time.Time) bool { return at.Before(written) }) {
		return cause{why: byCopy}
	}
	if slices.ContainsFunc(k.senders, func(at time.Time) bool {
		return within(at, t.delivery.CreatedAt.Std().Add(-bookkeeping-k.ahead), written)
	}) {
		return cause{why: bySender}
	}
	if t.late(q, k.ahead) {
		return cause{why: byQueue}
	}
	return cause{}
}

// unwritten tells whether the process that made the request gave up its outcome,
// or was killed before it had written it.
func (k *causes) unwritten(t *trail, q *request) cause {
	made, logged := t.madeBy(q)
	for _, one := range k.failed[q.delivery] {
		if logged && one.pid == made.pid && within(one.at, q.arrived, q.answered.Add(givingUp)) {
			return cause{byTable, one.at.Sub(q.answered)}
		}
	}
	written := q.answered.Add(bookkeeping)
	for _, one := range k.kills {
		own := logged && one.function != "" && one.pid == made.pid && within(one.at, q.arrived, written) && !k.wentOn(made, one.at)
		perhaps := !logged && one.function == "worker" && within(one.at, q.arrived.Add(-underway), q.answered.Add(logging))
		if own || perhaps {
			return cause{byWorker, one.at.Sub(q.answered)}
		}
	}
	for _, one := range k.kills {
		if one.function == "" && within(one.at, q.arrived.Add(-underway), written) && !(logged && k.wentOn(made, one.at)) {
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
func (t *trail) madeBy(q *request) (made attempt, logged bool) {
	i := slices.IndexFunc(t.attempts, func(a attempt) bool {
		return a.status == q.status && within(a.at, q.arrived, q.answered.Add(logging))
	})
	if i < 0 {
		return attempt{}, false
	}
	return t.attempts[i], true
}

// overlaps tells whether another request of the delivery was made, or its
// outcome on the way into the table, at the same time.
func (t *trail) overlaps(q *request) bool {
	end := func(q *request) time.Time { return q.ended().Add(bookkeeping) }
	return slices.ContainsFunc(t.requests, func(o *request) bool {
		return o != q && o.arrived.Before(end(q)) && q.arrived.Before(end(o))
	})
}

// late tells whether the request, or one before it, came so long after it was due
// that the sweeper had sent another message. The delivery's creation is by a clock
// that is at most so much behind.
func (t *trail) late(q *request, behind time.Duration) bool {
	due := t.delivery.CreatedAt.Std().Add(behind)
	for i, r := range t.requests {
		switch {
		case r.arrived.After(q.arrived):
			return false
		case r.arrived.After(due.Add(webhook.Lease)):
			return true
		}
		due = r.ended().Add(webhook.RetryDelay(i+1, 1))
	}
	return false
}

// history lists a delivery's requests, log lines and attempts, for the search
// for an explanation.
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
		fmt.Fprintf(&b, "\n      kept    %s for %s: %d", t.began(a).Local().Format(timeOfDay), a.Duration(), status)
	}
	return b.String()
}
