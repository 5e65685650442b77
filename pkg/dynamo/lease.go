package dynamo

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// leaseRetention is how long leases are kept after a write, far longer than any
// of them lasts.
const leaseRetention = time.Hour

// leases are those of one thing that only so many may have at a time: an endpoint's
// permits, or the requests of an organization that wait.
type leases struct {
	Holders map[string]value.Time // with when each lease ends
	Most    int                   `dynamodbav:"Permits"` // 0: as many as at first
}

// TakePermit takes one of the endpoint's permits until the given time and reports
// whether it could. A holder that has one keeps it, until then at least; a permit
// whose time is over is free. How many there are follows from the holders' pace.
func (t *Table) TakePermit(ctx context.Context, r webhook.PermitRequest) (taken bool, err error) {
	err = t.changeLeases(ctx, permitsKey(r.OrganizationID, r.EndpointID), typePermits, func(l *leases) (changed bool) {
		taken, changed = l.take(r.Holder, r.Now, r.Until, r.Pace.Permits(l.Most, r.Most))
		return changed
	})
	return taken && err == nil, err
}

// BeginWait notes that a request of the organization waits until the given time, unless
// most of them wait now. One that does not end its wait counts until then.
func (t *Table) BeginWait(ctx context.Context, org, request value.ID, most int, now, until value.Time) (begun bool, err error) {
	err = t.changeLeases(ctx, waitsKey(org), typeWaits, func(l *leases) (changed bool) {
		begun, changed = l.take(request.String(), now, until, most)
		return changed
	})
	return begun && err == nil, err
}

// EndWait ends the wait of a request.
func (t *Table) EndWait(ctx context.Context, org, request value.ID) error {
	return t.changeLeases(ctx, waitsKey(org), typeWaits, func(l *leases) (changed bool) {
		_, changed = l.Holders[request.String()]
		delete(l.Holders, request.String())
		return changed
	})
}

// take leases to the holder until then, if there are fewer than most leases that
// have not ended, and reports whether it has the lease. One of those that are too many
// since there are fewer is taken from its holder.
func (l *leases) take(holder string, now, until value.Time, most int) (taken, changed bool) {
	end, holds := l.Holders[holder]
	if end >= until {
		return true, false
	}
	next := map[string]value.Time{holder: until}
	for other, end := range l.Holders {
		if other != holder && end > now {
			next[other] = end
		}
	}
	if taken = len(next) <= most; !taken {
		delete(next, holder)
	}
	l.Holders, l.Most = next, most
	return taken, taken || holds
}

// changeLeases stores what change makes of the leases, unless it reports that they
// stay.
func (t *Table) changeLeases(ctx context.Context, k key, itemType string, change func(*leases) (changed bool)) error {
	return modify(ctx, t, k, decode, change, func(next *leases, token uint64) (done bool, err error) {
		it := encode(k, itemType, next)
		it[attrToken], it[attrExpires] = num(newToken()), num(t.now().Add(leaseRetention).Unix())
		_, done, err = t.updateItem(ctx, "change leases", t.setItem(it, t.ifLive(token)))
		return done, err
	})
}
