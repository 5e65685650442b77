package worker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// desk gives slots as the table does.
type desk struct {
	mu    sync.Mutex
	held  map[string]value.Time
	calls int
	err   error
}

func (d *desk) TakePermit(_ context.Context, _, _ value.ID, holder string, now, until value.Time) (bool, error) {
	time.Sleep(10 * time.Millisecond) // of the bubble's clock
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.err != nil {
		return false, d.err
	}
	for who, end := range d.held {
		if end <= now {
			delete(d.held, who)
		}
	}
	if _, has := d.held[holder]; !has && len(d.held) >= webhook.PermitHolders {
		return false, nil
	}
	d.held[holder] = until
	return true, nil
}

var org, endpointA = value.NewID(), value.NewID()

func newDesk() *desk { return &desk{held: map[string]value.Time{}} }

func (s *slots) mustHold(t *testing.T, endpoint value.ID) {
	t.Helper()
	if err := s.hold(t.Context(), org, endpoint, slotLow); err != nil {
		t.Fatal(err)
	}
}

// mustEnter is enter, which asks for no slot where mustHold came before.
func (s *slots) mustEnter(ctx context.Context) (leave func()) {
	leave, _ = s.enter(ctx, org, endpointA)
	return leave
}

func TestSlotIsProlongedInTimeForWholeAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		s := newSlots(d, time.Now)
		for _, step := range []struct {
			pass  time.Duration
			calls int
		}{{0, 1}, {0, 1}, {slotHold - slotLow - time.Second, 1}, {2 * time.Second, 2}, {time.Hour, 3}} {
			time.Sleep(step.pass)
			s.mustHold(t, endpointA)
			if d.calls != step.calls {
				t.Errorf("after %s more: the slot was asked for %d times, want %d", step.pass, d.calls, step.calls)
			}
			leave := s.mustEnter(t.Context())
			if left := time.Until(d.held[s.holder].Std()); leave == nil || left < 30*time.Second {
				t.Errorf("after %s more: entered %t with %s left of the slot", step.pass, leave != nil, left)
			}
			leave()
		}
	})
}

func TestSlotIsAskedForOnceByAllThatNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		s := newSlots(d, time.Now)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() { s.mustHold(t, endpointA) })
		}
		group.Wait()
		if d.calls != 1 {
			t.Errorf("asked %d times, want once", d.calls)
		}
	})
}

func TestOnlySoManyProcessesMayHaveAttemptsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		for i := range webhook.PermitHolders + 1 {
			s := newSlots(d, time.Now)
			s.mustHold(t, endpointA)
			if leave := s.mustEnter(t.Context()); (leave != nil) != (i < webhook.PermitHolders) {
				t.Errorf("process %d entered: %t", i+1, leave != nil)
			}
			calls := d.calls
			s.mustHold(t, endpointA)
			if d.calls != calls {
				t.Errorf("process %d asks again at once", i+1)
			}
		}
	})
}

func TestSlotThatCannotBeTakenIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.err = errors.New("throttled")
		s := newSlots(d, time.Now)
		if err := s.hold(t.Context(), org, endpointA, slotLow); !errors.Is(err, d.err) {
			t.Errorf("error %v, want %v", err, d.err)
		}
		if leave := s.mustEnter(t.Context()); leave != nil {
			t.Error("entered without a slot")
		}
		d.err = nil
		time.Sleep(slotRefused)
		s.mustHold(t, endpointA)
		if leave := s.mustEnter(t.Context()); leave == nil {
			t.Error("no room although the slot is held")
		}
	})
}

func TestAttemptWaitsAMomentForRoomAndNotAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(newDesk(), time.Now)
		s.mustHold(t, endpointA)
		var leaves []func()
		for range attemptsPerSlot {
			leaves = append(leaves, s.mustEnter(t.Context()))
		}
		enter := func(want bool, after time.Duration) {
			t.Helper()
			start := time.Now()
			leave := s.mustEnter(t.Context())
			if took := time.Since(start); (leave != nil) != want || took != after {
				t.Errorf("entered %t after %s, want %t after %s", leave != nil, took, want, after)
			}
			if leave != nil {
				leaves = append(leaves, leave)
			}
		}
		enter(false, roomWait)
		enter(false, 0)
		time.Sleep(roomWait)
		go func() {
			time.Sleep(roomWait / 2)
			leaves[0]()
		}()
		enter(true, roomWait/2)
		leaves[1]()
		enter(true, 0)
		ctx, cancel := context.WithTimeout(t.Context(), roomWait/10)
		defer cancel()
		if leave := s.mustEnter(ctx); leave != nil {
			t.Error("entered where there is no room")
		}
	})
}

func TestAttemptWaitsForAnEndpointThatIsBusyAndNotForOneThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			each    time.Duration // what an attempt takes
			waiting int
			entered int // of those
		}{
			{time.Millisecond, 2000, 2000},
			{time.Millisecond, 20_000, 5000},
			{40 * time.Millisecond, 300, 125},
			{5 * time.Second, 100, 0},
		} {
			s := newSlots(newDesk(), time.Now)
			s.mustHold(t, endpointA)
			var entered atomic.Int64
			var group sync.WaitGroup
			one := func() {
				if leave := s.mustEnter(t.Context()); leave != nil {
					entered.Add(1)
					time.Sleep(tt.each)
					leave()
				}
			}
			for range 30 * attemptsPerSlot { // for the endpoint to be known
				group.Go(one)
			}
			group.Wait()
			entered.Store(-attemptsPerSlot) // those that find room at once
			for range tt.waiting + attemptsPerSlot {
				group.Go(one)
				synctest.Wait()
			}
			group.Wait()
			if got := int(entered.Load()); got < tt.entered*9/10 || got > tt.entered*11/10 {
				t.Errorf("attempts of %s, %d waiting: %d entered, want about %d", tt.each, tt.waiting, got, tt.entered)
			}
		}
	})
}

func TestMemoryOfSlotsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(newDesk(), time.Now)
		s.mustHold(t, endpointA)
		s.mustEnter(t.Context())
		for range 3 * remembered {
			s.drop(s.find(value.NewID()))
		}
		if n := len(s.byEndpoint.entries); n > remembered {
			t.Errorf("%d slots are remembered, want at most %d", n, remembered)
		}
		for range attemptsPerSlot - 1 {
			s.mustEnter(t.Context())
		}
		if leave := s.mustEnter(t.Context()); leave != nil {
			t.Error("the attempts under way were forgotten")
		}
	})
}
