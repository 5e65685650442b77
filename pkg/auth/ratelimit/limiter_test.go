package ratelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
	"github.com/commerce-integration/service/pkg/base/fault"
)

// shelf is the store's contract in memory. The table's own tests hold the
// table to the same behaviour.
type shelf struct {
	mu      sync.Mutex
	windows map[string]window.Window
	days    map[int64]window.Window // of all subjects, finished
	writes  int
	reads   int
	err     error
}

func newShelf() *shelf {
	return &shelf{windows: map[string]window.Window{}, days: map[int64]window.Window{}}
}

func (s *shelf) Window(_ context.Context, subject string) (window.Window, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.windows[subject], s.err
}

func (s *shelf) FinishDay(_ context.Context, _ string, w window.Window) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if day := window.Day(w.Head); s.days[day].Version < w.Version {
		s.days[day] = w
	}
	return s.err
}

func (s *shelf) ExtendWindow(_ context.Context, subject string, e window.Extension) (window.Window, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	w := s.windows[subject]
	if s.err != nil || w.Version == 0 || w.Head != e.Head || w.Total > e.Limit-e.Lease+e.Unused {
		return w, false, s.err
	}
	w.Add(e.Head, e.Lease)
	w.Add(e.From, -e.Unused)
	w.Usage.Add(e.Usage)
	w.Version++
	s.windows[subject] = w
	return w, true, nil
}

func (s *shelf) ReplaceWindow(_ context.Context, subject string, version int64, next window.Window) (window.Window, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if w := s.windows[subject]; s.err != nil || w.Version != version {
		return w, false, s.err
	}
	s.windows[subject] = next
	return next, true, nil
}

// fleet is several instances that share a store, each with a clock of its
// own, and the times at which requests were admitted.
type fleet struct {
	now       time.Time
	store     *shelf
	instances []*Limiter
	admitted  []time.Time
	refused   int
}

func newFleet(offsets ...time.Duration) *fleet {
	f := &fleet{now: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC), store: newShelf()}
	for _, offset := range offsets {
		f.instances = append(f.instances, New(f.store, func() time.Time { return f.now.Add(offset) }))
	}
	return f
}

func (f *fleet) request(t interface{ Fatal(...any) }, instance, limit int) bool {
	d, err := f.instances[instance].Admit(context.Background(), 1, Subject{"subject", limit})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Allowed {
		f.refused++
		return false
	}
	f.admitted = append(f.admitted, f.now)
	return true
}

// most returns the most admissions in any 60 s.
func (f *fleet) most() int { return mostIn60s(f.admitted) }

func mostIn60s(admitted []time.Time) int {
	most, first := 0, 0
	for i, at := range admitted {
		for at.Sub(admitted[first]) >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestNoSpanOf60SecondsHoldsMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(100, 3000)).Draw(t, "limit")
		offsets := rapid.SliceOfN(rapid.IntRange(-299, 300), 1, 12).Draw(t, "clock offsets (ms)")
		skews := make([]time.Duration, len(offsets))
		for i, ms := range offsets {
			skews[i] = time.Duration(ms) * time.Millisecond
		}
		f := newFleet(skews...)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) //nolint:gosec // a simulation
		// The load alternates between bursts, pauses and steady spells.
		for range rapid.IntRange(1, 12).Draw(t, "spells") {
			rate := float64(limit) / 60 * []float64{0, 0.5, 1, 3, 30}[random.IntN(5)]
			until := f.now.Add(time.Duration(random.IntN(40_000)) * time.Millisecond)
			if rate == 0 {
				f.now = until
			}
			for f.now.Before(until) {
				f.now = f.now.Add(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
				f.request(t, random.IntN(len(f.instances)), limit)
			}
		}
		if got := f.most(); got > limit {
			t.Fatalf("most admissions in 60 s: got %d, want at most %d", got, limit)
		}
	})
}

// Three applications of an organization make requests of any weight.
func TestEverySubjectKeepsItsLimitWhateverRequestsWeigh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(100, 3000))
		subjects := []Subject{{"a", limits.Draw(t, "a")}, {"b", limits.Draw(t, "b")}, {"c", limits.Draw(t, "c")}, {"organization", limits.Draw(t, "organization")}}
		f := newFleet(make([]time.Duration, rapid.IntRange(1, 6).Draw(t, "instances"))...)
		f.instances[0].now = func() time.Time { return f.now.Add(599 * time.Millisecond) }
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) //nolint:gosec // a simulation
		admitted := map[string][]time.Time{}
		for range 2000 {
			f.now = f.now.Add(time.Duration(random.ExpFloat64() * []float64{1e6, 1e8, 1e9}[random.IntN(3)]))
			of := []Subject{subjects[random.IntN(3)], subjects[3]}
			weight := []int{1, 1 + random.IntN(30)}[random.IntN(2)]
			d, err := f.instances[random.IntN(len(f.instances))].Admit(context.Background(), weight, of...)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range of {
				for range min(weight, s.Limit) {
					if d.Allowed {
						admitted[s.ID] = append(admitted[s.ID], f.now)
					}
				}
			}
		}
		for _, s := range subjects {
			if got := mostIn60s(admitted[s.ID]); got > s.Limit {
				t.Fatalf("%s: most admissions in 60 s: got %d, want at most %d", s.ID, got, s.Limit)
			}
		}
	})
}

func TestARefusedRequestCountsAgainstNoSubject(t *testing.T) {
	f := newFleet(0)
	organization := Subject{"organization", 6}
	check := func(subject string, weight int, allowed bool, limit, remaining int) {
		t.Helper()
		d, err := f.instances[0].Admit(t.Context(), weight, Subject{subject, 4}, organization)
		if err != nil || d.Allowed != allowed || d.Limit != limit || d.Remaining != remaining || allowed != (d.RetryAfter == 0) {
			t.Errorf("%s weighing %d: got %+v, %v; want allowed %t, %d left of %d", subject, weight, d, err, allowed, remaining, limit)
		}
	}
	check("a", 2, true, 4, 2)
	check("a", 3, false, 4, 2)
	check("a", 2, true, 4, 0) // a lighter one, while the heavy one is refused
	for range 10 {
		check("a", 1, false, 4, 0)
	}
	check("b", 3, false, 6, 2) // which a's refused requests did not spend
	check("b", 2, true, 6, 0)
	check("b", 1, false, 6, 0)
	f.now = f.now.Add(62 * time.Second)
	check("b", 4, true, 4, 0)
}

func TestLeasesOfSubjectsAreTakenOnlyWhereTheyAreDue(t *testing.T) {
	f := newFleet(0)
	for range 2000 { // 200 s of ten requests a second
		f.now = f.now.Add(100 * time.Millisecond)
		if d, err := f.instances[0].Admit(t.Context(), 1, Subject{"a", 1000}, Subject{"organization", 10_000}); err != nil || !d.Allowed {
			t.Fatalf("got %+v, %v", d, err)
		}
	}
	t.Logf("%d reads and %d writes for 2000 requests", f.store.reads, f.store.writes)
	if calls := f.store.reads + f.store.writes; calls > 900 {
		t.Errorf("calls for 200 s: got %d, want about two a second for each subject", calls)
	}
}

func TestLoadBelowTheLimitIsAdmittedNearlyWhole(t *testing.T) {
	for _, tc := range []struct {
		name      string
		limit     int
		instances int
		share     float64 // of the limit
		even      bool    // evenly spread, or with random arrival
		want      float64 // least part admitted
	}{
		{"one instance, even", 600, 1, 0.95, true, 1},
		{"ten instances, even", 600, 10, 0.95, true, 0.99},
		{"one instance, random", 600, 1, 0.95, false, 0.96},
		{"ten instances, random", 600, 10, 0.95, false, 0.96},
		{"hundred instances, random", 6000, 100, 0.95, false, 0.98},
		{"small limit, even", 20, 3, 0.95, true, 0.99},
		{"half of the limit, random", 600, 5, 0.5, false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFleet(make([]time.Duration, tc.instances)...)
			random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a simulation
			mean := float64(time.Minute) / (float64(tc.limit) * tc.share)
			asked := 0
			for end := f.now.Add(10 * time.Minute); f.now.Before(end); asked++ {
				step := mean
				if !tc.even {
					step *= random.ExpFloat64()
				}
				f.now = f.now.Add(time.Duration(step))
				f.request(t, random.IntN(tc.instances), tc.limit)
			}
			part := float64(len(f.admitted)) / float64(asked)
			t.Logf("admitted %.2f%% of %d with %d writes, most in 60 s %d of %d", 100*part, asked, f.store.writes, f.most(), tc.limit)
			if part < tc.want {
				t.Errorf("part admitted: got %.4f, want at least %.4f", part, tc.want)
			}
			if f.most() > tc.limit {
				t.Errorf("most admissions in 60 s: got %d, want at most %d", f.most(), tc.limit)
			}
		})
	}
}

func TestABurstIsAdmittedUpToTheLimitExactly(t *testing.T) {
	for i, limit := range []int{1, 2, 59, 600, 5000} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			f := newFleet(0, 0, 0)
			for i := range limit + limit/2 + 3 {
				f.request(t, i%3, limit)
			}
			// Instances may hold admissions that others would have wanted, at
			// most a hundredth each.
			least := limit - 2*max(1, limit/maxLeaseShare)
			if got := len(f.admitted); got > limit || got < least {
				t.Errorf("limit %d: got %d admitted, want %d to %d", limit, got, least, limit)
			}
		})
	}
}

func TestTheAnswerCountsDownAndTellsWhenToComeBack(t *testing.T) {
	f := newFleet(0)
	for want := 4; want >= 0; want-- {
		d, err := f.instances[0].Admit(t.Context(), 1, Subject{"subject", 5})
		if err != nil || !d.Allowed || d.Limit != 5 || d.Remaining != want {
			t.Fatalf("got %+v, %v, want allowed with %d remaining of 5", d, err, want)
		}
		f.now = f.now.Add(2 * time.Second)
	}
	d, err := f.instances[0].Admit(t.Context(), 1, Subject{"subject", 5})
	if err != nil || d.Allowed || d.Remaining != 0 {
		t.Fatalf("sixth request: got %+v, %v, want a refusal", d, err)
	}
	if d.RetryAfter <= 0 || d.RetryAfter > time.Minute {
		t.Errorf("RetryAfter: got %v, want within a minute: the first came 10 s ago", d.RetryAfter)
	}
	if d.Reset.Nanosecond() != 0 || d.Reset.Before(f.now.Add(d.RetryAfter)) {
		t.Errorf("Reset: got %v, want a whole second not before %v", d.Reset, f.now.Add(d.RetryAfter))
	}
	early := f.now.Add(d.RetryAfter - 10*time.Millisecond)
	f.now = early
	if f.request(t, 0, 5) {
		t.Errorf("a request before RetryAfter was over was admitted at %v", early)
	}
	f.now = early.Add(10 * time.Millisecond)
	if !f.request(t, 0, 5) {
		t.Errorf("a request after RetryAfter was refused at %v", f.now)
	}
}

func TestAnInstanceThatWasRefusedAsksTheTableNoMore(t *testing.T) {
	f := newFleet(0)
	for f.request(t, 0, 10) {
		f.now = f.now.Add(time.Millisecond)
	}
	before := f.store.writes
	for range 1000 {
		f.now = f.now.Add(30 * time.Millisecond)
		f.request(t, 0, 10)
	}
	if f.store.writes != before {
		t.Errorf("writes while refused: got %d, want none", f.store.writes-before)
	}
}

func TestARaisedLimitEndsARefusal(t *testing.T) {
	f := newFleet(0)
	for f.request(t, 0, 3) {
	}
	if !f.request(t, 0, 4) {
		t.Error("a request under a raised limit was refused")
	}
	if f.request(t, 0, 2) {
		t.Error("a request under a lowered limit was admitted")
	}
}

func TestSubjectsDoNotShareAWindow(t *testing.T) {
	f := newFleet(0)
	for f.request(t, 0, 3) {
	}
	d, err := f.instances[0].Admit(t.Context(), 1, Subject{"another", 3})
	if err != nil || !d.Allowed {
		t.Errorf("another subject: got %+v, %v, want it admitted", d, err)
	}
}

func TestABusyInstanceWritesLessThanItAdmits(t *testing.T) {
	f := newFleet(0)
	for range 60_000 {
		f.now = f.now.Add(time.Millisecond)
		f.request(t, 0, 100_000)
	}
	if got := len(f.admitted); got != 60_000 {
		t.Fatalf("admitted: got %d, want all 60000", got)
	}
	if f.store.writes > 150 {
		t.Errorf("writes for a minute of 1000 a second: got %d, want about one a second", f.store.writes)
	}
}

func TestAWindowFromAClockThatRanAheadHoldsNobodyUpForLong(t *testing.T) {
	f := newFleet(0, time.Hour)
	for f.request(t, 1, 10) {
	}
	f.request(t, 0, 10)
	f.now = f.now.Add(62 * time.Second)
	if !f.request(t, 0, 10) {
		t.Error("an hour ahead: a request is still refused after a window's length")
	}
	f.now = f.now.Add(-time.Hour)
	f.request(t, 0, 10)
	f.now = f.now.Add(62 * time.Second)
	if !f.request(t, 0, 10) {
		t.Error("a clock set back: a request is still refused after a window's length")
	}
}

func TestATableThatDoesNotAnswerIsAnErrorAndNoAdmission(t *testing.T) {
	f := newFleet(0)
	f.store.err = fault.Busy(errors.New("no answer"))
	d, err := f.instances[0].Admit(t.Context(), 1, Subject{"subject", 5})
	if !fault.Is(err, fault.Unavailable) || d.Allowed {
		t.Errorf("got %+v, %v, want a fault of kind Unavailable", d, err)
	}
	f.store.err = nil
	if !f.request(t, 0, 5) {
		t.Error("after the table came back: refused")
	}
}

func TestWaitingForAnotherRequestEndsWithTheCaller(t *testing.T) {
	l := New(newShelf(), time.Now)
	l.subject("subject").lock <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Admit(ctx, 1, Subject{"subject", 5}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestConcurrentRequestsOfManyInstancesKeepTheLimit(t *testing.T) {
	const limit, workers = 500, 8
	store := newShelf()
	var mu sync.Mutex
	var admitted []time.Time
	var group sync.WaitGroup
	for range 3 {
		l := New(store, time.Now)
		for range workers {
			group.Go(func() {
				for range 100 {
					d, err := l.Admit(context.Background(), 1, Subject{"subject", limit})
					if err != nil {
						t.Error(err)
						return
					}
					if d.Allowed {
						mu.Lock()
						admitted = append(admitted, time.Now())
						mu.Unlock()
					}
				}
			})
		}
	}
	group.Wait()
	sort.Slice(admitted, func(i, j int) bool { return admitted[i].Before(admitted[j]) })
	if n := len(admitted); n > limit || n < limit-3*limit/maxLeaseShare {
		t.Errorf("admitted: got %d of 2400, want about %d and no more", n, limit)
	}
}

func TestIdleSubjectsAreForgotten(t *testing.T) {
	f := newFleet(0)
	for i := range 3 * maxSubjects {
		if _, err := f.instances[0].Admit(t.Context(), 1, Subject{string(rune(i + 1)), 5}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.instances[0].young) + len(f.instances[0].old); n > 2*maxSubjects {
		t.Errorf("subjects kept: got %d, want at most %d", n, 2*maxSubjects)
	}
}
