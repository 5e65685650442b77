package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// plainError replaces the text of an error.
type plainError struct {
	text string
	error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.error }

// plainly replaces what the SDK says of a failed operation, and the standard library
// of a failed request, by what its user can act on.
func plainly(err error) error {
	operation, request := (*smithy.OperationError)(nil), (*url.Error)(nil)
	switch {
	case errors.As(err, &operation):
	case errors.As(err, &request):
		return &plainError{strings.Replace(err.Error(), request.Error(), unanswered(request), 1), err}
	default:
		return err
	}
	var refused smithy.APIError
	var network *net.OpError
	service := operation.Service()
	text := operation.Error()
	switch {
	case errors.As(operation, &refused):
		text = fmt.Sprintf("%s refuses %s: %s: %s", service, operation.Operation(), refused.ErrorCode(), refused.ErrorMessage())
	case strings.Contains(text, "get identity"):
		text = "no credentials for AWS: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role gives them"
	case strings.Contains(text, "Missing Region") || strings.Contains(text, "region"):
		text = "no region of AWS: set AWS_REGION"
	case errors.As(operation, &network):
		text = fmt.Sprintf("%s cannot be reached: %v", service, network)
	}
	said := operation.Error()
	if f, ok := fault.As(err); ok && strings.Contains(f.Error(), said) {
		said = f.Error() // which also says what a client of the service would do
	}
	return &plainError{strings.Replace(err.Error(), said, text, 1), err}
}

// unanswered says why a request has no answer.
func unanswered(request *url.Error) string {
	server, _, _ := strings.Cut(request.URL, "?")
	if u, err := url.Parse(request.URL); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	switch {
	case errors.Is(request, http.ErrSchemeMismatch):
		return server + " answers to http://, not to https://"
	case request.Timeout():
		return server + " does not answer in time"
	}
	return fmt.Sprintf("%s cannot be reached: %v", server, request.Err)
}
