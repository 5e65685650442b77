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

// permitRetention is how long an item of permits is kept when nobody holds one.
const permitRetention = time.Hour

// permits are the holders of an endpoint's permits, with when they end.
type permits map[string]value.Time

// permitsItem is an endpoint's permits as they are stored.
type permitsItem struct {
	Holders   permits
	Token     uint64 `dynamodbav:"mark"`           // new with every write
	ExpiresAt int64  `dynamodbav:"expiresAtEpoch"` // seconds
}

// TakePermit takes one of the endpoint's [webhook.PermitHolders] permits until
// the given time and reports whether it could. A holder that has one keeps it,
// until then at least; a permit whose time is over is free.
func (t *Table) TakePermit(ctx context.Context, org, endpoint value.ID, holder string, now, until value.Time) (taken bool, err error) {
	k := permitsKey(org, endpoint)
	err = retry.Contended(ctx, contendedAttempts, func() (done bool, err error) {
		stored, err := read(ctx, t, k, decode[permitsItem])
		if taken = stored.Holders[holder] >= until; taken || err != nil {
			return true, err
		}
		next, free := stored.Holders.take(holder, now, until)
		if !free {
			return true, nil
		}
		last := slices.Max(slices.Collect(maps.Values(next)))
		it := encode(k, typePermits, permitsItem{Holders: next, ExpiresAt: last.Add(permitRetention).Std().Unix()})
		_, taken, err = t.putOnce(ctx, "take a permit", it, newToken(), t.ifLive(stored.Token))
		return taken, err
	})
	if err != nil {
		return false, fmt.Errorf("take a permit of endpoint %s: %w", endpoint, err)
	}
	return taken, nil
}

// take gives the holder a permit; free is false when there is none.
func (p permits) take(holder string, now, until value.Time) (next permits, free bool) {
	next = permits{holder: until}
	for other, end := range p {
		if other != holder && end > now {
			next[other] = end
		}
	}
	return next, len(next) <= webhook.PermitHolders
}
