package api

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/base/value"
)

// change is what a handler knows of whether the request changes something.
type change uint8

const (
	notTold change = iota // as if it did
	changes
	maybeChanged
	changesNothing
)

// Changed records in the audit trail whether the request changes something, and
// returns that. A handler that reads, changes and stores calls it at each try.
// The last try counts: only when that finds nothing to change after an earlier
// one did, it may have been the earlier one that was stored, or somebody else's
// request.
func (r *Request) Changed(yes bool) bool {
	switch {
	case yes:
		r.change = changes
	case r.change == notTold:
		r.change = changesNothing
	case r.change == changes:
		r.change = maybeChanged
	}
	return yes
}

// claimed is the application that a credential names and does not prove.
type claimed struct{ organization, application value.ID }

// Claim records in the audit trail whose application the credential of a request
// to an operation without credentials says that it is, before it is proven.
func (r *Request) Claim(organization, application value.ID) {
	r.x.claimed = &claimed{organization, application}
}

// handle runs the handler. What it changes gets into the audit trail, also when
// the handler fails on our side and may have changed it.
func (x *exchange) handle(r *Request) (resp *Response, err error) {
	if x.op.Audit == "" {
		return x.op.Handle(r)
	}
	err = errUnfinished
	defer func() { x.auditChange(r, resp, err) }()
	return x.op.Handle(r)
}

// errUnfinished represents the error of a handler that panics.
var errUnfinished = errors.New("api: the handler did not return")

func (x *exchange) auditChange(r *Request, resp *Response, err error) {
	outcome := audit.Done
	switch {
	case err != nil && x.statusOf(err) < http.StatusInternalServerError, err == nil && r.change == changesNothing:
		return
	case err != nil, r.change == maybeChanged:
		outcome = audit.Unknown
	}
	x.audit(&audit.Entry{Action: x.op.Audit, Outcome: outcome, Actor: r.Principal, Target: r.target(resp), Path: r.Path()})
}

// statusOf is the status that the error is answered with.
func (x *exchange) statusOf(err error) int {
	if x.op.Refuse != nil {
		return x.op.Refuse.Answer(err).Status
	}
	problem, _ := ProblemOf(err, "")
	return problem.StatusCode
}

// target is what the request made or changed: the last identifier in the
// answer's Location, or else in the request's path. Without any it is the
// application that makes the request.
func (r *Request) target(resp *Response) (id value.ID) {
	path := r.Path()
	if r.op.Status == http.StatusCreated {
		if resp == nil {
			return id
		}
		path = resp.Header.Get("Location")
	}
	for segment := range strings.SplitSeq(path, "/") {
		if found, err := value.ParseID(segment); err == nil {
			id = found
		}
	}
	return cmp.Or(id, r.Principal.ApplicationID)
}

// auditRefusal writes that the request's credential was refused with the code,
// unless that is empty.
func (x *exchange) auditRefusal(code string) {
	if code == "" || x.op == nil {
		return
	}
	e := audit.Entry{Action: audit.CredentialRefused, Outcome: audit.Refused, Code: code, Path: x.op.Path}
	if x.caller.Err == nil {
		e.Actor = x.caller.Principal
	}
	if x.claimed != nil {
		e.OrganizationID, e.Target = x.claimed.organization, x.claimed.application
	}
	x.audit(&e)
}

func (x *exchange) audit(e *audit.Entry) {
	e.SourceAddress = x.caller.SourceAddress
	e.Write(x.r.Context(), x.cfg.Logger)
}
