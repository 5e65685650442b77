package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/fault"
	"github.com/commerce-integration/service/pkg/lists"
	"github.com/commerce-integration/service/pkg/value"
)

// Access is the kind of credentials that an operation takes.
type Access uint8

// The kinds of access.
const (
	Public    Access = iota // no credentials
	Developer               // a user JWT
	Reader                  // an API key, a user JWT or an application token
)

// Operation is one method on one path: its documentation, its demands on a
// request, which are checked before the handler runs, and the handler.
type Operation struct {
	ID          string // OpenAPI operationId
	Method      string // GET also answers HEAD
	Path        string // with {name} segments, each a UUID unless listed in Params
	Tag         string
	Summary     string
	Description string
	Access      Access
	Scope       auth.Scope  // "": none beyond the credential
	Params      []Param     // others in the query are refused
	List        *lists.List // a list's operation also takes the list's parameters
	Body        any         // zero value of the body's type; nil: no body
	EmptyBody   bool        // a request may leave its body out
	Status      int         // of success; 0 is 200
	Result      any         // zero value of the result's type; nil: no content
	MediaType   string      // of the result; "" is application/json
	Errors      []int       // statuses beyond 404 and those that Method, Access and Body imply
	Handle      func(*Request) (*Response, error)
}

// Param documents one parameter and permits its name. A path parameter that
// is not declared is a UUID.
type Param = lists.Param

// Complete returns the operation with what its declaration leaves out: the
// status 200 and the parameters of its list.
func (op Operation) Complete() Operation {
	op.Status = cmp.Or(op.Status, http.StatusOK)
	if op.List != nil {
		op.Params = slices.Concat(op.Params, op.List.Params())
	}
	return op
}

// Request is a request as a handler sees it: checked, with its parameters read.
type Request struct {
	Principal auth.Principal
	Query     url.Values
	List      *lists.Query // of an operation with a list
	Site      *value.ID    // of an operation that takes [SiteHeader]; nil: no site was asked for
	Header    http.Header
	Body      []byte
	BaseURL   string // scheme, host and stage, without a trailing slash
	RequestID string

	ctx   context.Context
	op    *Operation
	ids   map[string]value.ID
	texts map[string]string
}

// Context is done when the caller's time is up.
func (r *Request) Context() context.Context { return r.ctx }

// Organization is the principal's organization: the tenant of every access.
func (r *Request) Organization() value.ID { return r.Principal.OrganizationID }

// PathID returns the path parameter, which is a valid UUID.
func (r *Request) PathID(name string) value.ID { return r.ids[name] }

// PathText returns a path parameter that the operation declares as text.
func (r *Request) PathText(name string) string { return r.texts[name] }

// Path is the request's path in one form: identifiers in lower case, no
// trailing slash.
func (r *Request) Path() string {
	path := r.op.Path
	for name, id := range r.ids {
		path = strings.Replace(path, "{"+name+"}", id.String(), 1)
	}
	return path
}

// Response is a handler's answer. Exactly one of JSON and Raw is set, or
// neither for an empty body.
type Response struct {
	Status int         // 0: the operation's
	JSON   any         // marshalled
	Raw    []byte      // written as it is
	ETag   string      // "": a hash of the body, on GET
	Header http.Header // added
}

// OK answers with v as JSON and the operation's status.
func OK(v any) (*Response, error) { return &Response{JSON: v}, nil }

// Answer answers with v as [OK] does, unless there is an error.
func Answer(v any, err error) (*Response, error) {
	if err != nil {
		return nil, err
	}
	return OK(v)
}

// Found makes the answer of a store that has no such thing, nil without an
// error, a 404.
func Found[T any](what string) func(*T, error) (*T, error) {
	return func(v *T, err error) (*T, error) {
		if err == nil && v == nil {
			err = fault.Missing(what)
		}
		return v, err
	}
}

// NoContent answers without a body.
func NoContent() (*Response, error) { return &Response{Status: http.StatusNoContent}, nil }

// Created answers v with a Location: path is relative to the base URL. etag is
// what reading it will answer, "" when it has none that a change could name.
func (r *Request) Created(path string, v any, etag string) (*Response, error) {
	return &Response{JSON: v, ETag: etag, Header: http.Header{"Location": {r.BaseURL + path}}}, nil
}
