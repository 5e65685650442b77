package webhook

import (
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// RecentSpan is the time that [Health.Recent] looks back on.
	RecentSpan = 5 * time.Minute
	// SlowAttempt is the time past which an attempt is slow.
	SlowAttempt = 2 * time.Second
)

// Counters are what an endpoint counts. A success is an attempt answered
// 2xx, a failure any other attempt.
type Counters struct {
	SuccessCount      int64
	FailureCount      int64
	LastSuccessAt     *value.Time
	LastFailureAt     *value.Time
	LastFailureReason *string // of the failure at LastFailureAt; stays after a success
}

// Count adds one attempt, which counts at its end.
func (c *Counters) Count(a Attempt) {
	at := a.End()
	if a.Error == nil {
		c.merge(&Counters{SuccessCount: 1, LastSuccessAt: &at})
		return
	}
	c.merge(&Counters{FailureCount: 1, LastFailureAt: &at, LastFailureReason: a.Error})
}

// merge adds what another counted. Of failures of the same millisecond the
// other's is the last.
func (c *Counters) merge(o *Counters) {
	c.SuccessCount += o.SuccessCount
	c.FailureCount += o.FailureCount
	if !before(o.LastSuccessAt, c.LastSuccessAt) {
		c.LastSuccessAt = o.LastSuccessAt
	}
	if !before(o.LastFailureAt, c.LastFailureAt) {
		c.LastFailureAt, c.LastFailureReason = o.LastFailureAt, o.LastFailureReason
	}
}

// before reports whether a lies before b; nil lies before every time.
func before(a, b *value.Time) bool { return b != nil && (a == nil || *a < *b) }

// FailureRun is failed attempts in a row, in the order in which they were
// recorded. Start and Last are when the earliest and the latest of them ended.
type FailureRun struct {
	Count       int
	Start, Last value.Time
}

func (r *FailureRun) merge(o FailureRun) {
	if r.Count == 0 {
		*r = o
		return
	}
	r.Count += o.Count
	r.Start, r.Last = min(r.Start, o.Start), max(r.Last, o.Last)
}

// Recent counts the attempts of the last five minutes.
type Recent struct {
	Attempts int
	Failed   int
	Slow     int // took over [SlowAttempt], failed or not
}

// Health is how an endpoint does, by all of its counter shards.
type Health struct {
	Counters Counters // since the endpoint was created
	// LastSuccessAt is when the last success was recorded, which is a moment
	// after its attempt ended; 0 when there was none.
	LastSuccessAt value.Time
	// Since is the time from which attempts count for Run and Recent.
	Since  value.Time
	Run    FailureRun
	Recent Recent
}

// Add adds an attempt that this process recorded at now to a health that it
// has read.
func (h *Health) Add(a *Attempt, now value.Time) {
	h.Recent.Attempts++
	if a.Duration() > SlowAttempt {
		h.Recent.Slow++
	}
	if a.Error == nil {
		h.LastSuccessAt, h.Run = max(now, h.LastSuccessAt), FailureRun{}
		return
	}
	h.Recent.Failed++
	h.Run.merge(FailureRun{Count: 1, Start: a.End(), Last: a.End()})
}

// HealthOf joins the counter shards of an endpoint as they are at now.
// Counters are of its whole life; for Run and Recent only attempts count that
// ended since.
//
// With one writer Run is exact. With several it is, as far as their clocks
// agree, never longer than the failures recorded since the last success: a
// run that may have begun before another writer's success does not count
// until its writer, who learns of the success, begins it anew. Recent counts
// everything of the last four minutes and nothing that is older than five.
func HealthOf(shards []*CounterShard, since, now value.Time) Health {
	h := Health{Since: since}
	for i, s := range shards {
		h.Counters.merge(&s.counters)
		h.LastSuccessAt = max(h.LastSuccessAt, s.succeeded)
		if s.run.Count > 0 && s.run.Start >= since && s.run.recorded > othersSucceeded(shards, i) {
			h.Run.merge(s.run.FailureRun)
		}
		for _, c := range s.cells {
			if c.start > now.Add(-RecentSpan) && c.start >= since {
				h.Recent.Attempts += int(c.attempts)
				h.Recent.Failed += int(c.failed)
				h.Recent.Slow += int(c.slow)
			}
		}
	}
	return h
}

func othersSucceeded(shards []*CounterShard, except int) value.Time {
	var last value.Time
	for i, s := range shards {
		if i != except {
			last = max(last, s.succeeded)
		}
	}
	return last
}
