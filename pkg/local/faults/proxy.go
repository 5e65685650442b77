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
	"slices"
	"strings"
	"sync"
	"time"
)

// Config is what New may be told. Its zero value is usable and fails nothing.
type Config struct {
	Seed uint64
	// Rates are those of every operation that Operations does not name.
	Rates      Rates
	Operations map[string]Rates

	MaxDelay time.Duration // of Delay, default 100 ms
	MaxHang  time.Duration // of Timeout, default 30 s
}

// Proxy stands in front of a server. It is safe for concurrent use.
type Proxy struct {
	target    *url.URL
	transport *http.Transport
	cfg       Config
	closing   chan struct{} // closed to end the requests that hang
	closeOnce sync.Once

	mu         sync.Mutex // guards what follows
	on         bool
	rates      Rates
	operations map[string]Rates
	clients    map[string]*client
	counts     Counts
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
	p := &Proxy{
		target: u, cfg: cfg, closing: make(chan struct{}), on: true,
		transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		rates:     maps.Clone(cfg.Rates), operations: map[string]Rates{}, clients: map[string]*client{},
		counts: Counts{Requests: map[string]int{}, Injected: map[Fault]map[string]int{}},
	}
	maps.Copy(p.operations, cfg.Operations)
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
func (p *Proxy) On() { p.set(func() { p.on = true }) }

// Off lets everything through.
func (p *Proxy) Off() { p.set(func() { p.on = false }) }

// SetRates replaces the rates of all operations, those set for single ones
// too.
func (p *Proxy) SetRates(rates Rates) {
	p.set(func() { p.rates, p.operations = maps.Clone(rates), map[string]Rates{} })
}

// SetOperation replaces the rates of one operation, such as "Query".
func (p *Proxy) SetOperation(operation string, rates Rates) {
	p.set(func() { p.operations[operation] = maps.Clone(rates) })
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// client returns the client of a name, "" for an endpoint without one.
func (p *Proxy) client(name string) *client {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[name]
	if c == nil {
		c = newClient(p.cfg.Seed, name)
		p.clients[name] = c
	}
	return c
}

// ratesOf counts a request of the operation and returns its rates.
func (p *Proxy) ratesOf(op string) Rates {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Requests[op]++
	if !p.on {
		return nil
	}
	if r, own := p.operations[op]; own {
		return r
	}
	return p.rates
}

// Counts says what went through a proxy, by operation.
type Counts struct {
	Requests map[string]int           // those that work on items
	Injected map[Fault]map[string]int // faults that changed what the client saw
}

// Counts says what has been injected so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := Counts{Requests: maps.Clone(p.counts.Requests), Injected: map[Fault]map[string]int{}}
	for f, by := range p.counts.Injected {
		out.Injected[f] = maps.Clone(by)
	}
	return out
}

// Of sums a fault over all operations.
func (c Counts) Of(f Fault) (sum int) {
	for _, n := range c.Injected[f] {
		sum += n
	}
	return sum
}

// String lists the counts in one line per fault.
func (c Counts) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "requests: %v\n", c.Requests)
	for _, f := range slices.Sorted(maps.Keys(c.Injected)) {
		fmt.Fprintf(&b, "%s: %v\n", f, c.Injected[f])
	}
	return b.String()
}

// ServeHTTP does one request of the protocol.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	service, op, _ := strings.Cut(r.Header.Get(headerTarget), ".")
	o, known := operations[op]
	if !known || strings.HasPrefix(service, "DynamoDBStreams") {
		p.forward(r.Context(), r.Header, body).send(w, false)
		return
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := &request{proxy: p, header: r.Header, op: op, o: o, body: body, plan: p.client(name).plan(o, p.ratesOf(op))}
	q.serve(r.Context(), w)
}

// forward hands a request to the server. A server that cannot be reached
// looks to the client as it would without the proxy: the connection ends.
func (p *Proxy) forward(ctx context.Context, header http.Header, body []byte) *answer {
	a, err := p.try(ctx, header, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return a
}

func (p *Proxy) try(ctx context.Context, header http.Header, body []byte) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.target.JoinPath("/").String(), bytes.NewReader(body))
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
