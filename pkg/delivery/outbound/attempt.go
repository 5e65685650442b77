package outbound

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// phase is how far a request came, in words that can follow "timed out after
// 15 s".
type phase uint32

const (
	starting phase = iota
	resolving
	connecting
	handshaking
	sending
	waiting
	reading
)

func (p phase) String() string {
	return [...]string{
		starting:    "waiting for a connection",
		resolving:   "resolving the name",
		connecting:  "connecting",
		handshaking: "waiting for the TLS handshake",
		sending:     "sending the request",
		waiting:     "waiting for headers",
		reading:     "reading the headers",
	}[p]
}

// attempt is one request on its way. The transport dials outside of a
// request's context, so that the attempt travels as one of its values.
type attempt struct {
	deadline time.Time // zero is none
	phase    atomic.Uint32
}

type attemptKey struct{}

// attemptOf never returns nil.
func attemptOf(ctx context.Context) *attempt {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a
	}
	return &attempt{}
}

// begin puts an attempt into the context of its request.
func begin(ctx context.Context) (context.Context, *attempt) {
	a := &attempt{}
	a.deadline, _ = ctx.Deadline()
	ctx = context.WithValue(ctx, attemptKey{}, a)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { a.phase.Store(uint32(starting)) },
		GotConn:              func(httptrace.GotConnInfo) { a.enter(sending) },
		WroteRequest:         func(httptrace.WroteRequestInfo) { a.enter(waiting) },
		GotFirstResponseByte: func() { a.enter(reading) },
	}), a
}

// enter moves on. A dial that goes on after the request has got another
// connection does not take it back.
func (a *attempt) enter(p phase) {
	for {
		now := a.phase.Load()
		if now >= uint32(p) || a.phase.CompareAndSwap(now, uint32(p)) {
			return
		}
	}
}

func (a *attempt) at() phase { return phase(a.phase.Load()) }

// bound ends the work for the attempt with it: the transport itself lets
// a dial go on when its request has ended.
func (a *attempt) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, a.deadline)
}
