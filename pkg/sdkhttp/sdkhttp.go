// Package sdkhttp carries the requests of the AWS SDK. It promises that the
// SDK's way of handing over a body costs neither an answer nor a packet.
// Connections, deadlines and retries are left to the client that it is given,
// and to the SDK.
//
// net/http knows the SDK's bodies as readers that may block, and so sends the
// header ahead of them, in a packet of its own: one more system call on each
// side, and the server wakes twice. And as soon as an answer begins, smithy-go
// closes the request's body, whose WriteTo then fails with io.EOF. Where
// net/http has not yet looked, in a goroutine of its own, whether the body
// ended where it should, it does so by WriteTo, takes the error for that of a
// broken request, and closes the connection under the answer: "use of closed
// network connection". The SDK asks again; but what a queue has handed out in
// the lost answer stays hidden for the queue's whole timeout.
package sdkhttp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// Doer is an HTTP client, as the SDK takes it.
type Doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// Client is a client for the SDK. It is for operations whose input is no
// stream: it holds a request's whole body in memory.
type Client struct{ inner Doer }

// New returns a client that makes its requests by another.
func New(inner Doer) Client { return Client{inner} }

// Do makes a request with a copy of its body that net/http knows to be in
// memory.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return c.inner.Do(r)
	}
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(r.Body)
	if closeErr := r.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("read the body of a request: %w", err)
	}
	r.Body = io.NopCloser(&body)
	return c.inner.Do(r)
}
