package dynamo

import (
	"context"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// attrFiltered is how many events an endpoint did not get in an hour by its
// delivery settings.
const attrFiltered = "filtered"

// AddFiltered adds to the events that the endpoint did not get, in the hour
// that starts at the time, by its delivery settings. A call whose answer was lost
// may count twice.
func (t *Table) AddFiltered(ctx context.Context, org, endpoint value.ID, start value.Time, events int64) error {
	w := t.update(filteredKey(org, endpoint, start), "SET t = :type, expiresAtEpoch = :expires ADD filtered :events", always, item{
		":type": str(typeFiltered), ":expires": expiry(start.Add(webhook.HourRetention)), ":events": num(events),
	})
	_, _, err := t.updateItem(ctx, "count filtered events", w)
	return err
}

// filteredHours reads the hours in [from, to) in which the endpoint did not get
// an event by its delivery settings.
func (t *Table) filteredHours(ctx context.Context, org, endpoint value.ID, from, to value.Time) (hours []*webhook.HourStats, err error) {
	in := between(filteredPartition(org, endpoint), from.String(), (to - 1).String())
	return collect(ctx, t, in, 0, func(it item) (*webhook.HourStats, error) {
		start, err := value.ParseTime(getString(it, attrSK))
		return &webhook.HourStats{Start: start, FilteredCount: getNumber(it, attrFiltered)}, err
	})
}
