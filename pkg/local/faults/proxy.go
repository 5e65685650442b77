package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Config holds what New may be told. Its zero value is usable and fails
// nothing.
type Config struct {
	Seed uint64
	// Rates are those of every operation, unless Operations names it.
	Rates      Rates
	Operations map[string]Rates

	MaxDelay time.Duration    // of Delay, default 100 ms
	MaxHang  time.Duration    // of Timeout, default 30 s
	Stale    time.Duration    // how far back a stale read goes, default 1 s
	Clock    func() time.Time // what Stale is measured by, default time.Now
}

// Proxy stands in front of a server. It is safe for concurrent use.
type Proxy struct {
	target    *url.URL
	transport *http.Transport
	cfg       Config
	counter   counter
	past      *past
	closing   chan struct{} // ends what hangs
	closeOnce sync.Once

	mu         sync.Mutex // guards what follows
	on         bool
	rates      Rates
	operations map[string]Rates
	clients    map[string]*Client
	server     *http.Server
	address    string
}

// maxBody bounds a request in bytes, as DynamoDB does.
const maxBody = 16 << 20

// New returns a proxy, switched on, in front of the server at the URL.
func New(target string, cfg Config) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("fault proxy in front of %q: not the URL of a server", target)
	}
	if cfg.MaxDelay == 0 {
		cfg.MaxDelay = 100 * time.Millisecond
	}
	if cfg.MaxHang == 0 {
		cfg.MaxHang = 30 * time.Second
	}
	if cfg.Stale == 0 {
		cfg.Stale = time.Second
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	p := &Proxy{
		target: u, cfg: cfg, closing: make(chan struct{}), on: true,
		transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		rates:     maps.Clone(cfg.Rates), operations: maps.Clone(cfg.Operations), clients: map[string]*Client{},
	}
	if p.operations == nil {
		p.operations = map[string]Rates{}
	}
	p.past = newPast(cfg.Stale, cfg.Clock)
	return p, nil
}

// Start serves on the address, such as 127.0.0.1:0, until Close.
func (p *Proxy) Start(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("start the fault proxy: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address = listener.Addr().String()
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go p.server.Serve(listener) //nolint:errcheck // it ends by Close
	return nil
}

// Endpoint is the URL for the SDK's BaseEndpoint of the named client, once
// the proxy has been started.
func (p *Proxy) Endpoint(client string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "http://" + p.address + "/" + client
}

// Close ends what hangs and, when the proxy was started, its server.
func (p *Proxy) Close() error {
	p.closeOnce.Do(func() { close(p.closing) })
	p.mu.Lock()
	server := p.server
	p.mu.Unlock()
	p.transport.CloseIdleConnections()
	if server == nil {
		return nil
	}
	return server.Close()
}

// On lets faults happen.
func (p *Proxy) On() { p.switchTo(true) }

// Off lets everything through, except what a crashed client sends.
func (p *Proxy) Off() { p.switchTo(false) }

func (p *Proxy) switchTo(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

// SetRates replaces the rates of all operations, those set for single ones
// too.
func (p *Proxy) SetRates(rates Rates) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rates, p.operations = maps.Clone(rates), map[string]Rates{}
}

// SetOperation replaces the rates of one operation, such as "Query".
func (p *Proxy) SetOperation(operation string, rates Rates) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.operations[operation] = maps.Clone(rates)
}

// Counts says what has been injected so far.
func (p *Proxy) Counts() Counts { return p.counter.read() }

// Client returns the client of the name; the client of an endpoint without a
// name is "".
func (p *Proxy) Client(name string) *Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[name]
	if c == nil {
		c = newClient(p.cfg.Seed, name)
		p.clients[name] = c
	}
	return c
}

// ratesOf returns the rates that hold for an operation, and whether reads
// may be stale at all, so that the past is to be kept.
func (p *Proxy) ratesOf(op string) (rates Rates, remember bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on {
		return nil, false
	}
	remember = p.rates[StaleRead] > 0
	for _, r := range p.operations {
		remember = remember || r[StaleRead] > 0
	}
	if r, own := p.operations[op]; own {
		return r, remember
	}
	return p.rates, remember
}

// ServeHTTP does one request of the protocol.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	client := p.Client(name)
	_, op, _ := strings.Cut(r.Header.Get(headerTarget), ".")
	o, known := operations[op]
	client.pass(r.Context(), p.closing)
	if !client.admit(o) {
		panic(http.ErrAbortHandler)
	}
	if !known || strings.HasPrefix(r.Header.Get(headerTarget), "DynamoDBStreams") {
		p.forward(r.Context(), r.Method, r.Header, body).send(w, false)
		return
	}
	p.counter.request(op)
	rates, remember := p.ratesOf(op)
	request := &request{proxy: p, header: r.Header, op: op, o: o, body: body, remember: remember}
	request.plan = client.plan(o, rates)
	request.serve(r.Context(), w)
}

// forward hands a request to the server. A server that cannot be reached
// looks to the client as it would without the proxy: the connection ends.
func (p *Proxy) forward(ctx context.Context, method string, header http.Header, body []byte) *answer {
	a, err := p.try(ctx, method, header, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return a
}

func (p *Proxy) try(ctx context.Context, method string, header http.Header, body []byte) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.target.JoinPath("/").String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	r.Header.Del("Connection")
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := p.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: content}, nil
}

// request is one request on its way.
type request struct {
	proxy    *Proxy
	header   http.Header
	op       string
	o        operation
	body     []byte
	remember bool
	plan     plan
}

func (q *request) count(f Fault) { q.proxy.counter.injected(f, q.op) }

func (q *request) serve(ctx context.Context, w http.ResponseWriter) {
	if q.plan.also[Delay] {
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

// refuse answers, or cuts the connection, where nothing is to be done; nil
// where something is.
func (q *request) refuse(ctx context.Context) *answer {
	switch q.plan.end {
	case LostRequest:
		q.count(LostRequest)
		panic(http.ErrAbortHandler)
	case Timeout:
		q.count(Timeout)
		q.wait(ctx, q.proxy.cfg.MaxHang)
		panic(http.ErrAbortHandler)
	case Throttle:
		q.count(Throttle)
		return throttled(q.o, q.body, q.plan.coin)
	case InternalError:
		q.count(InternalError)
		return internalError()
	case Conflict:
		q.count(Conflict)
		return conflicting(q.o, q.body, q.plan.coin)
	default:
		return nil
	}
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

// do has the server do the request, or a part of it, and answers what it
// answers, or what it would have answered a moment ago.
func (q *request) do(ctx context.Context) *answer {
	if q.plan.also[Unprocessed] && q.o.statements {
		return q.doStatements(ctx)
	}
	body, undone := q.body, object(nil)
	if q.plan.also[Unprocessed] {
		if rest, left := split(q.body, q.o.writes, q.plan.coin); left != nil {
			body, undone = rest, left
		}
	}
	a := q.forward(ctx, body)
	if a.ok() && undone != nil {
		if full, err := addUndone(a.body, q.o.writes, undone); err == nil {
			q.count(Unprocessed)
			a.setBody(full)
		}
	}
	return a
}

// doStatements has the server do some of a batch's statements; the others
// fail.
func (q *request) doStatements(ctx context.Context) *answer {
	rest, errors := failing(q.body, q.plan.coin)
	if errors == nil {
		return q.forward(ctx, q.body)
	}
	a := noStatement()
	if rest != nil {
		a = q.forward(ctx, rest)
	}
	if a.ok() {
		if full, err := addErrors(a.body, errors); err == nil {
			q.count(Unprocessed)
			a.setBody(full)
		}
	}
	return a
}

// forward hands the request to the server. A write that has been handed over
// is done even when the client is gone meanwhile.
func (q *request) forward(ctx context.Context, body []byte) *answer {
	if !q.o.writes {
		a := q.proxy.forward(ctx, http.MethodPost, q.header, body)
		if q.plan.also[StaleRead] && a.ok() && q.age(ctx, body, a) {
			q.count(StaleRead)
		}
		return a
	}
	ctx = context.WithoutCancel(ctx)
	if !q.remember {
		return q.proxy.forward(ctx, http.MethodPost, q.header, body)
	}
	finish := q.keep(ctx, body)
	var a *answer
	defer func() { finish(a) }()
	a = q.proxy.forward(ctx, http.MethodPost, q.header, body)
	return a
}
