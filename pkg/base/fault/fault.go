// Package fault is the error type that callers see: a kind, which decides the
// HTTP status, a stable code, and a message that is safe to show and says how
// to mend the request. Any other error is internal, and its text never leaves
// the service.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrChanged says that a conditional write met another state than the one
// that it was based on. It is internal and never shown to a caller.
var ErrChanged = errors.New("changed by another writer meanwhile")

// Kind is the class of a fault. Each maps to one HTTP status.
type Kind uint8

// The kinds, with the HTTP status that each becomes.
const (
	Internal           Kind = iota // 500
	Invalid                        // 400
	Unauthenticated                // 401
	Forbidden                      // 403
	NotFound                       // 404
	MethodNotAllowed               // 405
	NotAcceptable                  // 406
	Conflict                       // 409
	PreconditionFailed             // 412
	TooLarge                       // 413
	UnsupportedMedia               // 415
	Unprocessable                  // 422
	RateLimited                    // 429
	Unavailable                    // 503
	Timeout                        // 504
)

// Codes that more than one package gives.
const (
	CodeValidation    = "validation_failed"
	CodeMalformedJSON = "malformed_json"
	CodeNotFound      = "not_found"
	CodeConflict      = "conflict"
	CodeLimitReached  = "limit_reached"
)

// The parts of a request that a detail's field can be in.
const (
	InQuery  = "query"
	InPath   = "path"
	InHeader = "header"
	InBody   = "body"
)

// Codes of a single detail.
const (
	DetailRequired   = "required"
	DetailUnknown    = "unknown"
	DetailType       = "wrong_type"
	DetailFormat     = "invalid_format"
	DetailOutOfRange = "out_of_range"
	DetailNotAllowed = "not_allowed"
	DetailDuplicate  = "duplicate"
)

// Bounds of a fault, so that an answer stays small whatever names and values of
// a request it repeats.
const (
	MaxDetails = 20
	maxField   = 200   // code points
	maxMessage = 1_000 // code points
)

// cut shortens a text to so many code points, the last of which then is an ellipsis.
func cut(text string, most int) string {
	end := 0
	for at := range text {
		switch most {
		case 1:
			end = at
		case 0:
			return text[:end] + "…"
		}
		most--
	}
	return text
}

// Detail names one thing that is wrong with a request.
type Detail struct {
	Field   string `json:"field" doc:"The parameter's name, or the path to the field in the body, such as items[2].name."`
	In      string `json:"in" doc:"The part of the request: query, path, header or body."`
	Code    string `json:"code" doc:"The fault, for programs: required, unknown, wrong_type, invalid_format, out_of_range, not_allowed or duplicate."`
	Message string `json:"message" doc:"What the value must be, for people."`
}

// Error is a fault. Message and Details are shown to the caller; Cause is
// logged and never shown.
type Error struct {
	Kind       Kind
	Code       string
	Message    string
	Details    []Detail
	RetryAfter time.Duration // 0 when a retry has no set time
	Cause      error
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Code + ": " + e.Message + ": " + e.Cause.Error()
	}
	return e.Code + ": " + e.Message
}

func (e *Error) Unwrap() error { return e.Cause }

// New makes a fault.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: cut(fmt.Sprintf(format, args...), maxMessage)}
}

// Validation makes the fault of a request with the given things wrong; it keeps
// the first [MaxDetails]. The message repeats the first, so that it is enough to
// read one line.
func Validation(details ...Detail) *Error {
	e := &Error{Kind: Invalid, Code: CodeValidation, Details: slices.Clone(details[:min(len(details), MaxDetails)])}
	for i := range e.Details {
		d := &e.Details[i]
		d.Field, d.Message = cut(d.Field, maxField), cut(d.Message, maxMessage)
	}
	if len(details) > 0 {
		e.Message = e.Details[0].Field + " " + e.Details[0].Message
	}
	return e
}

// Field makes the validation fault of a single field.
func Field(in, field, code, format string, args ...any) *Error {
	return Validation(Detail{Field: field, In: in, Code: code, Message: fmt.Sprintf(format, args...)})
}

// Missing makes the fault of an absent thing, named as the message names it.
func Missing(thing string) *Error { return New(NotFound, CodeNotFound, "no such %s", thing) }

// Busy makes the fault of a dependency that throttles or times out.
func Busy(cause error) *Error {
	return &Error{
		Kind: Unavailable, Code: "unavailable", Cause: cause, RetryAfter: time.Second,
		Message: "the service is busy; send the request again",
	}
}

// Recovered makes an error of a panic. A function defers it, with the address of
// the error that it returns.
func Recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v", p)
	}
}

// As returns the fault in err's chain; ok is false when there is none.
func As(err error) (fault *Error, ok bool) {
	ok = errors.As(err, &fault)
	return fault, ok
}

// Is reports whether err carries a fault of the kind.
func Is(err error, kind Kind) bool {
	f, ok := As(err)
	return ok && f.Kind == kind
}

// Details collects the mistakes in a request, so that one answer names all.
type Details []Detail

// Add appends a detail.
func (d *Details) Add(in, field, code, format string, args ...any) {
	*d = append(*d, Detail{Field: field, In: in, Code: code, Message: fmt.Sprintf(format, args...)})
}

// Sort orders the details by field.
func (d Details) Sort() {
	slices.SortStableFunc(d, func(a, b Detail) int { return strings.Compare(a.Field, b.Field) })
}

// Err is the validation fault of the details, nil when there are none.
func (d Details) Err() error {
	if len(d) == 0 {
		return nil
	}
	return Validation(d...)
}
