package worker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// store gives permits as the table does.
type store struct {
	mu    sync.Mutex
	held  map[string]value.Time
	calls int
	pace  webhook.Pace // of the last that took one
	err   error
}

func (d *store) TakePermit(_ context.Context, r webhook.PermitRequest) (bool, error) {
	time.Sleep(10 * time.Millisecond) // of the bubble's clock
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.err != nil {
		return false, d.err
	}
	for who, end := range d.held {
		if end <= r.Now {
			delete(d.held, who)
		}
	}
	if _, has := d.held[r.Holder]; !has && len(d.held) >= r.Most {
		return false, nil
	}
	d.held[r.Holder] = r.Until
	d.pace = r.Pace
	return true, nil
}

var endpointA = &webhook.Endpoint{OrganizationID: value.NewID(), ID: value.NewID(), TimeoutSeconds: webhook.MaxTimeoutSeconds}

func newStore() *store { return &store{held: map[string]value.Time{}} }

// most is the permits of an endpoint in these tests.
const most = 5

func (p *permits) mustLease(t *testing.T, endpoint *webhook.Endpoint) {
	t.Helper()
	if _, err := p.renew(t.Context(), endpoint, p.find(endpoint.ID, 0)); err != nil {
		t.Fatal(err)
	}
}

// mustStart is start, which asks for no permit where mustLease came before. end ends
// the attempt at once; it is nil when it was not started.
func (p *permits) mustStart(ctx context.Context) (end func()) {
	one, _ := p.start(ctx, endpointA, false)
	if one == nil {
		return nil
	}
	return one.end
}

// The store hears how quick the attempts were since it was last asked.
func TestTheStoreHearsOfThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStore()
		s := newPermits(d, most, time.Now)
		for _, step := range []struct {
			took []time.Duration
			want webhook.Pace
		}{
			{[]time.Duration{time.Second, time.Second + 1}, webhook.Pace{}},
			{nil, webhook.Pace{Attempts: 2, Slow: 1}},
			{nil, webhook.Pace{}},
		} {
			s.mustLease(t, endpointA)
			if d.pace != step.want {
				t.Errorf("pace %+v, want %+v", d.pace, step.want)
			}
			for _, took := range step.took {
				one, err := s.start(t.Context(), endpointA, false)
				if err != nil {
					t.Fatal(err)
				}
				one.note(took)
				one.end()
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestLeaseIsRenewedInTimeForWholeAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStore()
		s := newPermits(d, most, time.Now)
		for _, step := range []struct {
			pass  time.Duration
			calls int
		}{{0, 1}, {0, 1}, {leaseMargin - time.Second, 1}, {2 * time.Second, 2}, {time.Hour, 3}} {
			time.Sleep(step.pass)
			s.mustLease(t, endpointA)
			if d.calls != step.calls {
				t.Errorf("after %s more: the permit was asked for %d times, want %d", step.pass, d.calls, step.calls)
			}
			end := s.mustStart(t.Context())
			if left := time.Until(d.held[s.holder+"/0"].Std()); end == nil || left < 30*time.Second {
				t.Errorf("after %s more: entered %t with %s left of the lease", step.pass, end != nil, left)
			}
			end()
		}
	})
}

func TestPermitIsAskedForOnceByAllThatNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStore()
		s := newPermits(d, most, time.Now)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() { s.mustLease(t, endpointA) })
		}
		group.Wait()
		if d.calls != 1 {
			t.Errorf("asked %d times, want once", d.calls)
		}
	})
}

func TestOnlySoManyProcessesMayHaveAttemptsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStore()
		for i := range most + 1 {
			s := newPermits(d, most, time.Now)
			s.mustLease(t, endpointA)
			if end := s.mustStart(t.Context()); (end != nil) != (i < most) {
				t.Errorf("process %d entered: %t", i+1, end != nil)
			}
			calls := d.calls
			s.mustLease(t, endpointA)
			if d.calls != calls {
				t.Errorf("process %d asks again at once", i+1)
			}
		}
	})
}

func TestTheOnlyAttemptOfAProcessNeedsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStore()
		s := newPermits(d, most, time.Now)
		for range 3 { // one after the other
			one, err := s.start(t.Context(), endpointA, true)
			if one == nil || err != nil || d.calls != 0 {
				t.Fatalf("the only attempt: started %t, %v, after %d calls for a permit; want it started without", one != nil, err, d.calls)
			}
			one.end()
		}
		d.err = errors.New("throttled")
		one, _ := s.start(t.Context(), endpointA, true)
		if second, err := s.start(t.Context(), endpointA, true); second != nil || !errors.Is(err, d.err) {
			t.Errorf("a second one beside it: started %t, %v; want it to need a permit", second != nil, err)
		}
		one.end()
	})
}

func TestPermitThatCannotBeTakenIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStore()
		d.err = errors.New("throttled")
		s := newPermits(d, most, time.Now)
		if _, err := s.renew(t.Context(), endpointA, s.find(endpointA.ID, 0)); !errors.Is(err, d.err) {
			t.Errorf("error %v, want %v", err, d.err)
		}
		if end := s.mustStart(t.Context()); end != nil {
			t.Error("entered without a permit")
		}
		d.err = nil
		time.Sleep(leaseRefused)
		s.mustLease(t, endpointA)
		if end := s.mustStart(t.Context()); end == nil {
			t.Error("no room although the permit is held")
		}
	})
}

func TestMemoryOfPermitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPermits(newStore(), most, time.Now)
		s.mustLease(t, endpointA)
		s.mustStart(t.Context())
		for range 3 * maxKnownPermits {
			s.find(value.NewID(), 0)
		}
		if n := len(s.known); n > maxKnownPermits {
			t.Errorf("%d permits are remembered, want at most %d", n, maxKnownPermits)
		}
		for range most*webhook.AttemptsPerPermit - 1 {
			s.mustStart(t.Context())
		}
		if end := s.mustStart(t.Context()); end != nil {
			t.Error("an attempt past the permits' was started, or those under way were forgotten")
		}
	})
}
