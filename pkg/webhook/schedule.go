package webhook

import "time"

// Bounds of the schedule.
const (
	// MaxRetryCount is the most retries that an endpoint can ask for, and
	// the length of the schedule.
	MaxRetryCount = 10
	// MaxRetryAfter is how long a receiver's Retry-After is honoured.
	MaxRetryAfter = 12 * time.Hour
	// LongestCarry is the longest wait that a queue message is kept for; a
	// longer one is left to the sweeper.
	LongestCarry = 15 * time.Minute

	jitterSpan = 0.2
)

// RetryDelay is the wait before the retry of that number, from 1: 5 s,
// 1 min, 5 min, 30 min, 2 h, 5 h, then 10 h, moved by up to a fifth either
// way as random, in [0,1), says.
func RetryDelay(retry int, random float64) time.Duration {
	steps := [...]time.Duration{
		5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
	}
	step := steps[min(max(retry, 1), len(steps))-1]
	return time.Duration(float64(step) * (1 - jitterSpan + 2*jitterSpan*random))
}
