package dynamo

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// recoveryRetention is how long a recovery can be read: longer than the
// deliveries that it sent.
const recoveryRetention = 32 * 24 * time.Hour

// CreateRecovery stores a recovery. Its due mark lets the sweeper continue it
// from next on, and its endpoint names it, so that there is one at a time. A
// fault conflict says whether the endpoint is not ACTIVE or another recovery
// of it runs; not_found means that the endpoint does not exist.
func (t *Table) CreateRecovery(ctx context.Context, r *webhook.Recovery, next value.Time) error {
	refused, err := t.transact(ctx, "create a recovery", t.put(encodeRecovery(r, next), ifAbsent),
		t.set(endpointKey(r.OrganizationID, r.EndpointID), item{attrRecovery: str(r.ID.String())},
			when("#status = :active AND attribute_not_exists(recovery)", item{":active": str(string(webhook.Active))})))
	if endpoint, is := refused[1]; is {
		return recoveryConflict(endpoint)
	}
	return orTaken(refused, err)
}

// recoveryConflict says why an endpoint takes no recovery. One that is absent
// or deleted has no status.
func recoveryConflict(endpoint item) error {
	status := getString(endpoint, attrStatus)
	switch {
	case status == "":
		return fault.Missing("webhook endpoint")
	case status != string(webhook.Active):
		return fault.New(fault.Conflict, fault.CodeConflict, "the endpoint is %s: set its status to ACTIVE first", status)
	}
	return fault.New(fault.Conflict, fault.CodeConflict,
		"the recovery %s of the endpoint runs already: wait for it to end", getString(endpoint, attrRecovery))
}

// Recovery reads one recovery; nil when the endpoint has none with the id.
func (t *Table) Recovery(ctx context.Context, org, endpoint, id value.ID) (*webhook.Recovery, error) {
	return read(ctx, t, recoveryKey(org, endpoint, id), decodeDoc[webhook.Recovery])
}

// PutRecovery replaces previous by next, to be continued from the given time
// on while it runs; a recovery that ended frees its endpoint for another. It
// fails with [fault.ErrChanged] when another writer was faster.
func (t *Table) PutRecovery(ctx context.Context, previous, next *webhook.Recovery, from value.Time) error {
	writes := []write{t.put(encodeRecovery(next, from), ifRevision(previous.UpdatedAt))}
	if next.Status != webhook.RecoveryRunning {
		writes = append(writes, t.set(endpointKey(next.OrganizationID, next.EndpointID),
			item{attrRecovery: nil}, when("recovery = :id", item{":id": str(next.ID.String())})))
	}
	refused, err := t.transact(ctx, "put a recovery", writes...)
	if err == nil && len(refused) > 0 && !refused.has(0) { // the endpoint was deleted
		refused, err = t.transact(ctx, "put a recovery", writes[0])
	}
	if len(refused) > 0 {
		return fault.ErrChanged
	}
	return err
}

func encodeRecovery(r *webhook.Recovery, from value.Time) item {
	it := docItem(recoveryKey(r.OrganizationID, r.EndpointID, r.ID), typeRecovery, r)
	it[attrRevision], it[attrExpires] = num(r.UpdatedAt), expiry(r.CreatedAt.Add(recoveryRetention))
	if r.Status == webhook.RecoveryRunning {
		markDue(it, r.ID, from)
	}
	return it
}
