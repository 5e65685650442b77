package dynamo_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/webhook"
)

// slotTaker takes slots of one endpoint for 45 s.
type slotTaker struct {
	t        *testing.T
	table    *dynamo.Table
	org, end value.ID
}

func (s slotTaker) take(holder string, now value.Time, want bool) {
	s.t.Helper()
	taken, err := s.table.TakePermit(s.t.Context(), s.org, s.end, holder, now, now.Add(45*time.Second))
	if err != nil || taken != want {
		s.t.Errorf("%s at %s: %t, %v; want %t", holder, now, taken, err, want)
	}
}

func TestSlotsAreFewAndEnd(t *testing.T) {
	start := value.TimeOf(time.Now())
	now := start
	s := slotTaker{t, tableAt(t, &now), value.NewID(), value.NewID()}
	for i := range webhook.PermitHolders {
		s.take(fmt.Sprint(i), start+value.Time(i), true)
	}
	s.take("late", start+9, false)
	s.take("0", start.Add(30*time.Second), true) // prolongs its own
	s.take("late", start.Add(45*time.Second), false)
	s.take("late", start.Add(45*time.Second)+1, true) // that of 1 is over
	s.take("1", start.Add(45*time.Second)+1, false)
	s.take("0", start.Add(46*time.Second), true)
	other := s
	other.end = value.NewID()
	other.take("late", start, true)
	other.org, other.end = value.NewID(), s.end
	other.take("1", start, true)
	// The item itself goes by age, as late as the table pleases.
	now = start.Add(48 * time.Hour)
	s.take("1", now, true)
}

func TestASlotThatIsHeldLongEnoughIsNotWritten(t *testing.T) {
	table, proxy := faultyTable(t, nil)
	s := slotTaker{t, table, value.NewID(), value.NewID()}
	now := value.TimeOf(time.Now())
	s.take("a", now, true)
	s.take("a", now-5, true)
	if n := proxy.Counts().Requests["PutItem"]; n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

func TestNoMoreThanTheSlotsAreTakenAtOnceWhateverFails(t *testing.T) {
	table, _ := faultyTable(t, faults.Every(0.05, broken...))
	org, endpoint, now := value.NewID(), value.NewID(), value.TimeOf(time.Now())
	var taken atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			retryWhileThrottled(t, func() error {
				ok, err := table.TakePermit(t.Context(), org, endpoint, fmt.Sprint(i), now, now.Add(time.Minute))
				if ok {
					taken.Add(1)
				}
				return err
			})
		})
	}
	wg.Wait()
	if taken.Load() != webhook.PermitHolders {
		t.Errorf("%d have a slot, want %d", taken.Load(), webhook.PermitHolders)
	}
}
