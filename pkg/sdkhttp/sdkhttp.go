// Package sdkhttp carries the requests of the AWS SDK. It promises that the
// SDK's way of closing requests costs no answer. Connections, deadlines and
// retries are left to the client that it is given, and to the SDK.
//
// As soon as an answer begins, smithy-go closes the request's body, whose
// WriteTo then fails with io.EOF. Where net/http has not yet looked, in a
// goroutine of its own, whether the body ended where it should, it does so by
// WriteTo, takes the error for that of a broken request, and closes the
// connection under the answer: "use of closed network connection". The SDK
// asks again; but what a queue has handed out in the lost answer stays hidden
// for the queue's whole timeout.
package sdkhttp

import (
	"io"
	"net/http"
)

// Doer is an HTTP client, as the SDK takes it.
type Doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// Client is a client for the SDK.
type Client struct{ inner Doer }

// New returns a client that makes its requests by another.
func New(inner Doer) Client { return Client{inner} }

// Do makes a request, whose body it reads by nothing but Read: that ends a
// closed body without an error.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.inner.Do(r)
}
