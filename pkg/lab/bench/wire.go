package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// wire is an HTTP server that does as little as its clients let it: what it
// takes of the processor is taken from what is measured. It knows requests
// with a Content-Length, one after another on connections that stay open.
type wire struct {
	listener net.Listener
	answer   func(r *wireRequest) []byte // whole answers; nil ends the connection

	group sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]bool
	err   error // the first that was not the end of a connection
}

// wireRequest is what answers depend on. It holds until the answer is
// written.
type wireRequest struct {
	path   []byte
	target []byte // X-Amz-Target
	event  []byte // webhook-id
	body   []byte
}

// wireMost bounds a body in bytes.
const wireMost = 4 << 20

// newWire serves on a free port of loopback until close. Answers are asked
// for by as many goroutines as there are connections.
func newWire(ctx context.Context, answer func(r *wireRequest) []byte) (*wire, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	w := &wire{listener: listener, answer: answer, conns: map[net.Conn]bool{}}
	w.group.Go(w.accept)
	return w, nil
}

// url is where the server is.
func (w *wire) url() string { return "http://" + w.listener.Addr().String() }

// close ends all connections, and tells what went wrong on one of them.
func (w *wire) close() error {
	_ = w.listener.Close() // the first and only one
	w.mu.Lock()
	for conn := range w.conns {
		_ = conn.Close() // whatever is under way is over
	}
	w.conns = nil
	w.mu.Unlock()
	w.group.Wait()
	return w.err
}

func (w *wire) accept() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return // closed
		}
		if !w.keep(conn) {
			_ = conn.Close() // too late
			return
		}
		w.group.Go(func() {
			defer w.drop(conn)
			if err := w.serve(conn); err != nil {
				w.fail(err)
			}
		})
	}
}

func (w *wire) keep(conn net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		return false
	}
	w.conns[conn] = true
	return true
}

func (w *wire) drop(conn net.Conn) {
	_ = conn.Close() // nothing is under way
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, conn)
}

func (w *wire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// serve answers until the client ends the connection, or close does.
func (w *wire) serve(conn net.Conn) error {
	in := bufio.NewReaderSize(conn, 16<<10)
	var body []byte
	for {
		r, length, err := readHead(in)
		if err != nil {
			return unlessGone(err)
		}
		if cap(body) < length {
			body = make([]byte, length)
		}
		r.body = body[:length]
		if _, err := io.ReadFull(in, r.body); err != nil {
			return unlessGone(err)
		}
		answer := w.answer(&r)
		if answer == nil {
			return nil
		}
		if _, err := conn.Write(answer); err != nil {
			return unlessGone(err)
		}
	}
}

// errRequest says that a request is none that wire knows.
var errRequest = errors.New("a request that the server does not know")

// unlessGone leaves out the end of a connection.
func unlessGone(err error) error {
	if errors.Is(err, errRequest) {
		return err
	}
	return nil
}

// readHead reads a request up to its body, and the length of that.
func readHead(in *bufio.Reader) (r wireRequest, length int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return r, 0, err
	}
	_, path, _ := bytes.Cut(line, []byte(" "))
	path, _, _ = bytes.Cut(path, []byte(" "))
	r.path, length = bytes.Clone(path), -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return r, 0, err
		}
		name, content, found := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		if !found {
			break
		}
		content = bytes.TrimSpace(content)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(content)); err != nil {
				return r, 0, fmt.Errorf("%w: Content-Length %q", errRequest, content)
			}
		case bytes.EqualFold(name, []byte("X-Amz-Target")):
			r.target = bytes.Clone(content)
		case bytes.EqualFold(name, []byte("Webhook-Id")):
			r.event = bytes.Clone(content)
		}
	}
	if length < 0 || length > wireMost {
		return r, 0, fmt.Errorf("%w: %s with a body of %d bytes", errRequest, r.path, length)
	}
	return r, length, nil
}

// ok is a whole answer 200.
func ok(mediaType string, body []byte) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", mediaType, len(body), body)
}
