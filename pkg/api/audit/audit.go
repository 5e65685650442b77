// Package audit names the actions of the audit trail: changes of what lets a client
// into the service or sends an organization's events out of it. The table holds the
// trail, and its organization reads it there. The log holds what changes no item:
// tokens that applications got, and refused credentials, whose organization is not
// certain. An entry names people and things by their
// identifiers only; it holds no secret, no token and no more of an API key than the
// part of it that is public.
package audit

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Message is that of every entry of the log about credentials, and of no other.
const Message = "audit"

// Action says what happened, after the kind of what it happened to.
type Action string

// The actions.
const (
	ApplicationCreated       Action = "application.created"
	ApplicationUpdated       Action = "application.updated"
	ApplicationSuspended     Action = "application.suspended"
	ApplicationActivated     Action = "application.activated"
	ApplicationDeleted       Action = "application.deleted" // with its keys and endpoints
	ApplicationSecretRotated Action = "application.secretRotated"
	ApplicationScopesSet     Action = "application.tokenScopesSet"
	ApplicationClientSet     Action = "application.clientSet"
	ApplicationAlertsSet     Action = "application.alertsSet"
	ApplicationAlertsRemoved Action = "application.alertsRemoved"
	ApplicationTokenIssued   Action = "application.tokenIssued"
	GrantCreated             Action = "grant.created"
	GrantRevoked             Action = "grant.revoked"
	KeyCreated               Action = "apiKey.created"
	KeyRevoked               Action = "apiKey.revoked"
	EndpointCreated          Action = "endpoint.created"
	EndpointUpdated          Action = "endpoint.updated"
	EndpointDeleted          Action = "endpoint.deleted"
	EndpointSecretRotated    Action = "endpoint.secretRotated"
	SourceCreated            Action = "source.created"
	SourceUpdated            Action = "source.updated"
	SourceDeleted            Action = "source.deleted"
	SourceSecretRotated      Action = "source.secretRotated"
	CredentialRefused        Action = "credential.refused"
)

// Changes lists every action that the trail in the table has.
func Changes() []string {
	actions := []Action{
		ApplicationCreated, ApplicationUpdated, ApplicationSuspended, ApplicationActivated, ApplicationDeleted, ApplicationSecretRotated,
		ApplicationScopesSet, ApplicationClientSet, ApplicationAlertsSet, ApplicationAlertsRemoved, GrantCreated, GrantRevoked,
		KeyCreated, KeyRevoked, EndpointCreated, EndpointUpdated, EndpointDeleted, EndpointSecretRotated,
		SourceCreated, SourceUpdated, SourceDeleted, SourceSecretRotated,
	}
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a)
	}
	return names
}

// KindApplication is the kind of what an action on an application is done to.
const KindApplication = "application"

// Kind is that of what the action is done to.
func (a Action) Kind() string {
	kind, _, _ := strings.Cut(string(a), ".")
	return kind
}

// Operator is who changes something by a command.
func Operator() account.AuditActor { return account.AuditActor{Kind: "operator"} }

// ActorOf is the principal as who changes something.
func ActorOf(p *auth.Principal) account.AuditActor {
	switch p.Kind {
	case auth.KindKey:
		return account.AuditActor{Kind: "apiKey", ID: &p.KeyID}
	case auth.KindApplication:
		a := account.AuditActor{Kind: KindApplication, ID: &p.ApplicationID}
		if !p.UserID.IsZero() {
			a.UserID = &p.UserID
		}
		return a
	}
	return account.AuditActor{Kind: "user", ID: &p.UserID}
}

// Entry is one entry of the log. What is zero is left out.
type Entry struct {
	Action Action
	// Actor is who did it, as far as a credential proves that.
	Actor auth.Principal
	// OrganizationID is the target's organization, if Actor is absent.
	OrganizationID value.ID
	// Target is the application that got a token, or of which a refused
	// credential claims to be.
	Target value.ID
	// Path is that of the request. Everything in it that is not the service's is
	// an identifier.
	Path          string
	SourceAddress string // of the client, as the gateway saw it
	// GatewayRequestID is the id that the client received when the gateway
	// answers in place of a function. The logger adds the invocation's, which is
	// that of every other answer.
	GatewayRequestID string
	Code             string // of the refusal
	KeyText          string // the public part of a refused API key
}

// Write writes the entry.
func (e *Entry) Write(ctx context.Context, logger *slog.Logger) {
	attrs := []slog.Attr{slog.String("action", string(e.Action))}
	add := func(name, text string) {
		if text != "" {
			attrs = append(attrs, slog.String(name, text))
		}
	}
	add("organizationId", text(cmp.Or(e.Actor.OrganizationID, e.OrganizationID)))
	if e.Actor.Kind != "" {
		attrs = append(attrs, actor(&e.Actor))
	}
	if !e.Target.IsZero() {
		attrs = append(attrs, slog.Group("target", "kind", KindApplication, "id", e.Target.String()))
	}
	add("path", e.Path)
	add("sourceAddress", e.SourceAddress)
	add("gatewayRequestId", e.GatewayRequestID)
	add("code", e.Code)
	add("key", e.KeyText)
	logger.LogAttrs(ctx, slog.LevelInfo, Message, attrs...)
}

// actor names the principal, and a key's application.
func actor(p *auth.Principal) slog.Attr {
	a := ActorOf(p)
	attrs := []any{"kind", a.Kind, "id", a.ID.String()}
	switch {
	case p.Kind == auth.KindKey:
		attrs = append(attrs, "applicationId", p.ApplicationID.String())
	case !p.GrantID.IsZero():
		attrs = append(attrs, "userId", p.UserID.String(), "grantId", p.GrantID.String())
	}
	return slog.Group("actor", attrs...)
}

func text(id value.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}
