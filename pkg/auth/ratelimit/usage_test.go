package ratelimit

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
)

// counted is what the table has counted of all days, and what the instances
// hold back until their next lease.
func (f *fleet) counted() (stored, held window.Usage) {
	w := f.store.windows["subject"]
	stored = w.Usage
	for day, finished := range f.store.days {
		if w.Version == 0 || day < window.Day(w.Head) {
			stored.Add(finished.Usage)
		}
	}
	for _, l := range f.instances {
		if s := l.young["subject"]; s != nil {
			held.Add(s.uncounted)
			held.ClientErrors += s.clientErrors.Load()
			held.Requests -= s.left
		}
	}
	return stored, held
}

// Whatever the load and the number of instances, each request, error and
// refusal is counted once, be it in the table or in an instance until its next
// lease. Days end within the test, over and over.
func TestEachRequestIsCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 400).Draw(t, "limit")
		f := newFleet(make([]time.Duration, rapid.IntRange(1, 6).Draw(t, "instances"))...)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)) //nolint:gosec // a simulation
		failed := 0
		for range rapid.IntRange(1, 400).Draw(t, "requests") {
			f.now = f.now.Add(time.Duration(random.ExpFloat64() * []float64{1e6, 1e8, 1e10, 2e13}[random.IntN(4)]))
			instance := random.IntN(len(f.instances))
			if f.request(t, instance, limit) && random.IntN(3) == 0 {
				f.instances[instance].ClientError("subject")
				failed++
			}
		}
		stored, held := f.counted()
		stored.Add(held)
		if want := (window.Usage{Requests: int64(len(f.admitted)), ClientErrors: int64(failed), RateLimited: int64(f.refused)}); stored != want {
			t.Fatalf("counted %+v, want %+v", stored, want)
		}
		if lease := -held.Requests; lease > int64(len(f.instances)*max(1, limit/maxLeaseShare)) {
			t.Fatalf("instances hold %d admissions that are counted and not used", lease)
		}
	})
}

// Counting adds one write a day to those of the leases, whatever serves the
// requests: at one request a minute that is 0.07% where each comes to a new
// instance, which writes each, and 0.5% where one instance writes every seventh.
func TestCountingCostsAtMostOnePercentOfTheWrites(t *testing.T) {
	const days = 3
	for _, test := range []struct {
		name  string
		every time.Duration
		cold  bool
	}{
		{"one request a minute, each to a new instance", time.Minute, true},
		{"one request a minute to one instance", time.Minute, false},
		{"one request in ten minutes, each to a new instance", 10 * time.Minute, true},
		{"two requests a second to one instance", time.Second / 2, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFleet(0)
			for start := f.now; f.now.Sub(start) < days*24*time.Hour; f.now = f.now.Add(test.every) {
				if test.cold {
					f.instances[0] = New(f.store, f.instances[0].now)
				}
				f.request(t, 0, 600)
			}
			share := float64(len(f.store.days)) / float64(f.store.writes-len(f.store.days))
			t.Logf("%d requests, %d writes, %d of them for counting: %.2f%%", len(f.admitted), f.store.writes, len(f.store.days), 100*share)
			if stored, held := f.counted(); stored.Requests+held.Requests != int64(len(f.admitted)) || len(f.store.days) != days {
				t.Errorf("counted %+v and %+v of %d requests, finished %d days", stored, held, len(f.admitted), len(f.store.days))
			}
			if share > 0.01 {
				t.Errorf("counting made %.2f%% more writes", 100*share)
			}
		})
	}
}
