package webhook

import (
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// MaxCounterShards is the most counter shards that an endpoint has.
	MaxCounterShards = 16
	// MaxReason is the most bytes of a reason that counters keep.
	MaxReason = 300

	cellSpan = time.Minute
	maxCells = 8
)

// CounterShard is one writer's share of what an endpoint counts. It is
// written together with the deliveries whose attempts it counts, and
// [StreamShard] with how far the stream is counted in it, so that the shards of
// an endpoint together count each recorded attempt once. Its zero value has
// counted nothing.
type CounterShard struct {
	counters Counters
	// succeeded is when the last success was recorded.
	succeeded value.Time
	run       shardFailureRun
	// cells are attempts of the last minutes, the oldest first.
	cells []cell
	hour  HourStats
	day   EventDay
}

// shardFailureRun is the failed attempts that this writer recorded since its
// last success, or since one of another writer that it knew of.
type shardFailureRun struct {
	FailureRun

	recorded value.Time // when the first was recorded
}

// cell counts the attempts of up to a minute.
type cell struct {
	start                  value.Time // of the first
	attempts, failed, slow int64
}

// Counters are what the shard has counted since it began.
func (s *CounterShard) Counters() Counters { return s.counters }

// Hour is the share of the present hour, or of the last one in which
// something was recorded.
func (s *CounterShard) Hour() *HourStats {
	h := s.hour
	return &h
}

// Add returns the shard after attempts, in the order in which they are
// recorded, and the hour that they finished, if any. known is what the writer
// knows about the endpoint's health; its Since should be given even when the
// writer did not read the other shards: attempts that ended before do not
// count for Run and Recent, and a run that began before, or before a success
// of another writer, begins anew.
func (s *CounterShard) Add(attempts []Attempt, known Health, now value.Time) (next *CounterShard, finished *HourStats) {
	next = new(CounterShard)
	*next = *s
	next.cells = slices.Clone(s.cells)
	if hour := StatsHour.Start(now); hour > s.hour.Start && len(attempts) > 0 {
		if s.hour.SuccessCount+s.hour.FailureCount > 0 {
			finished = s.Hour()
		}
		next.hour = HourStats{Start: hour}
	}
	next.forget(known, now)
	for i := range attempts {
		next.add(&attempts[i], known, now)
	}
	return next, finished
}

// forget leaves out what no longer counts for Run and Recent.
func (s *CounterShard) forget(known Health, now value.Time) {
	interrupted := known.LastSuccessAt > s.succeeded && s.run.recorded <= known.LastSuccessAt
	if interrupted || s.run.Start < known.Since {
		s.run = shardFailureRun{}
	}
	s.cells = slices.DeleteFunc(s.cells, func(c cell) bool {
		return c.start <= now.Add(-RecentSpan) || c.start < known.Since
	})
}

func (s *CounterShard) add(a *Attempt, known Health, now value.Time) {
	counted, failed, at := *a, a.Error != nil, a.End()
	if failed {
		reason := clip(*a.Error, MaxReason)
		counted.Error = &reason
	} else {
		s.succeeded, s.run = max(now, s.succeeded), shardFailureRun{}
	}
	s.counters.Count(counted)
	s.hour.add(a)
	if at < known.Since {
		return
	}
	s.cell(at).add(a)
	if failed {
		if s.run.Count == 0 {
			s.run.recorded = now
		}
		s.run.merge(FailureRun{Count: 1, Start: at, Last: at})
	}
}

// cell is the one that an attempt which ended at the time belongs to.
func (s *CounterShard) cell(at value.Time) *cell {
	if n := len(s.cells); n > 0 && at < s.cells[n-1].start.Add(cellSpan) {
		return &s.cells[n-1]
	}
	s.cells = append(s.cells[max(0, len(s.cells)+1-maxCells):], cell{start: at})
	return &s.cells[len(s.cells)-1]
}

func (c *cell) add(a *Attempt) {
	c.attempts++
	if a.Error != nil {
		c.failed++
	}
	if a.Duration() > SlowAttempt {
		c.slow++
	}
}

// Encode writes the shard, which [DecodeCounterShard] reads.
func (s *CounterShard) Encode() []byte { return encode(shardVersion, s, (*codec).shard) }

// DecodeCounterShard reads what [CounterShard.Encode] wrote. Anything else is
// an error.
func DecodeCounterShard(b []byte) (*CounterShard, error) {
	return decode("counter shard of an endpoint", shardVersion, b, (*codec).shard)
}
