package dynamo

import (
	"context"
	"sync"
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
	// maxActivities bounds the organizations that a writer remembers.
	maxActivities = 10_000
)

// activities are the times that this writer knows to be stored.
type activities struct {
	mu    sync.Mutex
	until map[value.ID]value.Time
}

func (a *activities) get(org value.ID) value.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.until[org]
}

func (a *activities) set(org value.ID, until value.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.until) >= maxActivities {
		clear(a.until)
	}
	a.until[org] = until
}

// Activity reads until when an organization is active, eventually consistent; 0
// when it never was. No entry with a later time is in a tail of its records or
// deletions before Activity has risen.
func (t *IndexStore) Activity(ctx context.Context, org value.ID) (value.Time, error) {
	it, err := t.getItem(ctx, activityKey(org), false)
	return getTime(it, attrActive), err
}

// announce raises the activity of an organization to the time of an entry.
func (t *IndexStore) announce(ctx context.Context, org value.ID, at value.Time) error {
	if at <= t.active.get(org) {
		return nil
	}
	until := at.Add(activityLease)
	it := activityKey(org).newItem(typeActivity)
	it[attrActive] = num(until)
	current, done, err := t.putItem(ctx, "announce entries of tails", t.put(it, "attribute_not_exists(PK) OR active < :until", item{":until": num(until)}))
	if err != nil {
		return err
	}
	if !done {
		until = getTime(current, attrActive)
	}
	t.active.set(org, until)
	return nil
}
