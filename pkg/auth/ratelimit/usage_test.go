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
