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
	Permits   int    // how many there are; 0: as many as at first
	Token     uint64 `dynamodbav:"mark"`           // new with every write
	ExpiresAt int64  `dynamodbav:"expiresAtEpoch"` // seconds
}

// TakePermit takes one of the endpoint's permits until the given time and reports
// whether it could. A holder that has one keeps it, until then at least; a permit
// whose time is over is free. How many there are follows from the holders' pace.
func (t *Table) TakePermit(ctx context.Context, r webhook.PermitRequest) (taken bool, err error) {
	k := permitsKey(r.OrganizationID, r.EndpointID)
	err = retry.Contended(ctx, contendedAttempts, func() (done bool, err error) {
		stored, err := read(ctx, t, k, decode[permitsItem])
		if taken = stored.Holders[r.Holder] >= r.Until; taken || err != nil {
			return true, err
		}
		next := permitsItem{Holders: stored.Holders.take(r.Holder, r.Now, r.Until), Permits: r.Pace.Permits(stored.Permits, r.Most)}
		_, holds := stored.Holders[r.Holder]
		free := len(next.Holders) <= next.Permits
		if !free && !holds {
			return true, nil
		}
		next.ExpiresAt = slices.Max(slices.Collect(maps.Values(next.Holders))).Add(permitRetention).Std().Unix()
		if !free { // there are fewer now, and the holder gives its own back
			delete(next.Holders, r.Holder)
		}
		_, done, err = t.putOnce(ctx, "take a permit", encode(k, typePermits, next), newToken(), t.ifLive(stored.Token))
		taken = done && free
		return done, err
	})
	if err != nil {
		return false, fmt.Errorf("take a permit of endpoint %s: %w", r.EndpointID, err)
	}
	return taken, nil
}

// take gives the holder a permit beside those that have not ended.
func (p permits) take(holder string, now, until value.Time) permits {
	next := permits{holder: until}
	for other, end := range p {
		if other != holder && end > now {
			next[other] = end
		}
	}
	return next
}
