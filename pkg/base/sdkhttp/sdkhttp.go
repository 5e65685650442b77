// Package sdkhttp carries the requests of the AWS SDK: each in the goroutine of
// its caller, in one packet where it fits, over connections that are kept.
//
// net/http's own transport writes a request in one goroutine and reads the
// answer in another, which must be woken. Without them a call takes a quarter to
// a third less processor time (see the benchmark). The package leaves HTTP itself
// to net/http, which writes each request and parses each answer, and reaches
// proxies through the transport it is given.
package sdkhttp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// bufferSize of a connection, in each direction, in bytes. A request that fits is
// one write.
const bufferSize = 16 << 10

// Client is a client for the SDK, safe for concurrent use. It is for operations
// whose input and output are no streams: it holds the bodies of a request and of
// its answer in memory. It follows no redirects and takes no interim answers.
type Client struct {
	settings *http.Transport

	mu   sync.Mutex
	idle map[string][]*connection // by scheme and host, the one used last at the end
}

// New returns a client with a transport's settings: how it dials, TLS, proxies,
// how many idle connections a host may have, and for how long. Its
// ResponseHeaderTimeout bounds the whole answer. Its other settings have no
// effect.
func New(settings *http.Transport) *Client {
	return &Client{settings: settings, idle: map[string][]*connection{}}
}

// Do makes a request once and reads its whole answer. Every error is one of the
// connection for the SDK, which then decides whether to repeat the request; an
// answer that breaks off is one too. Connections that the server has closed while
// they were idle are not used.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		if r.Body, err = hold(r.Body, r.ContentLength); err != nil {
			return nil, fmt.Errorf("read the body of a request: %w", err)
		}
	}
	if c.settings.Proxy != nil {
		if proxy, err := c.settings.Proxy(r); proxy != nil || err != nil {
			return c.settings.RoundTrip(r)
		}
	}
	to := r.URL.Scheme + "://" + r.URL.Host
	conn := c.take(to)
	if conn == nil {
		var err error
		if conn, err = c.dial(r.Context(), r.URL); err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
	}
	return c.exchange(conn, to, r)
}

// hold reads a body of the told length, -1 if unknown, into memory.
func hold(body io.ReadCloser, length int64) (io.ReadCloser, error) {
	var held bytes.Buffer
	held.Grow(int(min(max(length, 0), 1<<20)) + bytes.MinRead) // a larger one grows as it comes
	_, err := held.ReadFrom(body)
	return io.NopCloser(&held), cmp.Or(err, body.Close())
}

// A connection serves one request at a time.
type connection struct {
	net.Conn
	socket net.Conn // below TLS
	in     *bufio.Reader
	out    *bufio.Writer
	idle   time.Time // since when
}

func (c *Client) dial(ctx context.Context, to *url.URL) (*connection, error) {
	port, known := map[string]string{"http": "80", "https": "443"}[to.Scheme]
	if !known || to.Host == "" {
		return nil, fmt.Errorf("%q is not an HTTP address", to)
	}
	address := net.JoinHostPort(to.Hostname(), cmp.Or(to.Port(), port))
	dial := c.settings.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	socket, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := socket
	if to.Scheme == "https" {
		if conn, err = c.secure(ctx, socket, to.Hostname()); err != nil {
			_ = socket.Close()
			return nil, err
		}
	}
	return &connection{
		Conn: conn, socket: socket, in: bufio.NewReaderSize(conn, bufferSize), out: bufio.NewWriterSize(conn, bufferSize),
	}, nil
}

// secure speaks TLS, and no HTTP/2, which a transport's settings may offer.
func (c *Client) secure(ctx context.Context, socket net.Conn, host string) (net.Conn, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.settings.TLSClientConfig != nil {
		config = c.settings.TLSClientConfig.Clone()
	}
	config.ServerName, config.NextProtos = cmp.Or(config.ServerName, host), nil
	if limit := c.settings.TLSHandshakeTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	secured := tls.Client(socket, config)
	return secured, secured.HandshakeContext(ctx)
}

// take returns the usable idle connection that was used last, or nil. It closes
// the unusable ones that it meets.
func (c *Client) take(to string) *connection {
	for conn := c.pop(to); conn != nil; conn = c.pop(to) {
		if limit := c.settings.IdleConnTimeout; (limit == 0 || time.Since(conn.idle) < limit) && silent(conn.socket) {
			return conn
		}
		_ = conn.Close()
	}
	return nil
}

func (c *Client) pop(to string) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.idle[to]
	if len(idle) == 0 {
		return nil
	}
	last := idle[len(idle)-1]
	c.idle[to] = idle[:len(idle)-1]
	return last
}

// keep makes a connection idle, and reports whether its host may have another.
func (c *Client) keep(conn *connection, to string) bool {
	_ = conn.SetDeadline(time.Time{}) // or it could not be looked at later
	conn.idle = time.Now().Round(0)   // by the clock on the wall, which goes on while Lambda freezes the process
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle[to]) >= cmp.Or(c.settings.MaxIdleConnsPerHost, http.DefaultMaxIdleConnsPerHost) {
		return false
	}
	c.idle[to] = append(c.idle[to], conn)
	return true
}

// exchange makes one request over a connection, which it keeps or closes. The
// end of the request's context breaks the connection off.
func (c *Client) exchange(conn *connection, to string, r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	broken := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	answer, err := conn.exchange(r, c.settings.ResponseHeaderTimeout)
	if broken() && err == nil && !answer.Close && !r.Close && conn.in.Buffered() == 0 && c.keep(conn, to) {
		return answer, nil
	}
	_ = conn.Close()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return answer, err
}

// exchange makes one request, whose answer must have been read by the timeout
// after its beginning, if that is not 0.
func (conn *connection) exchange(r *http.Request, timeout time.Duration) (*http.Response, error) {
	if timeout > 0 {
		_ = conn.SetDeadline(time.Now().Add(timeout))
		if err := r.Context().Err(); err != nil { // it may have broken the connection off before
			return nil, err
		}
	}
	if err := cmp.Or(r.Write(conn.out), conn.out.Flush()); err != nil {
		return nil, fmt.Errorf("send a request: %w", err)
	}
	answer, err := http.ReadResponse(conn.in, r)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if answer.StatusCode < http.StatusOK {
		return nil, fmt.Errorf("read the answer: an interim one: %s", answer.Status)
	}
	if answer.Body, err = hold(answer.Body, answer.ContentLength); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return answer, nil
}
