package faults

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// client is one of the clients that the proxy tells apart, such as one process
// of several, with random numbers of its own.
type client struct {
	mu     sync.Mutex
	random *rand.Rand
}

func newClient(seed uint64, name string) *client {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &client{random: rand.New(rand.NewPCG(seed, h.Sum64()))} //nolint:gosec // faults are to repeat
}

// plan is what befalls one request.
type plan struct {
	end             Fault // the fault that ends it, "" for none
	delayed, partly bool
	coin            *rand.Rand // for what the faults leave open
}

// plan draws. It takes the same numbers from the source whatever the rates
// and the operation are, so that one rate more does not change all the rest.
func (c *client) plan(o operation, rates Rates) plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := plan{coin: rand.New(rand.NewPCG(c.random.Uint64(), 0))} //nolint:gosec // as above
	for _, f := range All() {
		hit := c.random.Float64() < rates[f] && o.can(f)
		switch {
		case !hit:
		case f == Delay:
			p.delayed = true
		case f == Unprocessed:
			p.partly = true
		case p.end == "":
			p.end = f
		}
	}
	return p
}

// request is one request on its way.
type request struct {
	proxy  *Proxy
	header http.Header
	op     string
	o      operation
	body   []byte
	plan   plan
}

func (q *request) count(f Fault) {
	p := q.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts.Injected[f] == nil {
		p.counts.Injected[f] = map[string]int{}
	}
	p.counts.Injected[f][q.op]++
}

func (q *request) serve(ctx context.Context, w http.ResponseWriter) {
	if q.plan.delayed {
		q.count(Delay)
		q.wait(ctx, time.Duration(q.plan.coin.Int64N(int64(q.proxy.cfg.MaxDelay))))
	}
	if a := q.refuse(ctx); a != nil {
		a.send(w, false)
		return
	}
	a := q.do(ctx)
	switch {
	case q.plan.end == FalseError && a.ok():
		q.count(FalseError)
		internalError().send(w, false)
	case q.plan.end == LostAnswer:
		q.count(LostAnswer)
		if q.plan.coin.IntN(2) == 0 {
			panic(http.ErrAbortHandler)
		}
		a.send(w, true)
	default:
		a.send(w, false)
	}
}

// refuse answers or cuts the connection when the plan's fault comes before the
// server does anything; otherwise it returns nil.
func (q *request) refuse(ctx context.Context) *answer {
	switch q.plan.end {
	case LostRequest, Timeout, Throttle, InternalError, Conflict:
		q.count(q.plan.end)
	}
	switch q.plan.end {
	case Timeout:
		q.wait(ctx, q.proxy.cfg.MaxHang)
		panic(http.ErrAbortHandler)
	case LostRequest:
		panic(http.ErrAbortHandler)
	case Throttle:
		return throttled(q.o, q.body, q.plan.coin)
	case InternalError:
		return internalError()
	case Conflict:
		return conflicting(q.o, q.body, q.plan.coin)
	}
	return nil
}

// wait holds the request, and drops it when the client or the proxy is gone.
func (q *request) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		panic(http.ErrAbortHandler)
	case <-q.proxy.closing:
		panic(http.ErrAbortHandler)
	}
}

// do has the server do the request, or a part of a batch.
func (q *request) do(ctx context.Context) *answer {
	rest, complete := q.body, (func([]byte) ([]byte, error))(nil)
	if q.plan.partly {
		rest, complete = split(q.body, q.o, q.plan.coin)
	}
	var a *answer
	switch {
	case complete == nil:
		return q.forward(ctx, q.body)
	case rest == nil:
		a = answerWith(http.StatusOK, map[string]any{"Responses": []any{}})
	default:
		a = q.forward(ctx, rest)
	}
	if a.ok() {
		if full, err := complete(a.body); err == nil {
			q.count(Unprocessed)
			a.setBody(full)
		}
	}
	return a
}

// forward hands the request to the server. A write that has been handed over
// is done even when the client is gone meanwhile.
func (q *request) forward(ctx context.Context, body []byte) *answer {
	if q.o.writes {
		ctx = context.WithoutCancel(ctx)
	}
	return q.proxy.forward(ctx, q.header, body)
}
