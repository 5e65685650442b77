package dynamo

import (
	"context"
	"slices"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// CreateGrant stores a new grant. It is a fault limit_reached when the user has
// granted [account.MaxGrants] to the application, or has [account.MaxPortalSessions]
// for it; of two that are stored at the same time, each may be the last.
func (t *Table) CreateGrant(ctx context.Context, f *account.Family) error {
	own := partition(userGrantsPartition(f.OrganizationID, f.UserID), f.ApplicationID.String()+"#")
	others, err := collect(ctx, t, own, 0, docOf[account.Grant])
	if err != nil {
		return err
	}
	others = slices.DeleteFunc(others, func(g account.Grant) bool { return g.OfPortal() != f.OfPortal() })
	most, what := account.MaxGrants, "grants to"
	if f.OfPortal() {
		most, what = account.MaxPortalSessions, "portal sessions for"
	}
	if len(others) >= most {
		return fault.New(fault.Conflict, fault.CodeLimitReached, "you can have %d %s an application: revoke one first", most, what)
	}
	return orTaken(t.transact(ctx, "create a grant", t.grantWrites(f, ifAbsent)...))
}

// grantWrites store a grant, and what the API shows of it for the list of its user.
func (t *Table) grantWrites(f *account.Family, c condition) []write {
	it := authored(encode(grantKey(f.OrganizationID, f.ApplicationID, f.ID), typeGrant, f), f.ChangedBy)
	shown := docItem(userGrantKey(&f.Grant), typeUserGrant, f.Grant)
	it[attrDoc], it[attrExpires], shown[attrExpires] = shown[attrDoc], expiry(f.ExpiresAt), expiry(f.ExpiresAt)
	return []write{t.put(it, c), t.put(shown, always)}
}

// Grant reads a grant to the application, strongly consistent; nil when there is
// none.
func (t *Table) Grant(ctx context.Context, org, application, id value.ID) (*account.Family, error) {
	return read(ctx, t, grantKey(org, application, id), func(it item) (*account.Family, error) {
		f, err := decodeFound[account.Family](it)
		if f == nil || err != nil {
			return nil, err
		}
		g, err := decodeDoc[account.Grant](it)
		if err == nil {
			f.Grant = *g
		}
		return f, err
	})
}

// Grants reads every grant to the application, in the order of their ids.
func (t *Table) Grants(ctx context.Context, org, application value.ID) ([]account.Grant, error) {
	return collect(ctx, t, partition(grantsPartition(org, application), ""), 0, docOf[account.Grant])
}

// GrantsOf reads every grant of the user.
func (t *Table) GrantsOf(ctx context.Context, org, user value.ID) ([]account.Grant, error) {
	return collect(ctx, t, partition(userGrantsPartition(org, user), ""), 0, docOf[account.Grant])
}

// ReplaceGrant stores what was made of the grant as it was read, and reports
// whether it did: another request may have changed or removed it meanwhile.
func (t *Table) ReplaceGrant(ctx context.Context, f *account.Family) (bool, error) {
	read := f.Version
	f.Version++
	refused, err := t.transact(ctx, "replace a grant", t.grantWrites(f, ifEqual(attrItemVersion, read))...)
	return err == nil && len(refused) == 0, err
}

// DeleteGrant removes a grant and reports whether there was one. The entry of its
// deletion in the audit trail is in the count of applications.
func (t *Table) DeleteGrant(ctx context.Context, g *account.Grant, by *account.AuditEntry) (bool, error) {
	refused, err := t.transact(ctx, "delete a grant",
		t.remove(grantKey(g.OrganizationID, g.ApplicationID, g.ID), ifExists), t.remove(userGrantKey(g), always),
		t.set(countKey(g.OrganizationID), authored(item{}, by), always))
	return err == nil && len(refused) == 0, err
}
