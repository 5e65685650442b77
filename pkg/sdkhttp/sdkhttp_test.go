package sdkhttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

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
