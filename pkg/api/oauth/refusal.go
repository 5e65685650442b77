package oauth

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/api"
)

// TokenError is the shape of every error of the endpoints of tokens (RFC 6749,
// section 5.2; RFC 7009, section 2.2.1), except that of a wrong method.
type TokenError struct {
	Error       string `json:"error" doc:"invalid_request, invalid_client, invalid_grant, invalid_scope, unauthorized_client, unsupported_grant_type, unsupported_token_type, temporarily_unavailable or server_error."`
	Description string `json:"error_description" doc:"How to correct the request."`
}

// Codes of errors. RFC 6749 has the last two for its authorization endpoint.
const (
	codeInvalidRequest     = "invalid_request"
	codeInvalidScope       = "invalid_scope"
	codeUnauthorizedClient = "unauthorized_client"
	unsupportedGrantType   = "unsupported_grant_type"
	unsupportedTokenType   = "unsupported_token_type"
	temporarilyUnavailable = "temporarily_unavailable"
	serverError            = "server_error"
)

// refusal is an error that the endpoints of tokens know themselves.
type refusal struct {
	code, description string
	status            int  // 0 is 400
	challenge         bool // names HTTP Basic in WWW-Authenticate
	retryAfter        time.Duration
}

func (e *refusal) Error() string { return e.code + ": " + e.description }

var errSuspended = &refusal{code: codeUnauthorizedClient, description: "the application is suspended; its owner or an admin can activate it"}

// credential is the code if what a client presents is refused, and not the form
// of its request.
func (e *refusal) credential() string {
	switch e.code {
	case codeInvalidRequest, unsupportedGrantType, unsupportedTokenType:
		return ""
	}
	return e.code
}

func invalidRequest(description string) error {
	return &refusal{code: codeInvalidRequest, description: description}
}

func invalidClient(challenge bool, description string) error {
	return &refusal{code: "invalid_client", status: http.StatusUnauthorized, challenge: challenge, description: description}
}

// answerError answers an error in the shape of RFC 6749. A fault that is not of
// this package keeps its status: a body that is too large is 413.
func answerError(err error) *api.Response {
	header := notStored()
	var known *refusal
	if errors.As(err, &known) {
		if known.challenge {
			header.Set("WWW-Authenticate", `Basic realm="token", charset="UTF-8"`)
		}
		if known.retryAfter > 0 {
			header.Set("Retry-After", strconv.Itoa(int(math.Ceil(known.retryAfter.Seconds()))))
		}
		return &api.Response{
			Status: cmp.Or(known.status, http.StatusBadRequest), Header: header, Refused: known.credential(),
			JSON: TokenError{Error: known.code, Description: printable(known.description)},
		}
	}
	problem, more := api.ProblemOf(err, "")
	if wait := more.Get("Retry-After"); wait != "" {
		header.Set("Retry-After", wait)
	}
	return &api.Response{
		Status: problem.StatusCode, Header: header,
		JSON: TokenError{Error: codeOf(problem.StatusCode), Description: printable(problem.Message)},
	}
}

func codeOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return temporarilyUnavailable
	case status >= http.StatusInternalServerError:
		return serverError
	}
	return codeInvalidRequest
}

// printable keeps a description to the characters that RFC 6749 permits.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '"' || c == '\\':
			return '\''
		case c < ' ' || c > '~':
			return '?'
		}
		return c
	}, text)
}
