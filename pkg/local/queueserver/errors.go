package queueserver

import (
	"fmt"
	"net/http"
)

// apiError is an error of the protocol. The JSON protocol names the shape in the body, and the code of the older query
// protocol, which clients that know it still expect, in a header.
type apiError struct {
	shape   string // with its namespace, as in __type
	code    string // of the query protocol
	message string
	status  int
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

const (
	sqsNamespace   = "com.amazonaws.sqs#"
	coralNamespace = "com.amazon.coral.service#" // errors that the service's model does not declare
	codePrefix     = "AWS.SimpleQueueService."
)

// modelled makes an error that the service's model declares, with a query code in the service's namespace.
func modelled(shape, format string, args ...any) *apiError {
	return &apiError{sqsNamespace + shape, codePrefix + shape, fmt.Sprintf(format, args...), http.StatusBadRequest}
}

// plain makes an error that the service's model declares, whose query code is its name.
func plain(status int, shape, format string, args ...any) *apiError {
	return &apiError{sqsNamespace + shape, shape, fmt.Sprintf(format, args...), status}
}

// undeclared makes an error that the service's model does not declare.
func undeclared(status int, shape, code, format string, args ...any) *apiError {
	return &apiError{coralNamespace + shape, code, fmt.Sprintf(format, args...), status}
}

func errNoQueue() *apiError {
	e := modelled("QueueDoesNotExist", "The specified queue does not exist.")
	e.code = codePrefix + "NonExistentQueue"
	return e
}

func errQueueExists(attribute string) *apiError {
	e := modelled("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s", attribute)
	e.code = "QueueAlreadyExists"
	return e
}

func errPurging(name string) *apiError {
	e := modelled("PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", name)
	e.status = http.StatusForbidden
	return e
}

func errFIFO() *apiError {
	return modelled("UnsupportedOperation", "This server has standard queues only: FIFO queues are not supported.")
}

func errParameter(format string, args ...any) *apiError {
	return undeclared(http.StatusBadRequest, "InvalidParameterValueException", "InvalidParameterValue", format, args...)
}

// errValue is errParameter in the form that names the value, the parameter and the reason.
func errValue(value any, parameter, reason string) *apiError {
	return errParameter("Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

func errMissing(parameter string) *apiError {
	return undeclared(http.StatusBadRequest, "MissingRequiredParameterException", "MissingParameter",
		"The request must contain the parameter %s.", parameter)
}

func errAttributeName(name string) *apiError {
	return plain(http.StatusBadRequest, "InvalidAttributeName", "Unknown Attribute %s.", name)
}

func errAttributeValue(name string) *apiError {
	return plain(http.StatusBadRequest, "InvalidAttributeValue", "Invalid value for the parameter %s.", name)
}

func errHandle() *apiError {
	return plain(http.StatusNotFound, "ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
}

func errNoResource(message string) *apiError {
	return plain(http.StatusNotFound, "ResourceNotFoundException", "%s", message)
}

func errNoARN(parameter string) *apiError {
	return errNoResource("The resource that you specified for the " + parameter + " parameter doesn't exist.")
}

func errSyntax(err error) *apiError {
	return undeclared(http.StatusBadRequest, "SerializationException", "MalformedInput", "%v", err)
}

func errOperation(name string) *apiError {
	return undeclared(http.StatusBadRequest, "UnknownOperationException", "InvalidAction",
		"The action %q is not valid for this endpoint.", name)
}

func errClosed() *apiError {
	return undeclared(http.StatusServiceUnavailable, "ServiceUnavailableException", "ServiceUnavailable",
		"The queue server is shutting down.")
}

// errInternal hides a fault of ours from the client. The fault itself is logged.
func errInternal() *apiError {
	return undeclared(http.StatusInternalServerError, "InternalFailure", "InternalFailure",
		"The queue server could not record the request.")
}
