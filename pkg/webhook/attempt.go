package webhook

import (
	"cmp"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// MaxAttempts is how many of its last attempts a delivery keeps.
	MaxAttempts = 12
	// MaxResponseBody is how many bytes of a response body it keeps, and
	// MaxSuccessBody how many of one that came with 2xx.
	MaxResponseBody = 1 << 10
	MaxSuccessBody  = 200
	// MaxKeptText is how many bytes it keeps of an attempt's URL, of the names of the
	// endpoint's own headers and of the response's headers, each.
	MaxKeptText = 300
	// successRoom is how many bytes the texts of an attempt that was answered 2xx take
	// in the delivery's JSON: with one such attempt a delivery costs one write unit, 1 KB.
	successRoom = 300

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

// Attempt is one request to an endpoint. What follows from the delivery is not
// kept: [Delivery.ShowExchanges] adds it.
type Attempt struct {
	At              value.Time        `json:"at"` // when it began
	DurationMs      int64             `json:"durationMs"`
	URL             string            `json:"url,omitzero"`        // as it was asked; "": that of the attempt before
	Signature       string            `json:"signature,omitzero"`  // the header; "" where none was sent
	OwnHeaders      []string          `json:"ownHeaders,omitzero"` // the names of the endpoint's own
	ResponseStatus  *int              `json:"responseStatus,omitzero"`
	ResponseHeaders map[string]string `json:"responseHeaders,omitzero"`
	ResponseBody    *string           `json:"responseBody,omitzero"`
	Error           *string           `json:"error,omitzero"`
}

// Duration is how long the attempt took.
func (a *Attempt) Duration() time.Duration { return time.Duration(a.DurationMs) * time.Millisecond }

// End is when the attempt ended.
func (a *Attempt) End() value.Time { return a.At.Add(a.Duration()) }

// Exchange is what an attempt sent and what came back.
type Exchange struct {
	URL        string
	Signature  string   // the header; "" where none was sent
	OwnHeaders []string // the names of the endpoint's own
	Status     int      // 0: there was no response
	Header     http.Header
	Body       []byte
}

// Success reports whether the response was a 2xx.
func (x *Exchange) Success() bool { return x.Status >= 200 && x.Status <= 299 }

// Keep returns the attempt with what is kept of the exchange: the start of the URL and
// of the body, and whole headers in the order of their names as long as there is room.
func (x *Exchange) Keep(at value.Time, took time.Duration) Attempt {
	t, maxBody := texts{room: math.MaxInt}, MaxResponseBody
	if x.Success() {
		t.room, maxBody = successRoom, MaxSuccessBody
	}
	a := Attempt{At: at, DurationMs: took.Milliseconds(), Signature: t.start(x.Signature, math.MaxInt), URL: t.start(x.URL, MaxKeptText)}
	limit := MaxKeptText
	for _, name := range x.OwnHeaders {
		if t.fit(&limit, name) {
			a.OwnHeaders = append(a.OwnHeaders, name)
		}
	}
	if x.Status == 0 {
		return a
	}
	body := t.start(string(x.Body[:min(len(x.Body), 2*maxBody)]), maxBody)
	a.ResponseStatus, a.ResponseBody, a.ResponseHeaders = new(x.Status), &body, map[string]string{}
	limit = MaxKeptText
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		line := strings.ToValidUTF8(strings.Join(x.Header[name], ", "), "\uFFFD")
		if name == "Set-Cookie" || name == "Authentication-Info" { // as secret as what the endpoint signs in with
			line = "****"
		}
		if t.fit(&limit, name, line) {
			a.ResponseHeaders[name] = line
		}
	}
	return a
}

// texts are texts that an attempt keeps.
type texts struct{ room int } // left for their JSON

// start takes the start of a text, whole characters and at most limit bytes of it. It
// replaces what is not UTF-8.
func (t *texts) start(text string, limit int) string {
	text = clip(strings.ToValidUTF8(text, "\uFFFD"), limit)
	for text != "" && jsonSize(text) > t.room {
		text = clip(text, len(text)-1)
	}
	t.room -= jsonSize(text)
	return text
}

// fit takes texts if there is room for them, also within the limit.
func (t *texts) fit(limit *int, whole ...string) bool {
	size := jsonSize(whole...)
	if size > min(t.room, *limit) {
		return false
	}
	t.room, *limit = t.room-size, *limit-size
	return true
}

// jsonSize is how many bytes texts take in JSON, each with what separates it from the next.
func jsonSize(texts ...string) (size int) {
	for _, text := range texts {
		quoted, _ := jsontext.AppendQuote(nil, text) // an error tells that it replaced what is not UTF-8
		size += len(quoted) + 1
	}
	return size
}

// clip keeps the start of a text, whole characters of it.
func clip(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// appendAttempt adds an attempt to the last ones, which it leaves as they are. An attempt
// has its URL where the one before it has another.
func appendAttempt(last []Attempt, a Attempt) []Attempt {
	kept := append(slices.Clone(last), a)
	for i := 1; i < len(kept); i++ {
		kept[i].URL = cmp.Or(kept[i].URL, kept[i-1].URL)
	}
	kept = kept[max(0, len(kept)-MaxAttempts):]
	for i := len(kept) - 1; i > 0; i-- {
		if kept[i].URL == kept[i-1].URL {
			kept[i].URL = ""
		}
	}
	return kept
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
