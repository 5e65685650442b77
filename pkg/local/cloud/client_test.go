//go:build cloud

package cloud_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client makes requests of the deployed API with a header of its own.
type client struct {
	base   string
	header http.Header
}

// with returns the client with other header fields beside its own.
func (c client) with(fields ...string) client {
	c.header = c.header.Clone()
	for i := 0; i < len(fields); i += 2 {
		c.header.Set(fields[i], fields[i+1])
	}
	return c
}

// answer is a response with its body.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (c client) do(t *testing.T, method, path, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = c.header.Clone()
	r.Header.Set("Accept", "application/json")
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := (&http.Client{Timeout: 40 * time.Second}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, text}
}

// want makes a request and decodes the body of its answer, which must have the status.
func (c client) want(t *testing.T, status int, method, path, body string, into any) answer {
	t.Helper()
	got := c.do(t, method, path, body)
	if got.status != status {
		t.Fatalf("%s %s: %d, want %d: %s", method, path, got.status, status, got.body)
	}
	if into != nil {
		decode(t, got.body, into)
	}
	return got
}

// problem is the body of every error.
type problem struct {
	StatusCode int    `json:"statusCode"`
	Error      string `json:"error"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Details    []any  `json:"details"`
	RequestID  string `json:"requestId"`
}

// refused makes a request whose answer must be an error of this status in the service's shape.
func (c client) refused(t *testing.T, status int, method, path, body string) (problem, http.Header) {
	t.Helper()
	var p problem
	got := c.want(t, status, method, path, body, &p)
	if p.StatusCode != status || p.Error == "" || p.Message == "" || p.Details == nil || p.RequestID == "" || got.header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s: %s with %v, want the service's shape", method, path, got.body, got.header)
	}
	return p, got.header
}
