package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists"
)

// Access is the kind of credentials that an operation takes.
type Access uint8

// The kinds of access.
const (
	Public     Access = iota // no credentials
	Developer                // a user JWT
	User                     // a user JWT, also one that is limited to sites: it concerns the user alone
	Manager                  // a user JWT or an application token
	Subscriber               // a user JWT, an application token or that of a portal session
	Reader                   // an API key, a user JWT or an application token
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
	AnyScope    auth.Scopes // one of these will do; the handler looks at which
	Params      []Param     // others in the query are refused
	Unrepeated  bool        // it takes no idempotency key: what it answers works once and is not kept
	AnyQuery    bool        // nothing in the query is refused: scripts of the page read it
	List        *lists.List // a list's operation also takes the list's parameters
	Body        any         // zero value of the body's type; nil: no body
	EmptyBody   bool        // a request may leave its body out
	BodyType    string      // media type of the body; "" is application/json
	Foreign     bool        // the body is what another system makes, of any media type
	MostBody    int         // bytes of the body; 0 is [MaxBody]
	Status      int         // of success; 0 is 200
	Result      any         // zero value of the result's type; nil: no content
	MediaType   string      // of the result; "" is application/json
	Rows        bool        // of a list in a walk, or without a list: the result is also answered as NDJSON and CSV
	Tagged      bool        // a change answers the entity tag of what it made, as a GET does
	Errors      []int       // statuses beyond those that Path, Method, Access and MediaType imply
	Deprecated  *Deprecation
	Audit       audit.Action // what the audit trail calls its change; "": it has none that is for the trail
	Handle      func(*Request) (*Response, error)
	Counted     bool      // the handler counts the request, by [Request.Admit]
	Refuse      *Refusals // how errors are answered; nil: as a [Problem]

	Parts []Operation // that the handler asks by [Request.Ask], and that no path leads to
	parts *router
}

// Refusals are the errors of an operation whose protocol has a shape of its
// own for them.
type Refusals struct {
	Shape  any // zero value of the shape's type
	Answer func(error) *Response
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
		if op.List.Sync != "" {
			op.Params = append(op.Params, nowHeader())
		}
	}
	return op
}

// Sited reports whether the operation shows what belongs to sites: a credential
// that is limited to sites then sees what they show, and may ask for no other.
func (op *Operation) Sited() bool { return op.takes(fault.InHeader, siteHeader) }

// Limited reports whether a credential that is limited to sites may ask for the
// operation. Applications, their keys and webhooks reach the records of every
// site, so that their managers could get at all.
func (op *Operation) Limited() bool {
	return op.Access != Developer && op.Access != Manager && op.Access != Subscriber
}

// checkScope refuses a credential without the scope that the operation takes.
func (op *Operation) checkScope(given auth.Scopes) error {
	switch {
	case op.Scope != "" && !given.Has(op.Scope):
		return MissingScope(op.Scope)
	case len(op.AnyScope) > 0 && len(given.Intersect(op.AnyScope)) == 0:
		return MissingScope(op.AnyScope...)
	}
	return nil
}

func (op *Operation) bodyType() string { return cmp.Or(op.BodyType, "application/json") }

// Request is a request as a handler sees it: checked, with its parameters read.
type Request struct {
	Principal auth.Principal
	Query     url.Values
	List      *lists.Query // of an operation with a list
	Site      *value.ID    // of an operation that takes [SiteHeader]; nil: no site was asked for
	Header    http.Header
	Body      []byte
	MediaType string // that the request asks for, of those of the operation
	BaseURL   string // scheme, host and stage, without a trailing slash
	RequestID string

	ctx   context.Context
	x     *exchange
	op    *Operation
	lock  *idempotency.Lock // nil: the request names no idempotency key
	ids   map[string]value.ID
	texts map[string]string

	arguments *arguments
}

// Context is done when the caller's time is up.
func (r *Request) Context() context.Context { return r.ctx }

// Admit makes p the principal of a request to an operation without credentials,
// once the handler knows who makes it, and counts the request against the limits
// of p and its organization. The answer shows the rest of them.
func (r *Request) Admit(p auth.Principal) error {
	r.Principal, r.x.caller.Principal, r.x.caller.Err = p, p, nil
	return r.x.admit(1)
}

// AdmitAgain counts the request once more against the rate limits, when it keeps
// the service busy for longer. It fails with a fault of kind RateLimited where one
// is reached.
func (r *Request) AdmitAgain() error { return r.x.admit(1) }

// unitsPerRequest is how many read units of the table a request may take and weigh 1.
const unitsPerRequest = 100

// AdmitUnits counts the request of a list again for each further 100 read units
// that its index takes, once however often it is called for them. It never weighs
// more than a limit, so that an idle application may always ask.
func (r *Request) AdmitUnits(units int) error {
	weight := min((units+unitsPerRequest-1)/unitsPerRequest, r.Principal.RateLimit, r.x.cfg.OrganizationLimit)
	if weight <= r.x.weight {
		return nil
	}
	return r.x.admit(weight - r.x.weight)
}

// Organization is the principal's organization: the tenant of every access.
func (r *Request) Organization() value.ID { return r.Principal.OrganizationID }

// SourceAddress is the client's address, as the gateway saw it.
func (r *Request) SourceAddress() string { return r.x.caller.SourceAddress }

// PathID returns the path parameter, which is a valid UUID.
func (r *Request) PathID(name string) value.ID { return r.ids[name] }

// PathText returns a path parameter that the operation declares as text.
func (r *Request) PathText(name string) string { return r.texts[name] }

// Path is the request's path in one form: identifiers in lower case, no
// trailing slash.
func (r *Request) Path() string { return r.op.pathWith(r.x.rawPath) }

// Response is a handler's answer. Exactly one of JSON and Raw is set, or
// neither for an empty body.
type Response struct {
	Status int         // 0: the operation's
	JSON   any         // marshalled
	Raw    []byte      // written as it is
	ETag   string      // "": a hash of the body, on GET and where Tagged
	Header http.Header // added
	// Refused is the code under which the log gets the credential that
	// [Refusals] refuse; "": it is not about a credential.
	Refused string

	kept bool // the handler has stored it for repetitions
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
