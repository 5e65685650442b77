package queueserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// refused makes an error that the service's model does not declare, by its code.
func refused(code, format string, args ...any) error {
	return &smithy.GenericAPIError{Code: code, Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

func invalid(format string, args ...any) error {
	return refused("InvalidParameterValue", format, args...)
}

func missing(parameter string) error {
	return refused("MissingParameter", "The request must contain the parameter %s.", parameter)
}

// between checks a numeric parameter.
func between[N int32 | int64 | int](name string, value, least, most N) error {
	if value < least || value > most {
		return invalid("Value %d for parameter %s is invalid. Reason: Must be between %d and %d, if provided.", value, name, least, most)
	}
	return nil
}

func errNoQueue() error {
	return &types.QueueDoesNotExist{Message: aws.String("The specified queue does not exist.")}
}

func errNoARN(parameter string) error {
	return &types.ResourceNotFoundException{Message: aws.String("The resource that you specified for the " + parameter + " parameter doesn't exist.")}
}

func errHandle() error {
	return &types.ReceiptHandleIsInvalid{Message: aws.String("The input receipt handle is invalid.")}
}

func errClosed() error {
	return &smithy.GenericAPIError{Code: "ServiceUnavailable", Message: "The queue server is shutting down.", Fault: smithy.FaultServer}
}

// refuse answers an error; an error that is not the protocol's is logged and answered as a fault of the server.
func (s *Server) refuse(w http.ResponseWriter, operation string, err error) {
	var api smithy.APIError
	if !errors.As(err, &api) {
		s.config.Logger.Error("queue request failed", "operation", operation, "error", err)
		api = &smithy.GenericAPIError{Code: "InternalFailure", Message: "The queue server could not record the request.", Fault: smithy.FaultServer}
	}
	status := http.StatusBadRequest
	if api.ErrorFault() == smithy.FaultServer {
		status = http.StatusServiceUnavailable
	}
	// A message may quote the request, which need not be text.
	message := strings.ToValidUTF8(api.ErrorMessage(), "\uFFFD")
	answer(w, status, map[string]string{"__type": "com.amazonaws.sqs#" + api.ErrorCode(), "message": message})
}
