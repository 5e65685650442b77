package webhook

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/value"
)

// Bounds of what a row remembers of its attempts.
const (
	MaxAttempts     = 12      // the last ones
	MaxResponseBody = 1 << 10 // bytes
)

// Attempt is one request to an endpoint.
type Attempt struct {
	At             value.Time `json:"at"`
	DurationMs     int64      `json:"durationMs" doc:"How long it took, in milliseconds."`
	ResponseStatus *int       `json:"responseStatus" doc:"null: there was no response."`
	ResponseBody   *string    `json:"responseBody" doc:"The first KiB of it. null in lists, and without a response."`
	Error          *string    `json:"error" doc:"Why it failed. null: it was answered 2xx."`
}

// Duration is how long the attempt took.
func (a Attempt) Duration() time.Duration { return time.Duration(a.DurationMs) * time.Millisecond }

// ClipBody returns the start of a response body as text: what is not UTF-8
// is replaced, and at most [MaxResponseBody] bytes are kept.
func ClipBody(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), 2*MaxResponseBody)]), "\uFFFD")
	if len(text) <= MaxResponseBody {
		return text
	}
	cut := MaxResponseBody
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// Verdict is what an attempt's outcome means for its row.
type AttemptResult uint8

// The verdicts.
const (
	AttemptSucceeded AttemptResult = iota
	AttemptFailed                  // to be tried again while retries are left
	AttemptRefused                 // failed for good
)

// Outcome is an attempt with what it means.
type Outcome struct {
	Attempt    Attempt
	Result     AttemptResult
	RetryAfter time.Duration // the receiver's wish; 0 when it has none
}
