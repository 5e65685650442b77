package webhook

import "github.com/commerce-integration/service/pkg/value"

// Counters are what an endpoint counts. A success is an attempt answered
// 2xx, a failure an attempt that was not.
type Counters struct {
	SuccessCount      int64
	FailureCount      int64
	LastSuccessAt     *value.Time
	LastFailureAt     *value.Time
	LastFailureReason *string // of the failure at LastFailureAt; stays after a success
}

// Count adds one attempt, which counts at its end.
func (c *Counters) Count(a Attempt) {
	at := a.At.Add(a.Duration())
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
