package main

import (
	"errors"
	"fmt"
	"net"
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

// plainly replaces what the SDK says of a failed operation by what its user can
// act on.
func plainly(err error) error {
	operation := (*smithy.OperationError)(nil)
	if !errors.As(err, &operation) {
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
