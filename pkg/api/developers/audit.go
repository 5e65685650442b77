package developers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/audit"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	actorParam  = "actorId"
	actionParam = "action"
	objectParam = "objectId"
	beforeParam = "before"
	limitParam  = "limit"

	defaultChanges = 20
	maxChanges     = 100
)

// AuditStore keeps the audit trail.
type AuditStore interface {
	// AuditTrail returns the latest entries before an id, or of all when that is zero,
	// and the id before which to go on, zero at the end.
	AuditTrail(ctx context.Context, organization value.ID, f account.AuditFilter, before value.ID, limit int) (found []account.AuditEntry, next value.ID, err error)
}

// AuditTrail is a page of the audit trail.
type AuditTrail struct {
	Data []account.AuditEntry `json:"data" doc:"The changes, the latest first."`
	Meta AuditTrailMeta       `json:"meta" doc:"How to go on."`
}

// AuditTrailMeta says how to go on.
type AuditTrailMeta struct {
	Next *value.ID `json:"next" doc:"The id to send as before for older changes, also if data has fewer than limit. null at the end."`
}

func (a *area) auditOperation() api.Operation {
	return api.Operation{
		ID: "listAuditTrail", Method: http.MethodGet, Path: "/developers/audit", Tag: "Audit trail", Access: api.Developer,
		Summary: "List who changed what",
		Description: "The changes of applications, API keys, webhook endpoints, delivery settings and alert URLs, the latest first, for 400 days: who made " +
			"each, from where, and which fields it changed, never their values. The deletion of an application is one change, with its keys and endpoints. " +
			"What the service does by itself, such as to disable an endpoint, is not in it. A change is listed within about a second. A page reads a " +
			"bounded part of the trail: with a filter it may hold fewer changes than limit, even none, before meta.next is null.",
		Scope: auth.DevelopersAdmin, Result: AuditTrail{},
		Params: []api.Param{
			{Name: actorParam, In: fault.InQuery, Type: "string", Format: "uuid", Description: "Only changes by this user, application or API key."},
			{Name: actionParam, In: fault.InQuery, Type: "string", Enum: audit.Changes(), Description: "Only changes with this action."},
			{
				Name: objectParam, In: fault.InQuery, Type: "string", Format: "uuid",
				Description: "Only changes of this application with all that belongs to it, or of this API key or endpoint.",
			},
			{Name: fromParam, In: fault.InQuery, Type: "string", Format: "date-time", Description: "Only changes at this time or later."},
			{Name: toParam, In: fault.InQuery, Type: "string", Format: "date-time", Description: "Only changes before this time."},
			{
				Name: limitParam, In: fault.InQuery, Type: "integer", Default: strconv.Itoa(defaultChanges), Min: new(int64(1)), Max: new(int64(maxChanges)),
				Description: "The most changes in an answer.",
			},
			{
				Name: beforeParam, In: fault.InQuery, Type: "string", Format: "uuid",
				Description: "The cursor: meta.next of the previous answer. Absent: from the latest change on.",
			},
		},
		Handle: func(r *api.Request) (*api.Response, error) { return api.Answer(a.trail(r)) },
	}
}

func (a *area) trail(r *api.Request) (*AuditTrail, error) {
	f := account.AuditFilter{Action: r.Query.Get(actionParam)}
	f.Actor, _ = r.ID(actorParam)
	f.Object, _ = r.ID(objectParam)
	f.From, _ = r.Time(fromParam)
	if to, given := r.Time(toParam); given {
		if f.From > to {
			return nil, fault.Field(fault.InQuery, fromParam, fault.DetailOutOfRange, "must not be after to")
		}
		f.To = max(to, 1) // 0 is absent
	}
	before, _ := r.ID(beforeParam)
	found, next, err := a.store.AuditTrail(r.Context(), r.Organization(), f, before, r.Number(limitParam))
	if err != nil {
		return nil, err
	}
	answer := &AuditTrail{Data: append([]account.AuditEntry{}, found...)}
	if !next.IsZero() {
		answer.Meta.Next = &next
	}
	return answer, nil
}
