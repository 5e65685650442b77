package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// A counter shard is an item: attrBody is its own form, rev rises by one with
// every write, and attrWrite is the token of the transaction that wrote it last.

// CounterShard reads one of an endpoint's counter shards, strongly consistent:
// an empty one of revision 0 when there is none.
func (t *Table) CounterShard(ctx context.Context, org, endpoint value.ID, number int) (webhook.StoredCounterShard, error) {
	it, err := t.get(ctx, counterShardKey(org, endpoint, number))
	if err != nil {
		return webhook.StoredCounterShard{}, err
	}
	return decodeCounterShard(it, number)
}

const counterQueries = 16 // queries of counter shards at a time

// counterShards reads all counter shards of the endpoints, strongly consistent,
// in the order of their numbers: one query for each endpoint.
func (t *Table) counterShards(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID][]webhook.StoredCounterShard, error) {
	var mu sync.Mutex
	found := make(map[value.ID][]webhook.StoredCounterShard, len(endpoints))
	return found, parallel.UntilError(ctx, counterQueries, slices.All(endpoints), func(ctx context.Context, _ int, id value.ID) error {
		stored, err := collect(ctx, t, partition(countersPartition(org, id), ""), 0, decodeNamedShard)
		mu.Lock()
		defer mu.Unlock()
		if len(stored) > 0 {
			found[id] = stored
		}
		return err
	})
}

// Health reads how an endpoint does; since is what [webhook.HealthOf] takes.
func (t *Table) Health(ctx context.Context, org, endpoint value.ID, since, now value.Time) (webhook.Health, error) {
	stored, err := t.counterShards(ctx, org, endpoint)
	return healthOf(stored[endpoint], since, now), err
}

// Counters reads the counters of the endpoints; those of one that has counted
// nothing are zero.
func (t *Table) Counters(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID]webhook.Counters, error) {
	stored, err := t.counterShards(ctx, org, endpoints...)
	if err != nil {
		return nil, err
	}
	found := make(map[value.ID]webhook.Counters, len(endpoints))
	for _, id := range endpoints {
		found[id] = healthOf(stored[id], 0, value.TimeOf(t.now())).Counters
	}
	return found, nil
}

func healthOf(stored []webhook.StoredCounterShard, since, now value.Time) webhook.Health {
	shards := make([]*webhook.CounterShard, len(stored))
	for i, s := range stored {
		shards[i] = s.Shard
	}
	return webhook.HealthOf(shards, since, now)
}

// putCounterShard is the write of a counter shard, if it still has the revision
// that was read.
func (t *Table) putCounterShard(w *webhook.CounterShardWrite, token uint64) write {
	it := counterShardKey(w.OrganizationID, w.EndpointID, w.Number).newItem(typeCounters)
	it[attrBody], it[attrRevision], it[attrWrite] = binary(w.Next.Encode()), num(w.Revision+1), num(token)
	return t.put(it, ifLast(attrRevision, w.Revision))
}

// decodeNamedShard knows the number of a counter shard from its key.
func decodeNamedShard(it item) (s webhook.StoredCounterShard, err error) {
	k := keyOf(it)
	number, err := shardNumber(k.sk)
	if err != nil {
		return s, fmt.Errorf("the counter shard %s of %s: %w", k.sk, k.pk, err)
	}
	return decodeCounterShard(it, number)
}

// decodeCounterShard returns an empty shard of revision 0 for an absent item.
func decodeCounterShard(it item, number int) (webhook.StoredCounterShard, error) {
	s := webhook.StoredCounterShard{Number: number, Shard: &webhook.CounterShard{}}
	if it == nil {
		return s, nil
	}
	var err error
	if s.Shard, err = webhook.DecodeCounterShard(getBinary(it, attrBody)); err != nil {
		return s, fmt.Errorf("the counter shard %s of %s: %w", getString(it, attrSK), getString(it, attrPK), err)
	}
	s.Revision = getNumber(it, attrRevision)
	return s, nil
}

// putHour is the write of an hour that a counter shard has finished: an item
// of its own, by time and shard. It is written once, together with the shard
// that goes on without it.
func (t *Table) putHour(w *webhook.CounterShardWrite) write {
	it := hourKey(w.OrganizationID, w.EndpointID, w.Finished.Start, w.Number).newItem(typeHour)
	it[attrBody], it[attrExpires] = binary(w.Finished.Encode()), expiry(w.Finished.Start.Add(webhook.HourRetention))
	return t.put(it, always)
}

// Stats reads what the endpoint counted in each hour that starts in [from,
// to), the present one included, in the order of time. Hours without attempts
// and filtered events are left out.
func (t *Table) Stats(ctx context.Context, org, endpoint value.ID, from, to value.Time) ([]*webhook.HourStats, error) {
	if from >= to {
		return nil, nil
	}
	// The counter shards first: an hour that is finished meanwhile is then
	// found twice, with the name of the same shard, and not missed.
	stored, err := t.counterShards(ctx, org, endpoint)
	if err != nil {
		return nil, err
	}
	byKey := map[string]*webhook.HourStats{} // start and shard
	for _, s := range stored[endpoint] {
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
	filtered, err := t.filteredHours(ctx, org, endpoint, from, to)
	if err != nil {
		return nil, err
	}
	for _, h := range filtered {
		byKey[h.Start.String()] = h
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
