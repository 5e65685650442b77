package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
)

// functionAnswer is the answer of a function behind a proxy integration. API Gateway refuses other members.
type functionAnswer struct {
	StatusCode        int                 `json:"statusCode"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// integrate invokes the route's function and writes its answer.
func (x *exchange) integrate(body []byte) error {
	answer, err := x.ask(body)
	if err != nil {
		return err
	}
	content, err := x.content(&answer)
	if err != nil {
		return broken(fmt.Errorf("answer of %s: %w", x.route.Function, err))
	}
	x.writeHeaders(answer)
	if x.r.Method == http.MethodHead || answer.StatusCode == http.StatusNoContent || answer.StatusCode == http.StatusNotModified {
		x.w.WriteHeader(answer.StatusCode)
		return nil
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	x.w.WriteHeader(answer.StatusCode)
	// As bytes, since a long string is written in many small pieces. An error means that the client has gone.
	_, _ = x.w.Write([]byte(content))
	return nil
}

// ask calls the route's function.
func (x *exchange) ask(body []byte) (answer functionAnswer, err error) {
	raw, taken, err := x.call(invocation{
		function: x.route.Function, body: body,
		event:   func() any { return x.proxyRequest(body) },
		payload: func() ([]byte, error) { return x.payload(body) },
		take:    func(given any) (same bool) { answer, same = proxyAnswer(given); return same },
	})
	if err == nil && !taken {
		if answer, err = readAnswer(raw); err != nil {
			err = fmt.Errorf("answer of %s: %w", x.route.Function, err)
		}
	}
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return answer, refused
	case errors.Is(err, context.DeadlineExceeded):
		return answer, refuse("INTEGRATION_TIMEOUT", "Endpoint request timed out", err)
	case err != nil:
		return answer, broken(err)
	}
	return answer, nil
}

func readAnswer(raw []byte) (functionAnswer, error) {
	var answer functionAnswer
	if err := json.Unmarshal(raw, &answer, json.RejectUnknownMembers(true)); err != nil {
		return answer, fmt.Errorf("not a proxy answer: %w", err)
	}
	return answer, nil
}

// content is the body of an answer as the client gets it. The request's first
// Accept decides whether base64 is decoded, as "Working with binary media types
// for REST APIs" in the developer guide of API Gateway says; without one it stays,
// even where */* is binary.
func (x *exchange) content(answer *functionAnswer) (string, error) {
	if answer.StatusCode < 200 || answer.StatusCode > 599 {
		return "", fmt.Errorf("status code %d", answer.StatusCode)
	}
	accepted := first(x.r.Header.Get("Accept"))
	if !answer.IsBase64Encoded || accepted == "" || !x.isBinary(accepted) {
		return answer.Body, nil
	}
	content, err := base64.StdEncoding.DecodeString(answer.Body)
	if err != nil {
		return "", fmt.Errorf("body: %w", err)
	}
	return string(content), nil
}

// remapped lists the headers that API Gateway keeps for itself: a function's value arrives under another name.
func remapped(name string) bool {
	switch name {
	case "Authorization", "Connection", "Content-Length", "Content-Md5", "Date", "Expect", "Host",
		"Max-Forwards", "Server", "Te", "Trailer", "Upgrade", "User-Agent", "Www-Authenticate":
		return true
	}
	return false
}

// writeHeaders merges the two forms of headers. Where both name one, the values of the multi-value form come first, and
// none twice.
func (x *exchange) writeHeaders(answer functionAnswer) {
	header := x.w.Header()
	header.Set("Content-Type", "application/json")
	set := func(name string, values []string) {
		name = http.CanonicalHeaderKey(name)
		switch {
		case name == "Transfer-Encoding":
			return
		case remapped(name):
			name = "X-Amzn-Remapped-" + name
		}
		header[name] = values
	}
	for name, values := range answer.MultiValueHeaders {
		set(name, values)
	}
	for name, value := range answer.Headers {
		if values, both := answer.MultiValueHeaders[name]; both {
			if slices.Contains(values, value) {
				continue
			}
			set(name, append(slices.Clone(values), value))
			continue
		}
		set(name, []string{value})
	}
}
