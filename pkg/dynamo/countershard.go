package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// The counter shards of an organization's endpoints share a partition:
// attrBody is a shard's own form, rev rises by one with every write, and
// attrWrite is the token of the transaction that wrote it last.

// CounterShard reads one of an endpoint's counter shards, strongly consistent:
// an empty one of revision 0 when there is none.
func (t *EndpointStore) CounterShard(ctx context.Context, org, endpoint value.ID, number int) (webhook.StoredCounterShard, error) {
	it, err := t.get(ctx, counterShardKey(org, endpoint, number))
	if err != nil {
		return webhook.StoredCounterShard{}, err
	}
	return decodeCounterShard(it, number)
}

// counterShards hands the counter shards of the endpoints from first to last
// to each, in the order of their keys, strongly consistent, in one query.
func (t *EndpointStore) counterShards(ctx context.Context, org, first, last value.ID, each func(endpoint value.ID, s webhook.StoredCounterShard)) error {
	in := between(countersPartition(org), first.String(), last.String()+"$") // "$" is behind every "#"
	return t.query(ctx, in, func(it item) (bool, error) {
		id, digit, found := strings.Cut(getString(it, attrSK), "#")
		if !found || getString(it, attrType) != typeCounters {
			return true, nil // the endpoint's permits
		}
		endpoint, err := value.ParseID(id)
		if err != nil {
			return false, fmt.Errorf("the counter shard %s#%s: %w", id, digit, err)
		}
		s, err := decodeCounterShard(it, strings.Index(hexDigits, digit))
		each(endpoint, s)
		return true, err
	})
}

// CounterShards reads all counter shards of an endpoint in their order.
func (t *EndpointStore) CounterShards(ctx context.Context, org, endpoint value.ID) ([]webhook.StoredCounterShard, error) {
	var found []webhook.StoredCounterShard
	err := t.counterShards(ctx, org, endpoint, endpoint, func(_ value.ID, s webhook.StoredCounterShard) {
		found = append(found, s)
	})
	return found, err
}

// Health reads how an endpoint does; since is what [webhook.HealthOf] takes.
func (t *EndpointStore) Health(ctx context.Context, org, endpoint value.ID, since, now value.Time) (webhook.Health, error) {
	var found []*webhook.CounterShard
	err := t.counterShards(ctx, org, endpoint, endpoint, func(_ value.ID, s webhook.StoredCounterShard) {
		found = append(found, s.Shard)
	})
	if err != nil {
		return webhook.Health{}, err
	}
	return webhook.HealthOf(found, since, now), nil
}

// maxSingleCounters is up to how many endpoints' counters are read one by one.
// More are read by one query from the first to the last.
const maxSingleCounters = 4

// Counters reads the counters of the endpoints; those of one that has counted
// nothing are zero.
func (t *EndpointStore) Counters(ctx context.Context, org value.ID, endpoints ...value.ID) (map[value.ID]webhook.Counters, error) {
	var mu sync.Mutex
	shards := make(map[value.ID][]*webhook.CounterShard, len(endpoints))
	group, inner := errgroup.WithContext(ctx)
	read := func(first, last value.ID) {
		group.Go(func() error {
			return t.counterShards(inner, org, first, last, func(endpoint value.ID, s webhook.StoredCounterShard) {
				mu.Lock()
				defer mu.Unlock()
				shards[endpoint] = append(shards[endpoint], s.Shard)
			})
		})
	}
	if len(endpoints) > maxSingleCounters {
		read(slices.MinFunc(endpoints, value.ID.Compare), slices.MaxFunc(endpoints, value.ID.Compare))
	} else {
		for _, id := range endpoints {
			read(id, id)
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := make(map[value.ID]webhook.Counters, len(endpoints))
	for _, id := range endpoints {
		found[id] = webhook.HealthOf(shards[id], 0, value.TimeOf(t.now())).Counters
	}
	return found, nil
}

// putCounterShard is the write of a counter shard, if it still has the revision
// that was read.
func (t *db) putCounterShard(w *webhook.CounterShardWrite, token uint64) write {
	it := counterShardKey(w.OrganizationID, w.EndpointID, w.Number).newItem(typeCounters)
	it[attrBody], it[attrRevision], it[attrWrite] = binary(w.Next.Encode()), num(w.Revision+1), unsigned(token)
	if w.Revision == 0 {
		return t.put(it, ifAbsent, nil)
	}
	return t.putRevision(it, value.Time(w.Revision))
}

// decodeCounterShard returns an empty shard of revision 0 for what is absent.
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
