package bench

import (
	"fmt"
	"runtime"
	"time"
)

// timing is what one call of something takes.
type timing struct {
	wall   time.Duration
	allocs float64
	bytes  float64 // allocated
}

func (t timing) String() string {
	return fmt.Sprintf("%s, %.0f allocations", milliseconds(t.wall), t.allocs)
}

// timed calls a function again and again, and returns the means of the best of
// several rounds: the others were disturbed.
func (b *bench) timed(call func()) (best timing) {
	call() // what is made once is not of interest
	calls := 1
	for round := 0; round < microRounds; {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		started := time.Now()
		for range calls {
			call()
		}
		took := time.Since(started)
		runtime.ReadMemStats(&after)
		if took < b.cfg.Duration/microShare && calls < 1<<20 {
			calls *= 2 // too short to be measured
			continue
		}
		t := timing{
			wall: took / time.Duration(calls), allocs: float64(after.Mallocs-before.Mallocs) / float64(calls),
			bytes: float64(after.TotalAlloc-before.TotalAlloc) / float64(calls),
		}
		if round == 0 || t.wall < best.wall {
			best = t
		}
		round++
	}
	return best
}

const (
	// microRounds is how often something is measured.
	microRounds = 5
	// microShare is how much shorter than a load one of these rounds is.
	microShare = 30
)

// busy is the processor time of this process for one call, garbage collection
// included: the least of several.
func busy(call func()) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range microRounds {
		runtime.GC() // what was before is not charged to the call
		before := ownProcessor()
		call()
		best = min(best, ownProcessor()-before)
	}
	return best
}

// heap is what lives in memory.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below the bound
}

func kilobytes(n float64) string { return fmt.Sprintf("%.1f KB", n/1000) }

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }
