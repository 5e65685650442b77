package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds of an exchange.
const (
	maxBody   = 64 << 10 // bytes read of an answer
	maxHeader = 64 << 10 // bytes of an answer's header
	// Many endpoints may share a host. A function may have 1,024 files open,
	// sockets among them.
	idlePerHost = 256
	idleTotal   = 768
	idleTimeout = 90 * time.Second
	keepAlive   = 30 * time.Second
)

// Kind says who caused an outcome.
type Kind uint8

// The kinds of outcome.
const (
	Answered  Kind = iota // the receiver answered; Status says what
	Failed                // the receiver could not be reached or did not answer properly
	Forbidden             // the target may never be asked
	Ours                  // we could not send: no attempt was made on the receiver's account
)

// Outcome is how a request ended.
type Outcome struct {
	Kind       Kind
	Status     int           // of an answer
	Header     http.Header   // of an answer
	Body       []byte        // its start, at most 64 KiB
	RetryAfter time.Duration // the answer's wish, 0 when it has none
	Took       time.Duration
	Reason     string // why it failed, for the target's owner; "" when answered in HTTP
	Err        error  // the cause, for our logs
}

// Config adapts a client to where it runs.
type Config struct {
	// AllowPrivateTargets permits addresses that are not globally routable,
	// and http. For local runs only.
	AllowPrivateTargets bool
	// RefusedPorts are not dialled at any address; nil is [RefusedPorts].
	RefusedPorts []uint16
	// Resolver finds the addresses of names; nil is the system's.
	Resolver Resolver
	// Clock is the time that certificates are checked against and that
	// attempts are measured by; nil is the system's.
	Clock func() time.Time
	// RootCAs replaces the system's certificate authorities.
	RootCAs *x509.CertPool
}

// guard is what the configuration lets through.
func (cfg *Config) guard() *guard {
	ports := cfg.RefusedPorts
	if ports == nil {
		ports = RefusedPorts()
	}
	return &guard{classifier: newClassifier(), ports: ports, allowPrivate: cfg.AllowPrivateTargets}
}

// errNoStatus is for a status that net/http lets through: three digits that
// are below any class.
var errNoStatus = errors.New("status below 100")

// Client sends requests. It is safe for concurrent use.
type Client struct {
	transport *http.Transport
	dialer    *dialer
	now       func() time.Time
}

// New makes a client.
func New(cfg Config) *Client {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	g := cfg.guard()
	socket := &net.Dialer{KeepAlive: keepAlive, Control: g.checkSocket}
	d := &dialer{
		resolver: cfg.Resolver, guard: g,
		tls: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs, Time: cfg.Clock, NextProtos: []string{"http/1.1"},
		},
		connect: func(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
			return socket.DialContext(ctx, "tcp", target.String())
		},
	}
	return &Client{transport: newTransport(d), dialer: d, now: cfg.Clock}
}

func newTransport(d *dialer) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil, // the environment must not redirect what we checked
		DialContext:            d.dial,
		DialTLSContext:         d.dialTLS,
		Protocols:              protocols,
		DisableCompression:     true, // a compressed answer stays as small as it came
		MaxIdleConns:           idleTotal,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// Post sends body to the target within timeout: resolution, connection,
// request and answer together. An outcome of kind [Ours] means that ctx ended
// first or that this host could not send.
func (c *Client) Post(ctx context.Context, target string, header http.Header, body []byte, timeout time.Duration) Outcome {
	start := c.now()
	out := c.post(ctx, target, header, body, timeout)
	out.Took = c.now().Sub(start)
	return out
}

func (c *Client) post(ctx context.Context, target string, header http.Header, body []byte, timeout time.Duration) Outcome {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	limited, attempt := begin(limited)
	req, err := http.NewRequestWithContext(limited, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return Outcome{Kind: Forbidden, Reason: "the URL is not valid", Err: errors.New("the URL is not valid")}
	}
	if err := c.refuse(req.URL); err != nil {
		return c.explain(ctx, err, attempt, timeout)
	}
	// Tells net/http that the request may be sent again when a kept
	// connection turns out to be closed; an empty list is not sent itself.
	req.Header["Idempotency-Key"] = nil
	maps.Copy(req.Header, header) // last: what the caller gives is sent
	// The transport alone knows neither redirects nor cookies.
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return c.explain(ctx, err, attempt, timeout)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 100 {
		return c.explain(ctx, errNoStatus, attempt, timeout)
	}
	return Outcome{
		Kind: Answered, Status: resp.StatusCode, Header: resp.Header, Body: read(resp),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), c.now()),
	}
}

// refuse looks at what may be asked without resolving it; it returns nil or
// a [*forbidden].
func (c *Client) refuse(u *url.URL) error {
	switch {
	case u.Hostname() == "" || u.Opaque != "":
		return &forbidden{"the URL is not valid"}
	case u.Scheme != "https" && (u.Scheme != "http" || !c.dialer.guard.allowPrivate):
		return &forbidden{"the URL must start with https://"}
	case u.User != nil:
		return &forbidden{"the URL must not contain a user name or password"}
	case u.Port() != "":
		return c.dialer.guard.checkPort(portOf(u.Port()))
	}
	return nil
}

// read takes the start of an answer's body. Its status has come already, so
// that a body that stalls until the deadline or never ends changes nothing
// but the connection, which is then closed instead of kept.
func read(resp *http.Response) []byte {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return nil // the transport lets go of the connection, and with it of the deadline
	case resp.Body == http.NoBody:
		return nil
	}
	start, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return start
}

// retryAfter reads seconds or an HTTP date.
func retryAfter(header string, now time.Time) time.Duration {
	if header == "" {
		return 0
	}
	if seconds, err := strconv.ParseInt(strings.TrimSpace(header), 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64((365*24*time.Hour).Seconds()))) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
