package dynamo_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// slotTaker takes slots of one endpoint for 45 s.
type slotTaker struct {
	t        *testing.T
	table    *dynamo.Table
	org, end value.ID
}

func (s slotTaker) request(holder string, now value.Time) webhook.PermitRequest {
	return webhook.PermitRequest{OrganizationID: s.org, EndpointID: s.end, Holder: holder, Most: 20, Now: now, Until: now.Add(45 * time.Second)}
}

func (s slotTaker) take(holder string, now value.Time, want bool) {
	s.t.Helper()
	taken, err := s.table.TakePermit(s.t.Context(), s.request(holder, now))
	if err != nil || taken != want {
		s.t.Errorf("%s at %s: %t, %v; want %t", holder, now, taken, err, want)
	}
}

func TestSlotsAreFewAndEnd(t *testing.T) {
	start := value.TimeOf(time.Now())
	now := start
	s := slotTaker{t, tableAt(t, &now), value.NewID(), value.NewID()}
	for i := range webhook.FirstPermits {
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

// The permits grow while a holder's attempts are quick, up to the most, and shrink
// when they are not.
func TestSlotsGrowWithAQuickEndpoint(t *testing.T) {
	s, now := slotTaker{t, tableAt(t, new(value.TimeOf(time.Now()))), value.NewID(), value.NewID()}, value.TimeOf(time.Now())
	free := func() (n int) {
		for ; ; n++ {
			if taken, err := s.table.TakePermit(t.Context(), s.request(fmt.Sprint(now, n), now)); err != nil || !taken {
				return n
			}
		}
	}
	for i, step := range []struct {
		pace webhook.Pace
		want int
	}{
		{webhook.Pace{}, 5},
		{webhook.Pace{Attempts: 10}, 10},
		{webhook.Pace{Attempts: 10}, 20},
		{webhook.Pace{Attempts: 10}, 20},
		{webhook.Pace{Attempts: 10, Slow: 5}, 10},
	} {
		now = now.Add(time.Minute)
		r := s.request("first", now)
		r.Pace = step.pace
		if taken, err := s.table.TakePermit(t.Context(), r); !taken || err != nil {
			t.Fatalf("step %d: %t, %v", i, taken, err)
		}
		if got := 1 + free(); got != step.want {
			t.Errorf("step %d: %d permits, want %d", i, got, step.want)
		}
	}
}

func TestASlotThatIsHeldLongEnoughIsNotWritten(t *testing.T) {
	table, proxy := faultyTable(t, nil)
	s := slotTaker{t, table, value.NewID(), value.NewID()}
	now := value.TimeOf(time.Now())
	s.take("a", now, true)
	s.take("a", now-5, true)
	if n := proxy.Counts().Requests["UpdateItem"]; n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

func TestNoMoreThanTheSlotsAreTakenAtOnceWhateverFails(t *testing.T) {
	table, _ := faultyTable(t, faults.Every(0.05, broken...))
	s, now := slotTaker{t, table, value.NewID(), value.NewID()}, value.TimeOf(time.Now())
	var taken atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			retryWhileThrottled(t, func() error {
				ok, err := table.TakePermit(t.Context(), s.request(fmt.Sprint(i), now))
				if ok {
					taken.Add(1)
				}
				return err
			})
		})
	}
	wg.Wait()
	if taken.Load() != webhook.FirstPermits {
		t.Errorf("%d have a slot, want %d", taken.Load(), webhook.FirstPermits)
	}
}

// Twenty processes hold all permits; the endpoint gets slow; each renews after ten
// seconds, as workers do, and reports ten slow attempts. There must be fewer then.
func TestSlotsShrinkWhileAllAreHeld(t *testing.T) {
	s, now := slotTaker{t, tableAt(t, new(value.TimeOf(time.Now()))), value.NewID(), value.NewID()}, value.TimeOf(time.Now())
	ask := func(holder string, pace webhook.Pace) bool {
		r := s.request(holder, now)
		r.Pace = pace
		taken, err := s.table.TakePermit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	for i := range 5 {
		ask(fmt.Sprint(i), webhook.Pace{})
	}
	now += 1
	for i := range 5 {
		ask(fmt.Sprint(i), webhook.Pace{Attempts: 10})
	}
	for i := 5; i < 20; i++ {
		if !ask(fmt.Sprint(i), webhook.Pace{}) {
			t.Fatalf("holder %d got no permit", i)
		}
	}
	for second := range 120 { // the endpoint is slow from now on
		now = now.Add(time.Second)
		for i := range 20 {
			pace := webhook.Pace{}
			if second%10 == 0 {
				pace = webhook.Pace{Attempts: 10, Slow: 10}
			}
			ask(fmt.Sprint(i), pace)
		}
	}
	now = now.Add(time.Second)
	held := 0
	for i := range 20 {
		if ask(fmt.Sprint(i), webhook.Pace{}) {
			held++
		}
	}
	if held > 10 {
		t.Errorf("%d processes have a permit after two minutes of slow answers, want at most 10", held)
	}
}

func TestWaitsOfAnOrganizationAreFewAndEnd(t *testing.T) {
	table, org, start := dynamotest.NewTable(t), value.NewID(), value.TimeOf(time.Now())
	begin := func(org value.ID, now, until value.Time, want bool) (request value.ID) {
		t.Helper()
		request = value.NewID()
		if begun, err := table.BeginWait(t.Context(), org, request, 3, now, until); err != nil || begun != want {
			t.Errorf("a wait from %d ms to %d ms: got %t, %v, want %t", now-start, until-start, begun, err, want)
		}
		return request
	}
	end := func(org, request value.ID) {
		t.Helper()
		if err := table.EndWait(t.Context(), org, request); err != nil {
			t.Error(err)
		}
	}
	begin(org, start, start+100, true)
	second := begin(org, start, start+200, true)
	begin(org, start, start+200, true)
	begin(org, start, start+300, false)
	other := begin(value.NewID(), start, start+300, true)
	end(org, other) // of another organization
	end(value.NewID(), second)
	begin(org, start, start+300, false)
	end(org, second)
	third := begin(org, start, start+300, true)
	refused := begin(org, start, start+300, false)
	end(org, refused) // that did not begin
	begin(org, start+99, start+400, false)
	begin(org, start+100, start+400, true) // one did not end
	end(org, second)
	begin(org, start+100, start+400, false)
	end(org, third)
	begin(org, start+1000, start+2000, true)
}

func TestInstancesShareTheWaitsOfAnOrganization(t *testing.T) {
	table, org, now := dynamotest.NewTable(t), value.NewID(), value.TimeOf(time.Now())
	var begun atomic.Int64
	var group errgroup.Group
	for range 20 {
		group.Go(func() error {
			ok, err := table.BeginWait(t.Context(), org, value.NewID(), 10, now, now+1000)
			if ok {
				begun.Add(1)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil || begun.Load() != 10 {
		t.Errorf("got %d of 20 at once, %v, want 10", begun.Load(), err)
	}
}
