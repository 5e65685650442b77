package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
)

// functionAnswer is what a function behind a proxy integration returns. API
// Gateway refuses other members.
type functionAnswer struct {
	StatusCode        int                 `json:"statusCode"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

// integrate invokes the route's function and writes its answer.
func (x *exchange) integrate(body []byte) error {
	payload, err := x.payload(body)
	if err != nil {
		return err
	}
	raw, err := x.call(x.route.Function, payload)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return refuse("INTEGRATION_TIMEOUT", "Endpoint request timed out", err)
	case err != nil:
		return broken(err)
	}
	answer, content, err := x.readAnswer(raw)
	if err != nil {
		return broken(fmt.Errorf("answer of %s: %w", x.route.Function, err))
	}
	x.writeHeaders(answer)
	x.w.WriteHeader(answer.StatusCode)
	if x.r.Method == http.MethodHead || answer.StatusCode == http.StatusNoContent || answer.StatusCode == http.StatusNotModified {
		return nil
	}
	// A client that has gone does not concern anybody.
	_, _ = x.w.Write(content)
	return nil
}

func (x *exchange) readAnswer(raw []byte) (functionAnswer, []byte, error) {
	var answer functionAnswer
	if err := json.Unmarshal(raw, &answer, json.RejectUnknownMembers(true)); err != nil {
		return answer, nil, fmt.Errorf("not a proxy answer: %w", err)
	}
	if answer.StatusCode < 200 || answer.StatusCode > 599 {
		return answer, nil, fmt.Errorf("status code %d", answer.StatusCode)
	}
	if !answer.IsBase64Encoded || !x.isBinary(first(x.r.Header.Get("Accept"))) {
		return answer, []byte(answer.Body), nil
	}
	content, err := base64.StdEncoding.DecodeString(answer.Body)
	if err != nil {
		return answer, nil, fmt.Errorf("body: %w", err)
	}
	return answer, content, nil
}

// remapped lists the headers that API Gateway keeps for itself: a function's
// value arrives under another name.
func remapped(name string) bool {
	switch name {
	case "Authorization", "Connection", "Content-Length", "Content-Md5", "Date", "Expect", "Host",
		"Max-Forwards", "Server", "Te", "Trailer", "Upgrade", "User-Agent", "Www-Authenticate":
		return true
	}
	return false
}

// writeHeaders merges the two forms of headers. Where both name one, the
// values of the multi-value form come first, and none twice.
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
