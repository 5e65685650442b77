package worker

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const (
	// leaseMargin is how much longer than an attempt, with the record of its outcome,
	// a permit is leased: an attempt that starts later renews it. What a process that
	// dies holds is free when its lease ends.
	leaseMargin = 10 * time.Second
	// leaseRefused is how long a process that got no permit does not ask
	// again.
	leaseRefused = time.Second
	// maxKnownPermits is how many permits a process remembers, but for those in use.
	maxKnownPermits = 4096
)

// permits are the leased permits of endpoints, and the attempts that are under
// way with them.
type permits struct {
	store  Permits
	most   int // permits of an endpoint
	holder string
	clock  func() time.Time

	mu    sync.Mutex
	known map[permitName]*permit
}

// permitName names a permit of an endpoint to this process: it needs a second one
// when it runs several batches at a time, as local runs do.
type permitName struct {
	endpoint value.ID
	number   int
}

// permit is a share of this process in the attempts of an endpoint: the lease as
// the store gave it, and what it is used for.
type permit struct {
	holder       string
	lock         chan struct{} // full while the lease is read or the store is asked
	until        time.Time     // of the lease; the zero time when there is none
	refusedUntil time.Time
	running      chan struct{} // holds one for each attempt under way

	mu   sync.Mutex
	pace webhook.Pace // since the store was last asked
}

func newPermits(store Permits, most int, clock func() time.Time) *permits {
	return &permits{
		store: store, most: most, holder: value.NewRandomID().String(), clock: clock,
		known: map[permitName]*permit{},
	}
}

// find returns a permit. When too many are known, those that are idle are forgotten:
// their lock is free and no attempt is under way.
func (p *permits) find(endpoint value.ID, number int) *permit {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := permitName{endpoint, number}
	one := p.known[name]
	if one == nil {
		if len(p.known) >= maxKnownPermits {
			maps.DeleteFunc(p.known, func(_ permitName, idle *permit) bool { return len(idle.lock)+len(idle.running) == 0 })
		}
		one = &permit{
			holder: p.holder + "/" + strconv.Itoa(number),
			lock:   make(chan struct{}, 1), running: make(chan struct{}, webhook.AttemptsPerPermit),
		}
		p.known[name] = one
	}
	return one
}

// renew leases the endpoint's permit, or renews the lease, unless enough of it is
// left or it was refused just now, and reports whether the process holds it then.
// One call at a time asks the store.
func (p *permits) renew(ctx context.Context, e *webhook.Endpoint, one *permit) (held bool, err error) {
	select {
	case one.lock <- struct{}{}:
		defer func() { <-one.lock }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	now, attempt := p.clock(), timeoutOf(e)+ShutdownMargin
	switch {
	case one.until.Sub(now) >= attempt:
		return true, nil
	case now.Before(one.refusedUntil):
		return false, nil
	}
	until, pace := now.Add(attempt+leaseMargin), one.takePace()
	held, err = p.store.TakePermit(ctx, webhook.PermitRequest{
		OrganizationID: e.OrganizationID, EndpointID: e.ID, Holder: one.holder, Most: p.most, Pace: pace,
		Now: value.TimeOf(now), Until: value.TimeOf(until),
	})
	if err != nil {
		one.addPace(pace)
	}
	if !held {
		one.refusedUntil = now.Add(leaseRefused)
		return false, err
	}
	one.until = until
	return true, err
}

func (one *permit) takePace() webhook.Pace {
	one.mu.Lock()
	defer one.mu.Unlock()
	pace := one.pace
	one.pace = webhook.Pace{}
	return pace
}

// start starts an attempt of the endpoint when the process holds a permit and
// has fewer attempts under way than it permits; the permit is nil when it was not
// started. One whose message came alone needs no permit while the process has no
// other under way: an endpoint that many messages wait for has batches of several,
// so that no more than the processes' first attempts go past the bound.
func (p *permits) start(ctx context.Context, e *webhook.Endpoint, alone bool) (*permit, error) {
	for number := range p.most {
		one := p.find(e.ID, number)
		if !alone || number > 0 || len(one.running) > 0 {
			if held, err := p.renew(ctx, e, one); !held || err != nil {
				return nil, err
			}
		}
		select {
		case one.running <- struct{}{}:
			return one, nil
		default:
		}
	}
	return nil, nil
}

// note adds an attempt that took so long to the pace.
func (one *permit) note(took time.Duration) {
	var pace webhook.Pace
	pace.Add(took)
	one.addPace(pace)
}

func (one *permit) addPace(pace webhook.Pace) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.pace.Attempts += pace.Attempts
	one.pace.Slow += pace.Slow
}

// end ends an attempt.
func (one *permit) end() { <-one.running }
