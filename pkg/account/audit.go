package account

import (
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// AuditRetention is how long the audit trail keeps an entry.
const AuditRetention = 400 * 24 * time.Hour

// AuditEntry is an entry of the audit trail: who changed what lets clients in or
// sends events out. It names fields and never their values. It is stored with the
// changed item, from which the stream brings it into the trail: no change lacks its
// entry, and no entry its change.
type AuditEntry struct {
	ID            value.ID    `json:"id"`
	At            value.Time  `json:"at" doc:"When the change was requested."`
	Action        string      `json:"action" doc:"What happened, such as apiKey.revoked. An open enumeration."`
	Actor         AuditActor  `json:"actor" doc:"Who did it."`
	Address       *string     `json:"address" doc:"The address that the request came from. null for the operator."`
	Object        AuditObject `json:"object" doc:"The changed object."`
	ApplicationID value.ID    `json:"applicationId" doc:"The application that the object is or belongs to; of a source its own id."`
	Fields        []string    `json:"fields" doc:"The names of the changed fields, sorted; empty if the object was created or deleted."`
}

// AuditActor is who made a change.
type AuditActor struct {
	Kind string    `json:"kind" doc:"user, application (by its token), apiKey or operator (of the service). An open enumeration."`
	ID   *value.ID `json:"id" doc:"The id of the user, application or API key. null for the operator."`
	// UserID lets a change by a grant's token be found by its user.
	UserID *value.ID `json:"userId" doc:"The user in whose name an application did it. null if in none."`
}

// AuditObject is a changed object.
type AuditObject struct {
	Kind string   `json:"kind" doc:"application, apiKey, endpoint, grant or source. An open enumeration."`
	ID   value.ID `json:"id" doc:"Its id, also after it was deleted."`
}

// NewAuditEntry makes the entry of a change whose fields are not known yet. Its id
// sorts by its time.
func NewAuditEntry(action string, actor AuditActor, application value.ID, object AuditObject, now value.Time) *AuditEntry {
	random := value.NewRandomID()
	return &AuditEntry{
		ID: value.TimedID(now, random[:]), At: now, Action: action, Actor: actor, ApplicationID: application, Object: object, Fields: []string{},
	}
}

// AuditFilter selects entries; a zero field selects all.
type AuditFilter struct {
	Actor, Object value.ID
	Action        string
	From, To      value.Time // From inclusive, To exclusive
}

// Narrow reports whether it may leave out entries of its span of time.
func (f *AuditFilter) Narrow() bool { return f.Action != "" || !f.Actor.IsZero() || !f.Object.IsZero() }

// Selects reports whether the filter selects the entry, its time apart. An
// application as Object also selects the changes of its keys and endpoints.
func (f *AuditFilter) Selects(e *AuditEntry) bool {
	return (f.Action == "" || f.Action == e.Action) &&
		(f.Actor.IsZero() || is(e.Actor.ID, f.Actor) || is(e.Actor.UserID, f.Actor)) &&
		(f.Object.IsZero() || e.Object.ID == f.Object || e.ApplicationID == f.Object)
}

func is(id *value.ID, wanted value.ID) bool { return id != nil && *id == wanted }
