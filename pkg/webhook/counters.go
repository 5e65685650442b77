package webhook

import "github.com/commerce-integration/service/pkg/value"

// Counters are what an endpoint counts. A success is an attempt answered
// 2xx, a failure an attempt that was not.
type Counters struct {
	SuccessCount      int64
	FailureCount      int64
	LastSuccessAt     *value.Time
	LastFailureAt     *value.Time
	LastFailureReason *string // stays after a success
}

// Count adds one attempt.
func (c *Counters) Count(a Attempt) {
	at := a.At.Add(a.Duration())
	if a.Error == nil {
		c.SuccessCount++
		c.LastSuccessAt = later(c.LastSuccessAt, at)
		return
	}
	c.FailureCount++
	c.LastFailureAt, c.LastFailureReason = later(c.LastFailureAt, at), a.Error
}

func later(t *value.Time, at value.Time) *value.Time {
	if t != nil && *t > at {
		return t
	}
	return &at
}
