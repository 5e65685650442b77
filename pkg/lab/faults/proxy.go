package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/pause"
)

// Config is the faults of a proxy. Its zero value fails nothing.
type Config struct {
	Seed       uint64           // repeats the faults of requests that come one after the other
	Rates      Rates            // of every operation that Operations does not name
	Operations map[string]Rates // by name, such as Query
	Meter      *Meter           // counts what the server does; nil for none
	Delay      time.Duration    // of a request on items, on average; it varies from none to twice as much
}

// Install is an option of a client of a server that does not verify signatures, with the faults of a proxy and without one.
func (c Config) Install(o *dynamodb.Options) {
	o.HTTPClient = &http.Client{Transport: transport{newProxy(c)}}
}

// Proxy stands in front of a server. It is safe for concurrent use.
type Proxy struct {
	Config
	target  *url.URL
	inner   *http.Transport // to the target
	server  *http.Server
	address string

	mu     sync.Mutex // guards what follows, and the rates
	off    bool
	random *rand.Rand
	counts Counts
}

// Counts is what went through a proxy.
type Counts struct {
	Requests map[string]int // on items, by operation
	Injected map[Fault]int
}

// Of is how often a fault happened.
func (c Counts) Of(f Fault) int { return c.Injected[f] }

func (c Counts) String() string { return fmt.Sprintf("requests %v, faults %v", c.Requests, c.Injected) }

// New returns a proxy in front of the server at the URL.
func New(target string, cfg Config) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("fault proxy in front of %q: not the URL of a server", target)
	}
	p := newProxy(cfg)
	p.target = u
	return p, nil
}

func newProxy(cfg Config) *Proxy {
	p := &Proxy{Config: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0)), counts: Counts{map[string]int{}, map[Fault]int{}}}
	p.inner = &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	p.Operations = maps.Collect(maps.All(cfg.Operations))
	return p
}

// Start serves on an address, such as 127.0.0.1:0, until Close.
func (p *Proxy) Start(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("start the fault proxy: %w", err)
	}
	p.address = listener.Addr().String()
	server := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = p.target.Scheme, p.target.Host },
		Transport: transport{p},
		// A request that is lost ends its connection, as without the proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	go p.server.Serve(listener) //nolint:errcheck // it ends by Close
	return nil
}

// Endpoint is the URL for the SDK's BaseEndpoint.
func (p *Proxy) Endpoint() string { return "http://" + p.address }

// Close ends the server, and with their connections the requests that hang.
func (p *Proxy) Close() error { return p.server.Close() }

// On lets faults happen again after Off.
func (p *Proxy) On() { p.set(func() { p.off = false }) }

// Off lets everything through.
func (p *Proxy) Off() { p.set(func() { p.off = true }) }

// SetRates replaces the rates of all operations.
func (p *Proxy) SetRates(rates Rates) {
	p.set(func() { p.Rates, p.Operations = rates, map[string]Rates{} })
}

// SetOperation replaces the rates of one operation.
func (p *Proxy) SetOperation(operation string, rates Rates) {
	p.set(func() { p.Operations[operation] = rates })
}

// SetDelay replaces the delay of requests.
func (p *Proxy) SetDelay(delay time.Duration) { p.set(func() { p.Delay = delay }) }

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// Counts returns what has gone through so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Counts{maps.Clone(p.counts.Requests), maps.Clone(p.counts.Injected)}
}

// draw chooses what befalls a request, numbers for what the fault leaves open, and the request's delay.
func (p *Proxy) draw(op string) (Fault, *rand.Rand, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rates, own := p.Operations[op]
	switch {
	case p.off:
		rates = nil
	case !own:
		rates = p.Rates
	}
	f, coin := rates.draw(operations[op], p.random), rand.New(rand.NewPCG(p.random.Uint64(), 0)) //nolint:gosec // likewise
	p.counts.Requests[op]++
	if f != "" {
		p.counts.Injected[f]++
	}
	return f, coin, rand.N(2*p.Delay + 1) //nolint:gosec // chance, not secret
}

// transport makes the requests of a proxy, or has them fail.
type transport struct{ *Proxy }

var errLost = errors.New("lost by the fault proxy")

// RoundTrip makes one request of the protocol.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if _, known := operations[op]; !known {
		return t.forward(call{r, op, body, nil})
	}
	f, coin, delay := t.draw(op)
	if err := pause.For(r.Context(), delay); err != nil {
		return nil, err
	}
	return t.serve(call{r, op, body, coin}, f)
}

// call is a request on items.
type call struct {
	*http.Request
	op   string
	body []byte
	coin *rand.Rand // decides what the fault leaves open
}

// serve does a request as its fault demands.
func (t transport) serve(c call, f Fault) (*http.Response, error) {
	switch f {
	case LostRequest:
		return nil, errLost
	case Timeout:
		return nil, errors.Join(errLost, pause.For(c.Context(), time.Hour))
	case Throttle:
		return c.throttled(), nil
	case InternalError:
		return internalError(), nil
	case Conflict:
		return c.conflicting(), nil
	case Unprocessed:
		return t.partly(c)
	}
	a, err := t.forward(c)
	switch {
	case err != nil:
		return nil, err
	case f == LostAnswer:
		return nil, errors.Join(errLost, a.Body.Close())
	case f == FalseError && a.StatusCode == http.StatusOK:
		return internalError(), a.Body.Close()
	}
	return a, nil
}

// forward has the server do a request, also when the client is gone meanwhile.
func (t transport) forward(c call) (*http.Response, error) {
	body := t.Meter.ask(c.op, c.body)
	r := c.Clone(context.WithoutCancel(c.Context()))
	r.Header.Set("Accept-Encoding", "identity")
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	a, err := t.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(a.Body)
	if err := errors.Join(err, a.Body.Close()); err != nil {
		return nil, err
	}
	t.Meter.count(c.op, content)
	a.Body = io.NopCloser(bytes.NewReader(content))
	return a, nil
}
