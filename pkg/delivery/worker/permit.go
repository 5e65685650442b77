package worker

import (
	"context"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// attemptsPerPermit is how many attempts of an endpoint a process that
	// holds one of its permits may have under way in the main lane, as many as
	// the messages of a batch. With [webhook.PermitHolders] it bounds them at 50
	// over all processes.
	attemptsPerPermit = 10
	// leaseTime is how long a permit is leased. At least minLeaseLeft of it
	// must be left when an attempt starts, which lasts up to 30 s. A lease with
	// less than leaseRenewBelow left is renewed before it comes to that.
	leaseTime       = 45 * time.Second
	leaseRenewBelow = 35 * time.Second
	minLeaseLeft    = 33 * time.Second
	// leaseRefused is how long a process that got no permit does not ask
	// again.
	leaseRefused = time.Second
)

// permits are the leased permits of endpoints, and the attempts that are under
// way with them.
type permits struct {
	store  Permits
	holder string
	clock  func() time.Time

	mu         sync.Mutex
	byEndpoint bounded[value.ID, *permit]
}

// permit is this process's share in the attempts of an endpoint: the lease as
// the store gave it, and what it is used for.
type permit struct {
	lock         chan struct{} // full while the lease is read or the store is asked
	until        time.Time     // of the lease; the zero time when there is none
	refusedUntil time.Time
	running      chan struct{} // holds one for each attempt under way
}

func newPermits(store Permits, clock func() time.Time) *permits {
	return &permits{
		store: store, holder: value.NewRandomID().String(), clock: clock,
		byEndpoint: newBounded[value.ID](rememberedEndpoints, func(p *permit) bool {
			return len(p.lock)+len(p.running) > 0
		}),
	}
}

// find returns the permit of an endpoint. It stays known while its lock is
// held or attempts are under way.
func (p *permits) find(endpoint value.ID) *permit {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, found := p.byEndpoint.get(endpoint)
	if !found {
		one = &permit{lock: make(chan struct{}, 1), running: make(chan struct{}, attemptsPerPermit)}
		p.byEndpoint.put(endpoint, one)
	}
	return one
}

// renew leases the endpoint's permit, or renews the lease, unless as much of
// it is left or it was refused just now. It returns the permit when as much is
// left then, and nil otherwise. One call at a time asks the store.
func (p *permits) renew(ctx context.Context, org, endpoint value.ID, left time.Duration) (*permit, error) {
	one := p.find(endpoint)
	select {
	case one.lock <- struct{}{}:
		defer func() { <-one.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := p.clock()
	switch {
	case one.until.Sub(now) >= left:
		return one, nil
	case now.Before(one.refusedUntil):
		return nil, nil
	}
	until := now.Add(leaseTime)
	held, err := p.store.TakePermit(ctx, org, endpoint, p.holder, value.TimeOf(now), value.TimeOf(until))
	if !held {
		one.refusedUntil = now.Add(leaseRefused)
		return nil, err
	}
	one.until = until
	return one, err
}

// start starts an attempt of the endpoint when the process holds a permit and
// has fewer attempts under way than that permits. end ends the attempt; it is nil
// when it was not started. One whose message came alone needs no permit while the
// process has no other under way: an endpoint that many messages wait for has
// batches of several, so that no more than the processes' first attempts go past
// the bound.
func (p *permits) start(ctx context.Context, org, endpoint value.ID, alone bool) (end func(), err error) {
	one := p.find(endpoint)
	if !alone || len(one.running) > 0 {
		// The lease that was taken when the batch was read may have run low since.
		if one, err = p.renew(ctx, org, endpoint, minLeaseLeft); one == nil || err != nil {
			return nil, err
		}
	}
	select {
	case one.running <- struct{}{}:
		return func() { <-one.running }, nil
	default:
		return nil, nil
	}
}
