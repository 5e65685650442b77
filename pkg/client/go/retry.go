package commerce

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// defaultRetries is how often a request is repeated unless Config says otherwise.
const defaultRetries = 4

// firstWait is how long the first repetition waits without Retry-After.
const firstWait = 500 * time.Millisecond

// retrier repeats requests as Config.Retries says.
type retrier struct {
	next    http.RoundTripper
	retries int
}

func newRetrier(next http.RoundTripper, retries int) *retrier {
	if next == nil {
		next = http.DefaultTransport
	}
	return &retrier{next: next, retries: max(0, cmp.Or(retries, defaultRetries))}
}

// RoundTrip is that of an http.RoundTripper.
func (r *retrier) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	for repeated := 0; ; repeated++ {
		attempt := request.Clone(ctx)
		if request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			attempt.Body = body
		}
		response, err := r.next.RoundTrip(attempt)
		wait, again := again(request.Method, response, repeated)
		deadline, bounded := ctx.Deadline()
		if !again || repeated >= r.retries || ctx.Err() != nil || bounded && time.Until(deadline) < wait {
			return response, err
		}
		if err == nil {
			discard(response)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// again reports whether a request is worth repeating, after how long. The response
// is nil when there was no answer.
func again(method string, response *http.Response, repeated int) (time.Duration, bool) {
	// Half of the wait is random, so that clients do not come back at once.
	wait := firstWait << repeated
	wait = wait/2 + rand.N(wait/2)
	if response == nil {
		return wait, method != http.MethodPatch
	}
	after, told := retryAfter(response.Header.Get("Retry-After"))
	if told {
		wait = after
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests:
		return wait, true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return wait, method != http.MethodPatch
	case http.StatusConflict: // while the first one of an Idempotency-Key runs
		return wait, told
	default:
		return 0, false
	}
}

// retryAfter reads seconds, or a date.
func retryAfter(text string) (time.Duration, bool) {
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(text)
	return max(0, time.Until(at)), err == nil
}
