package dynamo

import (
	"context"
	"slices"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
)

// CreateGrant stores a new grant. It is a fault limit_reached when the user has
// granted [account.MaxGrants] to the application; of two that are stored at the
// same time, each may be the last.
func (t *Table) CreateGrant(ctx context.Context, f *account.Family) error {
	others, err := t.grants(ctx, f.OrganizationID, applicationGrants(f.ApplicationID), f.UserID)
	if err != nil {
		return err
	}
	if len(others) >= account.MaxGrants {
		return fault.New(fault.Conflict, fault.CodeLimitReached, "you can have granted %d to an application: revoke one first", account.MaxGrants)
	}
	_, _, err = t.putItem(ctx, "create a grant", t.put(grantItem(f), ifAbsent))
	return err
}

func grantItem(f *account.Family) item {
	it := authored(encode(grantKey(f.OrganizationID, f.ApplicationID, f.ID), typeGrant, f), f.ChangedBy)
	it[attrDoc], it[attrExpires] = encodeDoc(f.Grant), expiry(f.ExpiresAt)
	return it
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
	return t.grants(ctx, org, applicationGrants(application), value.ID{})
}

// GrantsOf reads every grant of the user.
func (t *Table) GrantsOf(ctx context.Context, org, user value.ID) ([]account.Grant, error) {
	return t.grants(ctx, org, grantPrefix, user)
}

// grants reads those of the user, or of all where that is zero.
func (t *Table) grants(ctx context.Context, org value.ID, prefix string, user value.ID) ([]account.Grant, error) {
	found, err := collect(ctx, t, partition(developerPartition(org), prefix), 0, func(it item) (g account.Grant, err error) {
		stored, err := decodeDoc[account.Grant](it)
		if err == nil {
			g = *stored
		}
		return g, err
	})
	return slices.DeleteFunc(found, func(g account.Grant) bool { return !user.IsZero() && g.UserID != user }), err
}

// ReplaceGrant stores what was made of the grant as it was read, and reports
// whether it did: another request may have changed or removed it meanwhile.
func (t *Table) ReplaceGrant(ctx context.Context, f *account.Family) (bool, error) {
	read := f.Version
	f.Version++
	refused, err := t.transact(ctx, "replace a grant", t.put(grantItem(f), ifEqual(attrItemVersion, read)))
	return err == nil && len(refused) == 0, err
}

// DeleteGrant removes a grant and reports whether there was one. The entry of its
// deletion in the audit trail is in the count of applications.
func (t *Table) DeleteGrant(ctx context.Context, org, application, id value.ID, by *account.AuditEntry) (bool, error) {
	refused, err := t.transact(ctx, "delete a grant",
		t.remove(grantKey(org, application, id), ifExists), t.set(countKey(org), authored(item{}, by), always))
	return err == nil && len(refused) == 0, err
}
