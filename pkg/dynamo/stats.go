package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// putHour is the write of an hour that a counter shard has finished: an item
// of its own, by time and shard. It is written once, together with the shard
// that goes on without it.
func (t *db) putHour(w *webhook.CounterShardWrite) write {
	it := hourKey(w.OrganizationID, w.EndpointID, w.Finished.Start, w.Number).newItem(typeHour)
	it[attrBody], it[attrExpires] = binary(w.Finished.Encode()), expiry(w.Finished.Start.Add(webhook.HourRetention))
	return t.put(it, "", nil)
}

// Stats reads what the endpoint counted in each hour that starts in [from,
// to), the present one included, in the order of time. Hours without attempts
// are left out.
func (t *EndpointStore) Stats(ctx context.Context, org, endpoint value.ID, from, to value.Time) ([]*webhook.HourStats, error) {
	if from >= to {
		return nil, nil
	}
	// The counter shards first: an hour that is finished meanwhile is then
	// found twice, with the name of the same shard, and not missed.
	stored, err := t.CounterShards(ctx, org, endpoint)
	if err != nil {
		return nil, err
	}
	byKey := map[string]*webhook.HourStats{} // start and shard
	for _, s := range stored {
		h := s.Shard.Hour()
		if h.Start >= from && h.Start < to && h.SuccessCount+h.FailureCount > 0 {
			byKey[hourKey(org, endpoint, h.Start, s.Number).sk] = h
		}
	}
	in := between(statsPartition(org, endpoint), from.String(), to.String())
	err = t.query(ctx, in, func(it item) (bool, error) {
		h, err := webhook.DecodeHourStats(getBinary(it, attrBody))
		if err != nil {
			return false, fmt.Errorf("%s of %s: %w", getString(it, attrSK), getString(it, attrPK), err)
		}
		byKey[getString(it, attrSK)] = h
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	var hours []*webhook.HourStats
	for _, k := range slices.Sorted(maps.Keys(byKey)) { // times as text are in order
		h := byKey[k]
		if last := len(hours) - 1; last >= 0 && hours[last].Start == h.Start {
			hours[last].Merge(h)
		} else {
			hours = append(hours, h)
		}
	}
	return hours, nil
}
