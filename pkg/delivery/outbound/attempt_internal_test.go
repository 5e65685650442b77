package outbound

import (
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"
)

// A request that was given another connection than the one dialled for it
// is not thrown back by that dial; one that is sent again starts anew.
func TestAttemptGoesForwardUntilItIsSentAgain(t *testing.T) {
	ctx, a := begin(t.Context())
	trace := httptrace.ContextClientTrace(ctx)
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"begins", func() {}, "waiting for a connection"},
		{"dials", func() { attemptOf(ctx).enter(resolving) }, "resolving the name"},
		{"gets a kept connection", func() { trace.GotConn(httptrace.GotConnInfo{Reused: true}) }, "sending the request"},
		{"the dial goes on", func() { attemptOf(ctx).enter(handshaking) }, "sending the request"},
		{"is written", func() { trace.WroteRequest(httptrace.WroteRequestInfo{}) }, "waiting for headers"},
		{"is sent again", func() { trace.GetConn("") }, "waiting for a connection"},
		{"dials again", func() { attemptOf(ctx).enter(connecting) }, "connecting"},
	} {
		step.do()
		if got := a.at().String(); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "-5": 0, "1.5": 0,
		now.Add(time.Hour).Format(http.TimeFormat):  time.Hour,
		now.Add(-time.Hour).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("Retry-After %q: %s, want %s", header, got, want)
		}
	}
}
