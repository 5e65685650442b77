// Package apiclient calls the service's own HTTP API for the local runner, the
// operator's commands and the lab. It sends a credential and JSON, and turns an
// unexpected answer into a [Refusal].
package apiclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/oauth2"
)

// Client calls the API as a user or an application. It is safe for concurrent
// use.
type Client struct {
	base   string
	header http.Header // of every request
	client *http.Client
}

// New returns a client of the service at the base URL with a user's token, ""
// for requests that need none.
func New(base, jwt string) *Client {
	if jwt == "" {
		return newClient(base, http.Header{})
	}
	return newClient(base, http.Header{"Authorization": {"Bearer " + jwt}})
}

// NewWithKey returns a client with an application's API key.
func NewWithKey(base, key string) *Client { return newClient(base, http.Header{"X-Api-Key": {key}}) }

// NewWithTokens returns a client with access tokens of the source, which it asks
// again when one has expired.
func NewWithTokens(base string, tokens oauth2.TokenSource) *Client {
	c := New(base, "")
	c.client.Transport = &oauth2.Transport{Source: oauth2.ReuseTokenSource(nil, tokens), Base: c.client.Transport}
	return c
}

func newClient(base string, header http.Header) *Client {
	// The service sends no client elsewhere, where its credential would go, too.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{Proxy: nil}, CheckRedirect: stay}
	return &Client{base: strings.TrimSuffix(base, "/"), header: header, client: client}
}

// Refusal is an answer with an unexpected status. Code and Message are empty
// where the body does not have them.
type Refusal struct {
	Status        int
	Code, Message string
	RetryAfter    time.Duration // what Retry-After asks to wait; 0 without one
}

func (r *Refusal) Error() string {
	if r.Message == "" {
		return fmt.Sprintf("the server answered %d, but not as the service does: is the URL right?", r.Status)
	}
	return fmt.Sprintf("the service answered %d %s: %s", r.Status, r.Code, r.Message)
}

// Refused returns the status of a [Refusal], or with which a token was refused, 0 for
// any other error.
func Refused(err error) int {
	if r := (*oauth2.RetrieveError)(nil); errors.As(err, &r) {
		return r.Response.StatusCode
	}
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return r.Status
	}
	return 0
}

// Get reads a path into answer, which may be nil. Any status but 200 is a
// [Refusal].
func (c *Client) Get(ctx context.Context, path string, answer any) error {
	_, err := c.Read(ctx, path, answer)
	return err
}

// Read is Get that also returns the answer's header.
func (c *Client) Read(ctx context.Context, path string, answer any) (http.Header, error) {
	return c.call(ctx, http.MethodGet, path, nil, http.StatusOK, answer)
}

// Lines reads a path as lines of JSON, with the answer's header.
func (c *Client) Lines(ctx context.Context, path string) (lines []byte, header http.Header, err error) {
	named := *c
	named.header = c.header.Clone()
	named.header.Set("Accept", "application/x-ndjson")
	header, err = named.call(ctx, http.MethodGet, path, nil, http.StatusOK, &lines)
	return lines, header, err
}

// Create posts a body to a path and reads the created object into answer. Any
// status but 201 is a [Refusal].
func (c *Client) Create(ctx context.Context, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, http.MethodPost, path, text, http.StatusCreated, answer)
	return err
}

// Submit posts a body under an idempotency key, so that it may be repeated, and
// reads the answer. Any status but 202 is a [Refusal].
func (c *Client) Submit(ctx context.Context, path, idempotencyKey string, body []byte, answer any) error {
	named := *c
	named.header = c.header.Clone()
	named.header.Set("Idempotency-Key", idempotencyKey)
	_, err := named.call(ctx, http.MethodPost, path, body, http.StatusAccepted, answer)
	return err
}

// Act posts nothing to the path of an action and reads the answer. Any status
// but 200 is a [Refusal].
func (c *Client) Act(ctx context.Context, path string, answer any) error {
	_, err := c.call(ctx, http.MethodPost, path, nil, http.StatusOK, answer)
	return err
}

// SendForm posts a form to a path. Any status but 200 is a [Refusal].
func (c *Client) SendForm(ctx context.Context, path string, form url.Values) error {
	typed := *c
	typed.header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	_, err := typed.call(ctx, http.MethodPost, path, []byte(form.Encode()), http.StatusOK, nil)
	return err
}

// Delete deletes the object of a path. Any status but 204 is a [Refusal].
func (c *Client) Delete(ctx context.Context, path string) error {
	_, err := c.call(ctx, http.MethodDelete, path, nil, http.StatusNoContent, nil)
	return err
}

func (c *Client) call(ctx context.Context, method, path string, body []byte, want int, answer any) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = c.header.Clone()
	if body != nil && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err // it names the URL
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the service's answer: %w", err)
	}
	if response.StatusCode != want {
		refusal := &Refusal{Status: response.StatusCode}
		if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16); err == nil {
			refusal.RetryAfter = time.Duration(seconds) * time.Second
		}
		var problem struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		}
		if json.Unmarshal(text, &problem) == nil {
			refusal.Code, refusal.Message = problem.Code, problem.Message
		}
		return nil, refusal
	}
	switch answer := answer.(type) {
	case nil:
		return response.Header, nil
	case *[]byte:
		*answer = text
		return response.Header, nil
	}
	if json.Unmarshal(text, answer) != nil {
		return nil, fmt.Errorf("%s answered, but not as the service does: is the URL right?", c.base)
	}
	return response.Header, nil
}
