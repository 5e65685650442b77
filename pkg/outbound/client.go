package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bounds of an exchange.
const (
	maxBody     = 64 << 10 // bytes read of an answer
	maxHeader   = 64 << 10 // bytes of an answer's header
	idlePerHost = 64
	idleTotal   = 1024
	idleTimeout = 90 * time.Second
	keepAlive   = 30 * time.Second
)

// Kind is whose doing an outcome is.
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
	Body       []byte        // its start, at most 64 KiB
	RetryAfter time.Duration // the answer's wish, 0 when it has none
	Took       time.Duration
	Reason     string // why it failed, for the target's owner; "" when answered
	Err        error  // the cause, for our logs
}

// Config adapts a client to where it runs.
type Config struct {
	// AllowPrivateTargets permits addresses that are not globally routable,
	// and http. For local runs only.
	AllowPrivateTargets bool
	// Clock is the time; nil is the system's.
	Clock func() time.Time
	// RootCAs replaces the system's certificate authorities.
	RootCAs *x509.CertPool
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	http         *http.Client
	allowPrivate bool
	now          func() time.Time
}

// New makes a client.
func New(cfg Config) *Client {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	dialer := &net.Dialer{KeepAlive: keepAlive}
	if !cfg.AllowPrivateTargets {
		dialer.Control = guard(newClassifier())
	}
	transport := &http.Transport{
		Proxy:                  nil, // the environment must not redirect what we checked
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a compressed answer stays as small as it came
		MaxIdleConns:           idleTotal,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
	return &Client{
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		allowPrivate: cfg.AllowPrivateTargets,
		now:          cfg.Clock,
	}
}

// forbiddenAddress is a resolved address that must not be dialled.
type forbiddenAddress struct {
	address netip.Addr
	class   string
}

func (e *forbiddenAddress) Error() string {
	return fmt.Sprintf("address %s is %s", e.address, e.class)
}

// guard refuses an address at the moment it is dialled: what the resolver
// answered before does not count.
func guard(c *classifier) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return fmt.Errorf("dial %s %s: not a TCP address", network, address)
		}
		if class := c.classify(target.Addr()); class != Public {
			return &forbiddenAddress{target.Addr(), class}
		}
		return nil
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
	if reason := c.refuse(target); reason != "" {
		return Outcome{Kind: Forbidden, Reason: reason, Err: errors.New(reason)}
	}
	attempt, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var phase progress
	req, err := http.NewRequestWithContext(phase.trace(attempt), http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return Outcome{Kind: Forbidden, Reason: "the URL is not valid", Err: err}
	}
	for name, values := range header {
		req.Header[name] = values
	}
	// Tells net/http that the request may be sent again when a kept
	// connection turns out to be closed; an empty list is not sent itself.
	req.Header["Idempotency-Key"] = nil
	resp, err := c.http.Do(req)
	if err != nil {
		return explain(ctx, err, &phase, timeout)
	}
	defer resp.Body.Close()
	return Outcome{
		Kind: Answered, Status: resp.StatusCode, Body: read(resp.Body),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), c.now()),
	}
}

// refuse tells why a target may not be asked, without resolving it.
func (c *Client) refuse(target string) string {
	u, err := url.Parse(target)
	switch {
	case err != nil || u.Host == "":
		return "the URL is not valid"
	case u.Scheme != "https" && (u.Scheme != "http" || !c.allowPrivate):
		return "the URL must start with https://"
	case u.User != nil:
		return "the URL must not contain a user name or password"
	}
	return ""
}

// read takes the start of an answer's body. Its status has come already, so
// that a body that stalls until the deadline or never ends changes nothing
// but the connection, which is then closed instead of kept.
func read(body io.Reader) []byte {
	start, _ := io.ReadAll(io.LimitReader(body, maxBody))
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
