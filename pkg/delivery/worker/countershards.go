package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// shardPools hands out the counter shards of endpoints, each to one writer of
// this process at a time, as they were last read or written. Other processes
// may write the same ones. A write then conflicts and learns the shard's
// present state, and this process goes over to another shard.
type shardPools struct {
	store Outcomes

	mu         sync.Mutex
	byEndpoint bounded[value.ID, *shardPool]
}

// shardPool is the counter shards of one endpoint.
type shardPool struct {
	taken chan struct{} // holds one for each shard in use

	mu sync.Mutex
	// free are those not in use, the last used one at the end, those that
	// this process has not read at the start.
	free []webhook.StoredCounterShard
}

// takenShard is a counter shard in use by one writer.
type takenShard struct {
	webhook.StoredCounterShard // its Shard is nil until it is read

	endpoint  *webhook.Endpoint
	pool      *shardPool
	contested bool // other processes write it too
}

func newShardPools(store Outcomes) *shardPools {
	return &shardPools{store: store, byEndpoint: newBounded[value.ID](rememberedEndpoints, func(p *shardPool) bool {
		return len(p.taken) > 0
	})}
}

// pool returns the pool of an endpoint.
func (s *shardPools) pool(endpoint value.ID) *shardPool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, found := s.byEndpoint.get(endpoint)
	if !found {
		p = &shardPool{taken: make(chan struct{}, webhook.MaxCounterShards)}
		for _, number := range rand.Perm(webhook.MaxCounterShards) { //nolint:gosec // spreads, keeps no secret
			p.free = append(p.free, webhook.StoredCounterShard{Number: number})
		}
		s.byEndpoint.put(endpoint, p)
	}
	return p
}

// take waits for a counter shard of the endpoint, which must be given back. A
// writer that takes shards of several endpoints takes them in the order of
// the endpoints, so that no two wait for one another.
func (s *shardPools) take(ctx context.Context, e *webhook.Endpoint) (*takenShard, error) {
	p := s.pool(e.ID)
	select {
	case p.taken <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	last := len(p.free) - 1
	one := &takenShard{StoredCounterShard: p.free[last], endpoint: e, pool: p}
	p.free = p.free[:last]
	p.mu.Unlock()
	if one.Shard != nil {
		return one, nil
	}
	stored, err := s.store.CounterShard(ctx, e.OrganizationID, e.ID, one.Number)
	if err != nil {
		one.giveBack()
		return nil, err
	}
	one.StoredCounterShard = stored
	return one, nil
}

// giveBack ends the use of a counter shard.
func (t *takenShard) giveBack() {
	p := t.pool
	p.mu.Lock()
	if t.contested || t.Shard == nil {
		p.free = slices.Insert(p.free, 0, webhook.StoredCounterShard{Number: t.Number})
	} else {
		p.free = append(p.free, t.StoredCounterShard)
	}
	p.mu.Unlock()
	<-p.taken
}

// takeShards takes a counter shard for each endpoint whose attempts count, in
// the order of the endpoints.
func (w *Worker) takeShards(ctx context.Context, messages []*message) ([]*takenShard, error) {
	var endpoints []*webhook.Endpoint
	for _, m := range messages {
		if !m.input.Delivery.Test {
			endpoints = append(endpoints, m.input.Endpoint)
		}
	}
	slices.SortStableFunc(endpoints, func(a, b *webhook.Endpoint) int { return a.ID.Compare(b.ID) })
	endpoints = slices.CompactFunc(endpoints, func(a, b *webhook.Endpoint) bool { return a.ID == b.ID })
	var shards []*takenShard
	for _, e := range endpoints {
		err := retryWhileThrottled(ctx, func() error {
			s, err := w.shards.take(ctx, e)
			if err == nil {
				shards = append(shards, s)
			}
			return err
		})
		if err != nil {
			w.returnShards(shards)
			return nil, err
		}
	}
	return shards, nil
}

func (w *Worker) returnShards(shards []*takenShard) {
	for _, s := range shards {
		s.giveBack()
	}
}
