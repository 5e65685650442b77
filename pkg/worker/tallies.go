package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// tallies hands out the tallies of endpoints, each to one writer of this
// process at a time, as they were last read or written. Other processes may
// write the same ones: then a write clashes, brings the tally as it is, and
// this process goes over to another.
type tallies struct {
	store Outcomes

	mu         sync.Mutex
	byEndpoint bounded[value.ID, *ledger]
}

// ledger is the tallies of one endpoint.
type ledger struct {
	free     []*tally      // known and not in use, the last used at the end
	unknown  []int         // numbers of those that this process has not read
	awaiting []chan *tally // writers for whom none was left, the first first
	users    int           // tallies in use
}

// tally is one of an endpoint's tallies as this process knows it.
type tally struct {
	webhook.StoredCounterShard

	org, endpoint value.ID
	ledger        *ledger
	contested     bool // others write it too
}

func newTallies(store Outcomes) *tallies {
	return &tallies{store: store, byEndpoint: newBounded[value.ID](remembered, func(l *ledger) bool {
		return l.users+len(l.awaiting) > 0
	})}
}

// take waits for a tally of the endpoint, which must be given back. Who takes
// tallies of several endpoints takes them in the order of the endpoints, so
// that no two wait for one another.
func (t *tallies) take(ctx context.Context, org, endpoint value.ID) (*tally, error) {
	one, err := t.reserve(ctx, org, endpoint)
	if err != nil || one.Shard != nil {
		return one, err
	}
	stored, err := t.store.CounterShard(ctx, org, endpoint, one.Number)
	if err != nil {
		one.contested = true // nothing is known of it
		t.giveBack(one)
		return nil, err
	}
	one.StoredCounterShard = stored
	return one, nil
}

func (t *tallies) reserve(ctx context.Context, org, endpoint value.ID) (*tally, error) {
	t.mu.Lock()
	l, found := t.byEndpoint.get(endpoint)
	if !found {
		l = &ledger{unknown: rand.Perm(webhook.MaxCounterShards)} //nolint:gosec // spreads, keeps no secret
		t.byEndpoint.put(endpoint, l)
	}
	switch {
	case len(l.free) > 0:
		defer t.mu.Unlock()
		one := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		l.users++
		return one, nil
	case len(l.unknown) > 0:
		defer t.mu.Unlock()
		one := &tally{StoredCounterShard: webhook.StoredCounterShard{Number: l.unknown[0]}, org: org, endpoint: endpoint, ledger: l}
		l.unknown = l.unknown[1:]
		l.users++
		return one, nil
	}
	turn := make(chan *tally, 1)
	l.awaiting = append(l.awaiting, turn)
	t.mu.Unlock()
	select {
	case one := <-turn:
		return one, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(l.awaiting, turn); i >= 0 {
		l.awaiting = slices.Delete(l.awaiting, i, i+1)
	} else {
		l.put(<-turn) // it came at the same moment
	}
	return nil, ctx.Err()
}

// giveBack ends the use of a tally.
func (t *tallies) giveBack(one *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one.ledger.put(one)
}

// put hands a tally that was in use to the next.
func (l *ledger) put(one *tally) {
	if len(l.awaiting) > 0 {
		turn := l.awaiting[0]
		l.awaiting = l.awaiting[1:]
		one.contested = false
		turn <- one
		return
	}
	l.users--
	if one.contested {
		l.unknown = append(l.unknown, one.Number)
		return
	}
	l.free = append(l.free, one)
}
