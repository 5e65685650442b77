package api

import (
	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Change returns the entry of the change that the operation makes to an object of the
// application, or to the application itself. The item that is stored with the entry
// brings it into the audit trail.
func (r *Request) Change(application, object value.ID) *account.AuditEntry {
	return r.ChangeBy(r.op.Audit, application, object)
}

// ChangeBy is Change by another action than the operation's.
func (r *Request) ChangeBy(action audit.Action, application, object value.ID) *account.AuditEntry {
	kind := action.Kind()
	if kind == audit.KindApplication {
		object = application
	}
	x := r.x
	c := account.NewAuditEntry(string(action), audit.ActorOf(&r.Principal), application, account.AuditObject{Kind: kind, ID: object}, value.TimeOf(x.cfg.Clock()))
	if address := x.caller.SourceAddress; address != "" {
		c.Address = &address
	}
	return c
}

// claimed is the application that a credential names and does not prove.
type claimed struct{ organization, application value.ID }

// Claim notes for the log whose application the credential of a request
// to an operation without credentials says that it is, before it is proven.
func (r *Request) Claim(organization, application value.ID) {
	r.x.claimed = &claimed{organization, application}
}

// Issued logs that the application which makes the request got a token.
func (r *Request) Issued() {
	r.x.audit(&audit.Entry{Action: audit.ApplicationTokenIssued, Actor: r.Principal, Target: r.Principal.ApplicationID, Path: r.Path()})
}

// auditRefusal logs that the request's credential was refused with the code,
// unless that is empty.
func (x *exchange) auditRefusal(code string) {
	if code == "" || x.op == nil {
		return
	}
	e := audit.Entry{Action: audit.CredentialRefused, Code: code, Path: x.op.Path}
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
