package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
)

// integrate invokes the route's function and writes its answer.
func (x *exchange) integrate(body []byte) error {
	// Every media type is binary: a body travels in base64.
	x.event.Body, x.event.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), len(body) > 0
	answer, err := call[events.APIGatewayProxyResponse](x, x.route.Function, x.event, x.event.Body)
	switch {
	case errors.Is(err, errTooLarge):
		return errTooLarge
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{kind: "INTEGRATION_TIMEOUT", cause: err}
	case err != nil:
		return broken(err)
	}
	content, err := x.content(&answer)
	if err != nil {
		return broken(fmt.Errorf("answer of %s: %w", x.route.Function, err))
	}
	x.writeHeaders(&answer)
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

// content is the body of an answer as the client gets it. The request's Accept decides whether base64 is decoded, as
// "Working with binary media types for REST APIs" in the developer guide of API Gateway says; without one it stays, even
// where */* is binary.
func (x *exchange) content(answer *events.APIGatewayProxyResponse) (string, error) {
	switch {
	case answer.StatusCode < 200 || answer.StatusCode > 599:
		return "", fmt.Errorf("status code %d", answer.StatusCode)
	case len(answer.Body) > maxPayload:
		return "", fmt.Errorf("its body has %d bytes, more than %d", len(answer.Body), maxPayload)
	}
	if !answer.IsBase64Encoded || x.r.Header.Get("Accept") == "" {
		return utf8Text(answer.Body), nil
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
func (x *exchange) writeHeaders(answer *events.APIGatewayProxyResponse) {
	header := x.w.Header()
	header.Set("Content-Type", "application/json")
	for name, values := range answer.MultiValueHeaders {
		setHeader(header, name, values)
	}
	for name, value := range answer.Headers {
		values := answer.MultiValueHeaders[name]
		if !slices.Contains(values, value) {
			values = append(slices.Clone(values), value)
		}
		setHeader(header, name, values)
	}
}

func setHeader(header http.Header, name string, values []string) {
	name = http.CanonicalHeaderKey(name)
	switch {
	case name == "Transfer-Encoding":
		return
	case remapped(name):
		name = "X-Amzn-Remapped-" + name
	}
	header[name] = values
}
