package worker

import (
	"context"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/value"
)

const (
	// attemptsPerSlot is how many attempts of an endpoint a process that
	// holds one of its slots may have under way in the main lane. With
	// [webhook.PermitHolders] it bounds them at 50 over all processes.
	attemptsPerSlot = 10
	// slotHold is how long a slot is taken for, and slotLeft what must be
	// left of it when an attempt may start, which waits for room first and
	// lasts up to 30 s. One with less than slotLow left is prolonged before it
	// comes to that.
	slotHold = 45 * time.Second
	slotLow  = 35 * time.Second
	slotLeft = 33 * time.Second
	// slotRefused is how long a process whose wish for a slot was refused
	// does not ask again.
	slotRefused = time.Second
	// roomWait is how long an attempt waits for one of its endpoint's others
	// to end. After a wait in vain there is none for as long: what the
	// endpoint delays would delay its neighbours too. Nor is there when those
	// that wait already will take longer.
	roomWait = 500 * time.Millisecond
	// roomMost bounds a wait while others end.
	roomMost = 2 * time.Second
)

// slots are the slots of endpoints that this process holds, and the attempts
// that are under way in them.
type slots struct {
	store  Slots
	holder string
	clock  func() time.Time

	mu         sync.Mutex
	byEndpoint bounded[value.ID, *slot]
}

// slot is the process's share in an endpoint.
type slot struct {
	room  chan struct{} // holds one for each attempt under way
	users int           // that have found the slot and not left it

	mu      sync.Mutex // of what follows; not held while asking the store
	asking  chan struct{}
	until   time.Time     // held until; the zero time when it is not
	refuse  time.Time     // not asked for before
	vain    time.Time     // no waiting for room before
	waiting int           // for room
	spent   time.Duration // by an attempt, the last ones counting most
	ended   time.Time     // the last attempt, by the system's clock, which timers go by
}

func newSlots(store Slots, clock func() time.Time) *slots {
	return &slots{
		store: store, holder: value.NewRandomID().String(), clock: clock,
		byEndpoint: newBounded[value.ID](remembered, func(s *slot) bool { return s.users > 0 }),
	}
}

// find returns the slot of an endpoint, which stays known until drop.
func (s *slots) find(endpoint value.ID) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, found := s.byEndpoint.get(endpoint)
	if !found {
		one = &slot{room: make(chan struct{}, attemptsPerSlot)}
		s.byEndpoint.put(endpoint, one)
	}
	one.users++
	return one
}

func (s *slots) drop(one *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.users--
}

// hold takes the endpoint's slot, or prolongs it, unless so much is left of it
// or it was refused just now. One call an endpoint is under way at a
// time; others wait for it.
func (s *slots) hold(ctx context.Context, org, endpoint value.ID, left time.Duration) error {
	one := s.find(endpoint)
	defer s.drop(one)
	for {
		one.mu.Lock()
		now := s.clock()
		if one.left(now) >= left || now.Before(one.refuse) {
			one.mu.Unlock()
			return nil
		}
		asking := one.asking
		if asking == nil {
			one.asking = make(chan struct{})
		}
		one.mu.Unlock()
		if asking == nil {
			return s.ask(ctx, one, org, endpoint, now)
		}
		select {
		case <-asking:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *slots) ask(ctx context.Context, one *slot, org, endpoint value.ID, now time.Time) error {
	until, taken := now.Add(slotHold), false
	defer func() {
		one.mu.Lock()
		defer one.mu.Unlock()
		if taken {
			one.until = until
		} else {
			one.refuse = now.Add(slotRefused)
		}
		close(one.asking)
		one.asking = nil
	}()
	var err error
	taken, err = s.store.TakePermit(ctx, org, endpoint, s.holder, value.TimeOf(now), value.TimeOf(until))
	return err
}

func (o *slot) left(now time.Time) time.Duration { return o.until.Sub(now) }

// enter starts an attempt of the endpoint when the process holds its slot and
// there is room, or soon will be. leave ends the attempt; it is nil when there
// is no room.
func (s *slots) enter(ctx context.Context, org, endpoint value.ID) (leave func(), err error) {
	// What was held when the batch was read may have run low since.
	if err := s.hold(ctx, org, endpoint, slotLeft); err != nil {
		return nil, err
	}
	one := s.find(endpoint)
	if !s.wait(ctx, one) {
		s.drop(one)
		return nil, nil
	}
	start := time.Now()
	return func() {
		one.end(start)
		s.drop(one)
	}, nil
}

func (o *slot) end(start time.Time) {
	<-o.room
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = time.Now()
	o.spent += (o.ended.Sub(start) - o.spent) / 8
}

func (s *slots) wait(ctx context.Context, one *slot) bool {
	one.mu.Lock()
	now := s.clock()
	held := one.left(now) > slotLeft-time.Second
	patient := !now.Before(one.vain) && time.Duration(one.waiting)*one.spent/attemptsPerSlot <= roomWait
	one.mu.Unlock()
	if !held {
		return false
	}
	select {
	case one.room <- struct{}{}:
		return true
	default:
		return patient && s.queue(ctx, one)
	}
}

// queue waits for room as long as attempts end.
func (s *slots) queue(ctx context.Context, one *slot) bool {
	one.count(1)
	defer one.count(-1)
	start, timer := time.Now(), time.NewTimer(roomWait)
	defer timer.Stop()
	for {
		select {
		case one.room <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		again := one.worth(start)
		if again <= 0 {
			one.mu.Lock()
			defer one.mu.Unlock()
			one.vain = s.clock().Add(roomWait)
			return false
		}
		timer.Reset(again)
	}
}

func (o *slot) count(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting += n
}

// worth is for how long a wait that began at start is worth going on.
func (o *slot) worth(start time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return min(roomWait-time.Since(o.ended), roomMost-time.Since(start))
}
