package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Load says what a load generator asks. Each worker has one connection, which
// stays open, with one request under way at a time.
type Load struct {
	Pace
	Address string      // host:port
	Targets []string    // paths with queries, asked in turn
	Header  http.Header // of every request
	// Check judges an answer's body; nil takes any. An answer other than 200
	// is wrong before that.
	Check func(header http.Header, body []byte) error
}

// Run makes the load. It fails when a connection breaks; an answer that is
// not what it has to be is counted and the load goes on.
func (l *Load) Run(ctx context.Context) (*Outcome, error) {
	requests := make([][]byte, len(l.Targets))
	for i, target := range l.Targets {
		requests[i] = l.request(target)
	}
	return drive(ctx, l.Pace, func(ctx context.Context, number int) (request, func(), error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Address)
		if err != nil {
			return nil, nil, fmt.Errorf("connect: %w", err)
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		c := &client{load: l, requests: requests, conn: conn, in: bufio.NewReaderSize(conn, 64<<10), next: number * len(requests) / l.Workers}
		return c.do, func() {
			stop()
			_ = conn.Close() // nothing is under way
		}, nil
	})
}

// request renders a request once, as it is sent again and again.
func (l *Load) request(target string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\n", target, l.Address)
	_ = l.Header.Write(&b) // memory takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}

// client is one connection.
type client struct {
	load     *Load
	requests [][]byte
	conn     net.Conn
	in       *bufio.Reader
	body     bytes.Buffer
	next     int // target
}

func (c *client) do(context.Context) (size int, wrong, err error) {
	target := c.load.Targets[c.next]
	if _, err := c.conn.Write(c.requests[c.next]); err != nil {
		return 0, nil, fmt.Errorf("send a request: %w", err)
	}
	c.next = (c.next + 1) % len(c.requests)
	status, header, err := c.read()
	if err != nil {
		return 0, nil, fmt.Errorf("read an answer: %w", err)
	}
	switch {
	case status != http.StatusOK:
		wrong = fmt.Errorf("status %d: %.200s", status, c.body.Bytes())
	case c.load.Check != nil:
		wrong = c.load.Check(header, c.body.Bytes())
	}
	if wrong != nil {
		wrong = fmt.Errorf("GET %s: %w", target, wrong)
	}
	return c.body.Len(), wrong, nil
}

func (c *client) read() (int, http.Header, error) {
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	c.body.Reset()
	if _, err := c.body.ReadFrom(answer.Body); err != nil {
		return 0, nil, err
	}
	if answer.Close {
		return 0, nil, fmt.Errorf("the connection was closed after status %d: %w", answer.StatusCode, io.ErrUnexpectedEOF)
	}
	return answer.StatusCode, answer.Header, nil
}

// checkPage takes a page that has entries and says how many there are.
func checkPage(header http.Header, body []byte) error {
	if mediaType := header.Get("Content-Type"); mediaType != "application/json" {
		return fmt.Errorf("content type %q", mediaType)
	}
	if header.Get("Content-Encoding") != "" {
		return nil // what it holds is checked without compression
	}
	if !bytes.HasPrefix(body, []byte(`{"data":[{"id":"`)) {
		return fmt.Errorf("a page without entries: %.200s", body)
	}
	if _, after, found := bytes.Cut(body[max(0, len(body)-100):], []byte(`"total":`)); !found || after[0] < '1' || after[0] > '9' {
		return fmt.Errorf("a page without a total: …%s", body[max(0, len(body)-100):])
	}
	return nil
}

// checkItem takes a record.
func checkItem(_ http.Header, body []byte) error {
	if !bytes.HasPrefix(body, []byte(`{"id":"`)) || !bytes.HasSuffix(body, []byte("}")) {
		return fmt.Errorf("no record: %.200s", body)
	}
	return nil
}

// hostOf is the host:port of a base URL.
func hostOf(base string) string { return strings.TrimPrefix(base, "http://") }
