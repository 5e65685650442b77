package dynamo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
)

// waitsRetention is how long an item of waits is kept after its last one.
const waitsRetention = time.Hour

// waitsItem is when each request that waits ends, as it is stored. Requests that
// end at the same time are alike.
type waitsItem struct {
	Version   int64 // rises with every write
	Ends      []value.Time
	ExpiresAt int64 `dynamodbav:"expiresAtEpoch"` // seconds
}

// BeginWait notes that a request of the organization waits until the given time, unless
// most of them wait now. One that does not end its wait counts until then.
func (t *Table) BeginWait(ctx context.Context, org value.ID, most int, now, until value.Time) (begun bool, err error) {
	err = t.changeWaits(ctx, org, func(ends []value.Time) []value.Time {
		ends = slices.DeleteFunc(ends, func(end value.Time) bool { return end <= now })
		if begun = len(ends) < most; !begun {
			return nil
		}
		return append(ends, until)
	})
	return begun, err
}

// EndWait ends a wait that began, and was to last until then.
func (t *Table) EndWait(ctx context.Context, org value.ID, until value.Time) error {
	return t.changeWaits(ctx, org, func(ends []value.Time) []value.Time {
		i := slices.Index(ends, until)
		if i < 0 {
			return nil
		}
		return slices.Delete(ends, i, i+1)
	})
}

// changeWaits stores what change makes of the ends of waits, unless that is nil.
func (t *Table) changeWaits(ctx context.Context, org value.ID, change func([]value.Time) []value.Time) error {
	k := waitsKey(org)
	err := retry.Contended(ctx, contendedAttempts, func() (done bool, err error) {
		stored, err := read(ctx, t, k, decode[waitsItem])
		if err != nil {
			return false, err
		}
		ends := change(stored.Ends)
		if ends == nil {
			return true, nil
		}
		it := encode(k, typeWaits, waitsItem{stored.Version + 1, ends, t.now().Add(waitsRetention).Unix()})
		_, done, err = t.updateItem(ctx, "change the waits", t.setItem(it, ifLast(attrItemVersion, stored.Version)))
		return done, err
	})
	if err != nil {
		return fmt.Errorf("waits of organization %s: %w", org, err)
	}
	return nil
}
