package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// maxTallyTries bounds the tries of a count that throttles or does not answer.
const maxTallyTries = 4

// Tally reads what is counted of an endpoint, strongly consistent: an empty one
// when nothing is.
func (t *Table) Tally(ctx context.Context, org, endpoint value.ID) (*webhook.Tally, error) {
	return read(ctx, t, tallyKey(org, endpoint), decodeTally)
}

// PutTally stores the next tally of the delivery's endpoint, with the hours and
// days that it finished, in the place of the revision before it. When another
// writer was faster it returns what that one stored. A write that met its own
// earlier try has succeeded.
func (t *Table) PutTally(ctx context.Context, d *webhook.Delivery, next *webhook.Tally, finished webhook.Finished) (current *webhook.Tally, done bool, err error) {
	token := newToken()
	it := tallyKey(d.OrganizationID, d.EndpointID).newItem(typeCounters)
	it[attrBody], it[attrRevision], it[attrToken] = binary(next.Encode()), num(next.Revision), num(token)
	put := t.put(it, ifLast(attrRevision, next.Revision-1))
	const tried = "count outcomes"
	var found item
	if len(finished.Hours)+len(finished.Days) == 0 {
		found, done, err = t.putItem(ctx, tried, put)
	} else {
		var refused refusals
		refused, err = t.transactTries(ctx, tried, maxTallyTries, append([]write{put}, t.putFinished(d, finished)...))
		found, done = refused[0], err == nil && len(refused) == 0
	}
	if done || err != nil || getUnsigned(found, attrToken) == token {
		return nil, err == nil, err
	}
	current, err = decodeTally(found)
	return current, false, err
}

// putFinished are the writes of finished hours and days.
func (t *Table) putFinished(d *webhook.Delivery, finished webhook.Finished) (writes []write) {
	for _, h := range finished.Hours {
		it := hourKey(d.OrganizationID, d.EndpointID, h.Start).newItem(typeHour)
		it[attrBody], it[attrExpires] = binary(h.Encode()), expiry(h.Start.Add(webhook.HourRetention))
		writes = append(writes, t.put(it, always))
	}
	for _, day := range finished.Days {
		it := encode(eventDayKey(d.OrganizationID, d.ApplicationID, d.EndpointID, day.Start), typeEventDay, day)
		it[attrExpires] = expiry(day.Start.Add(usageRetention))
		writes = append(writes, t.put(it, always))
	}
	return writes
}

// decodeTally returns an empty tally for an absent item.
func decodeTally(it item) (*webhook.Tally, error) {
	if it == nil {
		return &webhook.Tally{}, nil
	}
	tally, err := webhook.DecodeTally(getBinary(it, attrBody))
	if err != nil {
		return nil, fmt.Errorf("the tally of %s: %w", getString(it, attrPK), err)
	}
	tally.Revision = getNumber(it, attrRevision)
	return tally, nil
}

// tallies reads the tallies of the endpoints, strongly consistent; empty ones
// where nothing is counted.
func (t *Table) tallies(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID]*webhook.Tally, error) {
	found, err := lookup[*webhook.Tally](ctx, t, endpoints, true, func(id value.ID) key { return tallyKey(org, id) })
	for _, id := range endpoints {
		if found[id] == nil {
			found[id] = &webhook.Tally{}
		}
	}
	return found, err
}

// Counters reads the counters of the endpoints; those of one that has counted
// nothing are zero.
func (t *Table) Counters(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID]webhook.Counters, error) {
	found, err := t.tallies(ctx, org, endpoints...)
	counters := make(map[value.ID]webhook.Counters, len(found))
	for id, tally := range found {
		counters[id] = tally.Counters()
	}
	return counters, err
}

// Stats reads what the endpoint counted in each hour that starts in [from,
// to), the present one included, in the order of time. Hours without attempts
// and filtered events are left out.
func (t *Table) Stats(ctx context.Context, org, endpoint value.ID, from, to value.Time) ([]*webhook.HourStats, error) {
	if from >= to {
		return nil, nil
	}
	// The tally first: an hour that is finished meanwhile is then found twice, and
	// not missed.
	tally, err := t.Tally(ctx, org, endpoint)
	if err != nil {
		return nil, err
	}
	byStart := map[value.Time]*webhook.HourStats{}
	if h := tally.Hour(); h.Start >= from && h.Start < to && h.SuccessCount+h.FailureCount > 0 {
		byStart[h.Start] = h
	}
	first, last := from.String(), (to - 1).String()
	err = t.query(ctx, between(statsPartition(org, endpoint), first, last), func(it item) (bool, error) {
		h, err := webhook.DecodeHourStats(getBinary(it, attrBody))
		if err != nil {
			return false, fmt.Errorf("%s of %s: %w", getString(it, attrSK), getString(it, attrPK), err)
		}
		byStart[h.Start] = h
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	err = t.query(ctx, between(filteredPartition(org, endpoint), first, last), func(it item) (bool, error) {
		start, err := value.ParseTime(getString(it, attrSK))
		h := &webhook.HourStats{Start: start, FilteredCount: getNumber(it, attrFiltered)}
		if counted := byStart[start]; counted != nil {
			h.Merge(counted)
		}
		byStart[start] = h
		return true, err
	})
	hours := make([]*webhook.HourStats, 0, len(byStart))
	for _, start := range slices.Sorted(maps.Keys(byStart)) {
		hours = append(hours, byStart[start])
	}
	return hours, err
}

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
