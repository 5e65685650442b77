package webhook

import (
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// MaxAttempts is how many of its last attempts a delivery keeps.
	MaxAttempts = 12
	// MaxResponseBody is how many bytes of a response body it keeps.
	MaxResponseBody = 1 << 10

	// MaxRetryCount is the most retries that an endpoint can ask for, and
	// the length of the schedule.
	MaxRetryCount = 10
	// MaxRetryAfter cuts a receiver's Retry-After. The longer of it and the
	// schedule's wait counts.
	MaxRetryAfter = 12 * time.Hour
	// MaxMessageWait is the longest wait that a queue message covers; a longer
	// one has a due mark, which the sweeper looks at.
	MaxMessageWait = 15 * time.Minute

	jitterSpan = 0.2
)

// Attempt is one request to an endpoint.
type Attempt struct {
	At             value.Time `json:"at" doc:"When it began."`
	DurationMs     int64      `json:"durationMs" doc:"The duration in milliseconds."`
	ResponseStatus *int       `json:"responseStatus" doc:"null if there was no response."`
	ResponseBody   *string    `json:"responseBody" doc:"The first KiB of the response body. null in lists, without a response, and without the read scope of the record's kind."`
	Error          *string    `json:"error" doc:"The error. null if it was answered 2xx."`
}

// Duration is how long the attempt took.
func (a *Attempt) Duration() time.Duration { return time.Duration(a.DurationMs) * time.Millisecond }

// End is when the attempt ended.
func (a *Attempt) End() value.Time { return a.At.Add(a.Duration()) }

// ClipBody returns the start of a response body as text: bytes that are not
// UTF-8 are replaced, and at most [MaxResponseBody] bytes are kept.
func ClipBody(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), 2*MaxResponseBody)]), "\uFFFD")
	return clip(text, MaxResponseBody)
}

// clip keeps the start of a text, whole characters of it.
func clip(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// AttemptResult is what an attempt means for its delivery.
type AttemptResult uint8

// The results of attempts.
const (
	AttemptSucceeded AttemptResult = iota
	AttemptFailed                  // to be tried again while retries are left
	AttemptRefused                 // failed for good
)

// Outcome is an attempt with its result.
type Outcome struct {
	Attempt    Attempt
	Result     AttemptResult
	RetryAfter time.Duration // the receiver's wish; 0 when it has none
}

// RetryDelay is the wait before the retry of that number, from 1: 5 s,
// 1 min, 10 min, 1 h, 4 h, 12 h, 24 h, then 31 h, and up to a fifth longer as
// random, in [0,1), says. The default of eight retries thus spans 72 h at least,
// more than a weekend.
func RetryDelay(retry int, random float64) time.Duration {
	steps := [...]time.Duration{
		5 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 31 * time.Hour,
	}
	step := steps[min(max(retry, 1), len(steps))-1]
	return time.Duration(float64(step) * (1 + jitterSpan*random))
}
