package dynamo

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook/source"
)

// sourceOrganization says whose a source is.
type sourceOrganization struct{ OrganizationID value.ID }

// CreateSource stores a new source, and the answer that shows it, if one is kept. A
// fault limit_reached means that there are [source.MaxSources] already.
func (t *Table) CreateSource(ctx context.Context, s *source.Source, kept *idempotency.Kept) error {
	writes := []write{
		t.put(encodeSource(s), ifAbsent),
		t.put(encode(sourceOrganizationKey(s.ID), typeSourceOrg, sourceOrganization{s.OrganizationID}), ifAbsent),
		t.countOne(sourceCountKey(s.OrganizationID), "sources", source.MaxSources),
	}
	refused, err := t.transact(ctx, "create a source", t.withAnswers(writes, []*idempotency.Kept{kept})...)
	if refused.has(2) {
		return fault.New(fault.Conflict, fault.CodeLimitReached, "an organization can have %d sources: delete one first", source.MaxSources)
	}
	return orLost(refused, len(writes), []*idempotency.Kept{kept}, err)
}

// SourceByID reads a source whose organization is not known, strongly consistent;
// nil when there is none, after as many reads, so that the time does not tell.
func (t *Table) SourceByID(ctx context.Context, id value.ID) (*source.Source, error) {
	of, err := read(ctx, t, sourceOrganizationKey(id), decodeFound[sourceOrganization])
	if err != nil {
		return nil, err
	}
	return t.Source(ctx, value.Or(of, sourceOrganization{}).OrganizationID, id)
}

// Source reads one source, strongly consistent; nil when the organization has none
// with the id.
func (t *Table) Source(ctx context.Context, org, id value.ID) (*source.Source, error) {
	return read(ctx, t, sourceKey(org, id), decodeDoc[source.Source])
}

// Sources reads every source of the organization, in the order of their ids.
func (t *Table) Sources(ctx context.Context, org value.ID) ([]source.Source, error) {
	return collect(ctx, t, partition(sourcesPartition(org), sourcePrefix), 0, docOf[source.Source])
}

// ChangeSource stores what change makes of the source, unless that is the same one,
// and returns it; nil when there is none. An error of change ends the attempt.
func (t *Table) ChangeSource(ctx context.Context, org, id value.ID, change func(*source.Source) (*source.Source, error)) (next *source.Source, err error) {
	found, err := changeItem(ctx, t, "source", sourceKey(org, id), decodeDoc[source.Source],
		func(s *source.Source, _ item) (_ []write, err error) {
			if next, err = change(s); err != nil || next == s {
				return nil, err
			}
			return []write{t.put(encodeSource(next), ifRevision(s.UpdatedAt))}, nil
		})
	if !found {
		return nil, err
	}
	return next, nil
}

// DeleteSource removes the source and reports whether there was one. The entry of the
// deletion in the audit trail is in the count. An error of check keeps the source.
// What is known of the shop's objects stays: nothing reads it any more.
func (t *Table) DeleteSource(ctx context.Context, org, id value.ID, check func(*source.Source) (*account.AuditEntry, error)) (bool, error) {
	return changeItem(ctx, t, "source", sourceKey(org, id), decodeDoc[source.Source],
		func(s *source.Source, _ item) ([]write, error) {
			by, err := check(s)
			return []write{
				t.remove(sourceKey(org, id), ifRevision(s.UpdatedAt)), t.remove(sourceOrganizationKey(id), always),
				t.update(sourceCountKey(org), "SET changedBy = :by ADD sources :less", always, item{":by": encodeDoc(by), ":less": num(-1)}),
			}, err
		})
}

func encodeSource(s *source.Source) item {
	it := authored(docItem(sourceKey(s.OrganizationID, s.ID), typeSource, s), s.ChangedBy)
	it[attrRevision] = num(s.UpdatedAt)
	return it
}

// ChangeShopObject stores what change makes of what is known of an object of the
// source's shop, if it says so. Change may be called again with what another request
// made of it. An object that the shop deleted is forgotten with its tombstones.
func (t *Table) ChangeShopObject(ctx context.Context, s *source.Source, kind commerce.Kind, id string, change func(*source.Object) bool) error {
	return changeShop(ctx, t, shopKey(s.OrganizationID, s.ID, string(kind), id), typeShopObject, change, func(o *source.Object) time.Duration {
		if o.Deleted {
			return commerce.TombstoneAge
		}
		return 0
	})
}

// ChangeShopItem does the same for an inventory item.
func (t *Table) ChangeShopItem(ctx context.Context, s *source.Source, id string, change func(*source.Item) bool) error {
	return changeShop(ctx, t, shopKey(s.OrganizationID, s.ID, "item", id), typeShopItem, change, func(i *source.Item) time.Duration {
		if i.ProductID == nil {
			return source.LevelsWait
		}
		return 0
	})
}

// maxShopBytes bounds what is known of an object or item, which is one item of the table.
const maxShopBytes = 390 << 10

func changeShop[T any](ctx context.Context, t *Table, k key, itemType string, change func(*T) bool, age func(*T) time.Duration) error {
	decode := func(it item) (T, error) {
		v, err := decodeDoc[T](it)
		return value.Or(v, *new(T)), err
	}
	return modify(ctx, t, k, decode, change, func(next *T, token uint64) (done bool, err error) {
		it := docItem(k, itemType, next)
		if len(getString(it, attrDoc)) > maxShopBytes {
			return false, fault.New(fault.TooLarge, "payload_too_large", "the object has more variants or longer fields than the service keeps of one")
		}
		if d := age(next); d > 0 {
			it[attrExpires] = expiry(value.TimeOf(t.now().Add(d)))
		}
		_, done, err = t.putOnce(ctx, "put what is known of a shop", it, newToken(), t.ifLive(token))
		return done, err
	})
}
