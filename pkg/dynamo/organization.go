package dynamo

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// attrActive is until when an organization is active. Before an entry is
// appended to the tail of records or deletions, the time is raised so that it is
// not before the entry's. A reader of these tails who finds the time unchanged
// long after it is over thus knows, by half a read unit, that none of them has a
// new entry. The time is raised by activityLease at least, so that each writer
// pays for it once in that time, however many entries it appends.
const (
	attrActive    = "active"
	activityLease = 30 * time.Second
)

// Activity reads until when an organization is active, eventually consistent; 0
// when it never was. No entry with a later time is in a tail of its records or
// deletions before Activity has risen.
func (t *Table) Activity(ctx context.Context, org value.ID) (value.Time, error) {
	it, err := t.getItem(ctx, activityKey(org), false)
	return getTime(it, attrActive), err
}

// announce raises the activity of an organization to the time of an entry.
func (t *Table) announce(ctx context.Context, org value.ID, at value.Time) error {
	if at <= t.active.Get(org) {
		return nil
	}
	until := at.Add(activityLease)
	it := activityKey(org).newItem(typeActivity)
	it[attrActive] = num(until)
	current, done, err := t.putItem(ctx, "announce entries of tails", t.put(it, when("attribute_not_exists(PK) OR active < :until", item{":until": num(until)})))
	if err != nil {
		return err
	}
	if !done {
		until = getTime(current, attrActive)
	}
	t.active.Set(org, until)
	return nil
}

// RegisterOrganization adds an organization to the register that
// [Table.Organizations] reads. To add it again changes nothing, and costs
// one write unit.
func (t *Table) RegisterOrganization(ctx context.Context, org value.ID) error {
	_, _, err := t.putItem(ctx, "register an organization", t.put(organizationKey(org).newItem(typeOrganization), always))
	return err
}

// Organizations lists the registered organizations in the order of their ids,
// strongly consistent: one read unit for each 4 KB of the register, some sixty
// organizations. An organization is in the register once the indexer has seen
// a record or delivery of it; one that has only applications is not. None is
// ever removed.
func (t *Table) Organizations(ctx context.Context) ([]value.ID, error) {
	return collect(ctx, t, partition(organizationsPartition, ""), 0, func(it item) (value.ID, error) {
		return value.ParseID(getString(it, attrSK))
	})
}
