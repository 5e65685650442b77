// Package sdkhttp carries the requests of the AWS SDK: each in the goroutine of
// its caller, in one packet where it fits, over connections that are kept.
//
// net/http's own transport writes a request in one goroutine and reads the
// answer in another. For a call that comes alone, waking them costs more than
// the call: this client takes a third to a half less processor time (see the
// benchmark). It leaves HTTP itself to net/http, which writes each request and
// parses each answer, and reaches proxies through the transport it is given.
package sdkhttp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
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

// Do makes a request and reads its whole answer. A connection that the server
// has closed meanwhile costs no error: the request goes over a new one. An answer
// that breaks off is an error of the connection, after which the SDK repeats the
// request, whether or not it was done.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	if err := hold(r); err != nil {
		return nil, err
	}
	if c.settings.Proxy != nil {
		if proxy, err := c.settings.Proxy(r); proxy != nil || err != nil {
			return c.settings.RoundTrip(r)
		}
	}
	to := r.URL.Scheme + "://" + r.URL.Host
	if conn := c.take(to); conn != nil {
		answer, err := c.exchange(conn, to, r)
		if !errors.Is(err, errUnanswered) || r.Context().Err() != nil {
			return answer, err
		}
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	conn, err := c.dial(r.Context(), r.URL)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return c.exchange(conn, to, r)
}

// hold reads a request's body into memory.
func hold(r *http.Request) error {
	if r.Body == nil || r.Body == http.NoBody {
		r.GetBody = func() (io.ReadCloser, error) { return r.Body, nil }
		return nil
	}
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(r.Body)
	if err = cmp.Or(err, r.Body.Close()); err != nil {
		return fmt.Errorf("read the body of a request: %w", err)
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body.Bytes())), nil }
	r.Body, err = r.GetBody()
	return err
}

// errUnanswered says that a connection ended, or could not be written to,
// before an answer began.
var errUnanswered = errors.New("the connection ended without an answer")

// A connection serves one request at a time.
type connection struct {
	net.Conn
	in   *bufio.Reader
	out  *bufio.Writer
	idle time.Time // since when
}

func (c *Client) dial(ctx context.Context, to *url.URL) (*connection, error) {
	address := to.Host
	if to.Port() == "" {
		address = net.JoinHostPort(to.Hostname(), cmp.Or(map[string]string{"https": "443"}[to.Scheme], "80"))
	}
	dial := c.settings.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if to.Scheme == "https" {
		if conn, err = c.secure(ctx, conn, to.Hostname()); err != nil {
			return nil, err
		}
	}
	return &connection{Conn: conn, in: bufio.NewReaderSize(conn, bufferSize), out: bufio.NewWriterSize(conn, bufferSize)}, nil
}

func (c *Client) secure(ctx context.Context, conn net.Conn, host string) (net.Conn, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.settings.TLSClientConfig != nil {
		config = c.settings.TLSClientConfig.Clone()
	}
	config.ServerName = cmp.Or(config.ServerName, host)
	if limit := c.settings.TLSHandshakeTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}

// take returns an idle connection, or nil.
func (c *Client) take(to string) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.idle[to]
	if len(idle) == 0 {
		return nil
	}
	last := idle[len(idle)-1]
	if limit := c.settings.IdleConnTimeout; limit == 0 || time.Since(last.idle) < limit {
		c.idle[to] = idle[:len(idle)-1]
		return last
	}
	for _, old := range idle {
		_ = old.Close() // it is of no use
	}
	delete(c.idle, to)
	return nil
}

// keep makes a connection idle, or closes it when its host has enough.
func (c *Client) keep(conn *connection, to string) {
	conn.idle = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle[to]) >= cmp.Or(c.settings.MaxIdleConnsPerHost, http.DefaultMaxIdleConnsPerHost) {
		_ = conn.Close()
		return
	}
	c.idle[to] = append(c.idle[to], conn)
}

// exchange makes one request over a connection, which it keeps or closes. The
// end of the request's context breaks the connection off.
func (c *Client) exchange(conn *connection, to string, r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	broken := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	answer, err := conn.exchange(r, c.settings.ResponseHeaderTimeout)
	if broken() && err == nil && !answer.Close && !r.Close && conn.in.Buffered() == 0 {
		c.keep(conn, to)
		return answer, nil
	}
	_ = conn.Close()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return answer, err
}

// exchange makes one request, whose answer must have been read by the timeout
// after it, if that is not 0.
func (conn *connection) exchange(r *http.Request, timeout time.Duration) (*http.Response, error) {
	if err := cmp.Or(r.Write(conn.out), conn.out.Flush()); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	if timeout > 0 {
		_ = conn.SetReadDeadline(time.Now().Add(timeout))
		if err := r.Context().Err(); err != nil { // it may have broken the connection off before
			return nil, err
		}
	}
	if _, err := conn.in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("wait for the answer: %w", err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	answer, err := http.ReadResponse(conn.in, r)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	var body bytes.Buffer
	body.Grow(int(max(answer.ContentLength, 0)) + bytes.MinRead)
	_, err = body.ReadFrom(answer.Body)
	if err = cmp.Or(err, answer.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	answer.Body = io.NopCloser(&body)
	return answer, nil
}
