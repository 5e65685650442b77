package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// permitRetention is how long an item of permits is kept when nobody holds
// one. Its doc says who holds a permit until when, and attrToken is new with
// every write.
const permitRetention = time.Hour

// permits are the holders of an endpoint's permits, with when they end.
type permits map[string]value.Time

// TakePermit takes one of the endpoint's [webhook.PermitHolders] permits until
// the given time and reports whether it could. A holder that has one keeps it,
// until then at least; a permit whose time is over is free.
func (t *Table) TakePermit(ctx context.Context, org, endpoint value.ID, holder string, now, until value.Time) (bool, error) {
	it, err := t.get(ctx, permitsKey(org, endpoint))
	if err != nil {
		return false, err
	}
	taken := false
	err = retry.Contended(ctx, contendedAttempts, func() (done bool, err error) {
		held, err := decodeDoc[permits](it)
		if err != nil {
			return false, err
		}
		if held == nil {
			held = &permits{}
		}
		if taken = (*held)[holder] >= until; taken {
			return true, nil
		}
		next, free := held.take(holder, now, until)
		if !free {
			return true, nil
		}
		it, taken, err = t.putPermits(ctx, org, endpoint, getUnsigned(it, attrToken), next)
		return taken, err
	})
	if err != nil {
		return false, fmt.Errorf("take a permit of endpoint %s: %w", endpoint, err)
	}
	return taken, nil
}

// take gives the holder a permit; free is false when there is none.
func (p permits) take(holder string, now, until value.Time) (next permits, free bool) {
	next = maps.Clone(p)
	maps.DeleteFunc(next, func(_ string, end value.Time) bool { return end <= now })
	if _, has := next[holder]; !has && len(next) >= webhook.PermitHolders {
		return nil, false
	}
	next[holder] = until
	return next, true
}

// putPermits writes the permits if they still have the token that they were read
// with, 0 for none. Otherwise it returns them as they are.
func (t *Table) putPermits(ctx context.Context, org, endpoint value.ID, read uint64, p permits) (current item, done bool, err error) {
	it := docItem(permitsKey(org, endpoint), typePermits, p)
	it[attrExpires] = expiry(slices.Max(slices.Collect(maps.Values(p))).Add(permitRetention))
	return t.putOnce(ctx, "take a permit", it, newToken(), ifLast(attrToken, read))
}
