package sdkhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/commerce-integration/service/pkg/sdkhttp"
)

// hasty sends a request as net/http does that is overtaken by the answer: the
// SDK closes the body before it is looked at for the last time.
type hasty struct{ sent string }

func (h *hasty) Do(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(io.LimitReader(r.Body, r.ContentLength))
	if err != nil {
		return nil, err
	}
	h.sent = string(sent)
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func request(t *testing.T, body string) *http.Request {
	t.Helper()
	built := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	built.Method, built.ContentLength = http.MethodPost, int64(len(body))
	with, err := built.SetStream(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return with.Build(t.Context())
}

func TestARequestThatIsClosedEarlyKeepsItsConnection(t *testing.T) {
	const body = `{"QueueUrl":"q"}`
	var inner hasty
	if _, err := inner.Do(request(t, body)); !errors.Is(err, io.EOF) {
		t.Errorf("without the client: got %v, want io.EOF; else nobody needs it any longer", err)
	}
	inner.sent = ""
	response, err := sdkhttp.New(&inner).Do(request(t, body))
	if err != nil || response.StatusCode != http.StatusOK || inner.sent != body {
		t.Errorf("got %v after sending %q, want an answer to %q", err, inner.sent, body)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
}

// counted counts what is written to a connection.
type counted struct {
	net.Conn
	writes *atomic.Int32
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

func TestARequestIsOneWrite(t *testing.T) {
	const body = `{"QueueUrl":"q"}`
	var got []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, _ = io.ReadAll(r.Body) }))
	defer server.Close()
	for what, of := range map[string]struct {
		client func(*http.Client) sdkhttp.Doer
		writes int32
	}{
		"the client":                        {func(inner *http.Client) sdkhttp.Doer { return sdkhttp.New(inner) }, 1},
		"none, else nobody needs it longer": {func(inner *http.Client) sdkhttp.Doer { return inner }, 2},
	} {
		var writes atomic.Int32
		var dialer net.Dialer
		transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			return counted{conn, &writes}, err
		}}
		defer transport.CloseIdleConnections()
		r := request(t, body)
		r.URL, _ = url.Parse(server.URL)
		response, err := of.client(&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if string(got) != body || writes.Load() != of.writes {
			t.Errorf("%s: %q came in %d writes, want %q in %d", what, got, writes.Load(), body, of.writes)
		}
	}
}

func TestABodyThatCannotBeReadIsNotSent(t *testing.T) {
	r := request(t, "{}")
	r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
	_, err := sdkhttp.New(doer(func(*http.Request) (*http.Response, error) { t.Error("it was sent"); return nil, nil })).Do(r)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

func TestARequestWithoutABodyKeepsNone(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		var got *http.Request
		_, err := sdkhttp.New(doer(func(r *http.Request) (*http.Response, error) { got = r; return nil, nil })).Do(&http.Request{Body: body})
		if err != nil || got.Body != body {
			t.Errorf("got the body %v, %v, want %v", got.Body, err, body)
		}
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
