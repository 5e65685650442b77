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

// Count adds one attempt, which counts at its end. Of failures of the same
// millisecond the one counted later is the last.
func (c *Counters) Count(a Attempt) {
	at := a.End()
	if a.Error == nil {
		c.SuccessCount++
		if !before(&at, c.LastSuccessAt) {
			c.LastSuccessAt = &at
		}
		return
	}
	c.FailureCount++
	if !before(&at, c.LastFailureAt) {
		c.LastFailureAt, c.LastFailureReason = &at, a.Error
	}
}

// before reports whether a lies before b; nil lies before every time.
func before(a, b *value.Time) bool { return b != nil && (a == nil || *a < *b) }

// FailureRun is failed attempts in a row, in the order in which they were
// counted. Start and Last are when the earliest and the latest of them ended.
type FailureRun struct {
	Count       int
	Start, Last value.Time
}

// add adds a failure that ended at the time.
func (r *FailureRun) add(at value.Time) {
	if r.Count == 0 {
		r.Start, r.Last = at, at
	}
	r.Count++
	r.Start, r.Last = min(r.Start, at), max(r.Last, at)
}

// Recent counts the attempts of the last five minutes.
type Recent struct {
	Attempts int
	Failed   int
	Slow     int // took over [SlowAttempt], failed or not
}

// Health is how an endpoint does.
type Health struct {
	Counters Counters // since the endpoint was created
	Run      FailureRun
	Recent   Recent
}
