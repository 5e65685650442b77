// Package audit writes the audit trail: who made, changed or ended what lets a
// client into the service or sends an organization's events out of it, and which
// credentials were refused. An entry names people and things by their
// identifiers only; it holds no secret, no token and no more of an API key than
// the part of it that is public.
//
// The trail is in the log, where one query finds it. An entry is written after
// the change was stored and before the request is answered; a change of which
// that is not certain is there with the outcome unknown. A function that is
// killed between the two leaves Lambda's own report of that instead. The
// alternative, a trail in the transactions of the table, would lack
// refusals, and could not show where a request came from.
package audit

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Message is that of every entry of the trail, and of no other in the log.
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
	ApplicationAlertsSet     Action = "application.alertsSet"
	ApplicationAlertsRemoved Action = "application.alertsRemoved"
	ApplicationTokenIssued   Action = "application.tokenIssued"
	KeyCreated               Action = "apiKey.created"
	KeyRevoked               Action = "apiKey.revoked"
	EndpointCreated          Action = "endpoint.created"
	EndpointUpdated          Action = "endpoint.updated"
	EndpointDeleted          Action = "endpoint.deleted"
	EndpointSecretRotated    Action = "endpoint.secretRotated"
	CredentialRefused        Action = "credential.refused"
)

// Outcome says how certain it is that the action happened.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // a credential
	Unknown Outcome = "unknown" // the request failed on our side: it may have happened
)

// Entry is one entry of the trail. What is zero is left out.
type Entry struct {
	Action  Action
	Outcome Outcome
	// Actor is who did it, as far as a credential proves that.
	Actor auth.Principal
	// OrganizationID is the target's organization, if Actor is absent.
	OrganizationID value.ID
	// Target is what it was done to. Of a refused credential it is the
	// application that it claims to be of.
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
	attrs := []slog.Attr{slog.String("action", string(e.Action)), slog.String("outcome", string(e.Outcome))}
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
		attrs = append(attrs, slog.Group("target", "kind", e.targetKind(), "id", e.Target.String()))
	}
	add("path", e.Path)
	add("sourceAddress", e.SourceAddress)
	add("gatewayRequestId", e.GatewayRequestID)
	add("code", e.Code)
	add("key", e.KeyText)
	logger.LogAttrs(ctx, slog.LevelInfo, Message, attrs...)
}

func (e *Entry) targetKind() string {
	if e.Action == CredentialRefused {
		return "application"
	}
	kind, _, _ := strings.Cut(string(e.Action), ".")
	return kind
}

// actor names the principal, and a key's application.
func actor(p *auth.Principal) slog.Attr {
	switch p.Kind {
	case auth.KindKey:
		return slog.Group("actor", "kind", "apiKey", "id", p.KeyID.String(), "applicationId", p.ApplicationID.String())
	case auth.KindApplication:
		return slog.Group("actor", "kind", "application", "id", p.ApplicationID.String())
	}
	return slog.Group("actor", "kind", "user", "id", p.UserID.String())
}

func text(id value.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}
