package runner

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// listenerOf accepts the connections that it is sent.
type listenerOf chan net.Conn

func (l listenerOf) Accept() (net.Conn, error) {
	if conn, ok := <-l; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (listenerOf) Close() error   { return nil }
func (listenerOf) Addr() net.Addr { return &net.TCPAddr{} }

// Requests whose bodies came in drips stayed open for good.
func TestABodyThatComesInDripsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan error, 1)
		server := newServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		}))
		listener := make(listenerOf, 1)
		go func() { _ = server.Serve(listener) }()
		client, conn := net.Pipe()
		listener <- conn
		close(listener)
		go func() { _, _ = io.Copy(io.Discard, client) }()
		began := time.Now()
		_, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
		for err == nil {
			<-time.After(time.Second)
			_, err = client.Write([]byte{'x'})
		}
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > time.Minute {
			t.Errorf("read with %v after %s, want a deadline", err, time.Since(began))
		}
	})
}
