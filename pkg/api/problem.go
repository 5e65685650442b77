package api

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// Problem is the error shape of every status.
type Problem struct {
	StatusCode int            `json:"statusCode" doc:"The HTTP status."`
	Error      string         `json:"error" doc:"The HTTP status in words."`
	Code       string         `json:"code" doc:"The fault, for programs. The meaning of a code does not change."`
	Message    string         `json:"message" doc:"How to correct the request, for people."`
	Details    []fault.Detail `json:"details" doc:"The faults, at most 20, each with its field. Empty if the fault is not in a field."`
	RequestID  string         `json:"requestId" doc:"The request's id, the same as X-Request-Id. Quote it when you report an error."`
}

// statusOf is the one table from kind to status.
var statusOf = [...]int{
	fault.Internal:           http.StatusInternalServerError,
	fault.Invalid:            http.StatusBadRequest,
	fault.Unauthenticated:    http.StatusUnauthorized,
	fault.Forbidden:          http.StatusForbidden,
	fault.NotFound:           http.StatusNotFound,
	fault.MethodNotAllowed:   http.StatusMethodNotAllowed,
	fault.NotAcceptable:      http.StatusNotAcceptable,
	fault.Conflict:           http.StatusConflict,
	fault.PreconditionFailed: http.StatusPreconditionFailed,
	fault.TooLarge:           http.StatusRequestEntityTooLarge,
	fault.UnsupportedMedia:   http.StatusUnsupportedMediaType,
	fault.Unprocessable:      http.StatusUnprocessableEntity,
	fault.RateLimited:        http.StatusTooManyRequests,
	fault.Unavailable:        http.StatusServiceUnavailable,
	fault.Timeout:            http.StatusGatewayTimeout,
}

// ProblemOf renders an error for the caller. An internal error, and any that is
// not a fault, shows nothing of its cause.
func ProblemOf(err error, requestID string) (Problem, http.Header) {
	header := http.Header{}
	f, ok := fault.As(err)
	if !ok || f.Kind == fault.Internal {
		f = fault.New(fault.Internal, "internal", "an error on our side; if it stays, report the request id")
	}
	var method *methodNotAllowed
	if errors.As(err, &method) {
		header.Set("Allow", method.allow)
	}
	if f.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	status := statusOf[f.Kind]
	return Problem{
		StatusCode: status, Error: http.StatusText(status), Code: f.Code,
		Message: f.Message, Details: f.Details, RequestID: requestID,
	}, header
}
