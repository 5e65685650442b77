package webhook

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/commerce-integration/service/pkg/value"
)

const (
	// TallyShards is the most tallies that an endpoint has.
	MaxCounterShards = 16
	// RecentSpan is the time that [Health.Recent] looks back on.
	RecentSpan = 5 * time.Minute
	// SlowAttempt is the time past which an attempt is slow.
	SlowAttempt = 2 * time.Second
	// MaxReason is the most bytes of a reason that counters keep.
	MaxReason = 300

	cellSpan = time.Minute
	maxCells = 8
)

// Tally is one writer's share of what an endpoint counts. It is kept beside
// the rows whose attempts it counts and written together with them, so that
// the tallies of an endpoint together count what its rows record and nothing
// twice. Its zero value has counted nothing.
type CounterShard struct {
	counters Counters
	// succeeded is when the last success was recorded.
	succeeded value.Time
	run       shardFailureRun
	// cells are attempts of the last minutes, the oldest first.
	cells []cell
	hour  HourStats
}

// tallyRun is the failed attempts that this writer recorded since its last
// success, or since one of another writer that it knew of.
type shardFailureRun struct {
	FailureRun

	recorded value.Time // when the first was recorded
}

// cell counts the attempts of up to a minute.
type cell struct {
	start                  value.Time // of the first
	attempts, failed, slow int64
}

// Run is failed attempts in a row, in the order in which they were recorded.
// Start and Last are when the earliest and the latest of them ended.
type FailureRun struct {
	Count       int
	Start, Last value.Time
}

// Recent counts the attempts of the last five minutes.
type Recent struct {
	Attempts int
	Failed   int
	Slow     int // took over [SlowAttempt], failed or not
}

// Health is how an endpoint does, by all of its tallies.
type Health struct {
	Counters Counters // since it was created
	// LastSuccessAt is when the last success was recorded, which is a moment
	// after its attempt ended; 0 when there was none.
	LastSuccessAt value.Time
	// Since is the time from which attempts count for Run and Recent.
	Since  value.Time
	Run    FailureRun
	Recent Recent
}

// Counters are what the tally has counted since it began.
func (t *CounterShard) Counters() Counters { return t.counters }

// Hour is the share of the present hour, or of the last one in which
// something was recorded.
func (t *CounterShard) Hour() *HourStats {
	h := t.hour
	return &h
}

// Add returns the tally after attempts, in the order in which they are
// recorded, and the hour that they finished, if any. known is what the writer
// knows of all tallies; its Since should be given even when it did not look
// at the others: attempts that ended before do not count for Run and Recent,
// and a run that began before, or before a success of another writer, begins
// anew.
func (t *CounterShard) Add(attempts []Attempt, known Health, now value.Time) (next *CounterShard, finished *HourStats) {
	next = new(CounterShard)
	*next = *t
	next.cells = slices.Clone(t.cells)
	if hour := HourOf(now); hour > t.hour.Start && len(attempts) > 0 {
		if t.hour.SuccessCount+t.hour.FailureCount > 0 {
			finished = t.Hour()
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
func (t *CounterShard) forget(known Health, now value.Time) {
	interrupted := known.LastSuccessAt > t.succeeded && t.run.recorded <= known.LastSuccessAt
	if interrupted || t.run.Start < known.Since {
		t.run = shardFailureRun{}
	}
	t.cells = slices.DeleteFunc(t.cells, func(c cell) bool {
		return c.start <= now.Add(-RecentSpan) || c.start < known.Since
	})
}

func (t *CounterShard) add(a *Attempt, known Health, now value.Time) {
	counted := *a
	if a.Error != nil {
		reason := clipReason(*a.Error)
		counted.Error = &reason
	}
	t.counters.Count(counted)
	t.hour.add(a)
	at := a.At.Add(a.Duration())
	if a.Error == nil {
		t.succeeded, t.run = max(now, t.succeeded), shardFailureRun{}
	}
	if at < known.Since {
		return
	}
	t.cell(at).add(a)
	if a.Error != nil {
		if t.run.Count == 0 {
			t.run.recorded = now
		}
		t.run.merge(FailureRun{Count: 1, Start: at, Last: at})
	}
}

// cell is the one that an attempt which ended at the time belongs to.
func (t *CounterShard) cell(at value.Time) *cell {
	if n := len(t.cells); n > 0 && at < t.cells[n-1].start.Add(cellSpan) {
		return &t.cells[n-1]
	}
	t.cells = append(t.cells[max(0, len(t.cells)+1-maxCells):], cell{start: at})
	return &t.cells[len(t.cells)-1]
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

// HealthOf joins the tallies of an endpoint as they are at now. Counters are
// of its whole life; for Run and Recent only attempts count that ended since.
//
// With one writer Run is exact. With several it is, as far as their clocks
// agree, never longer than the failures recorded since the last success: a
// run that may have begun before another writer's success does not count
// until its writer, who learns of the success, begins it anew. Recent counts
// everything of the last four minutes and nothing that is older than five.
func HealthOf(tallies []*CounterShard, since, now value.Time) Health {
	h := Health{Since: since}
	for i, t := range tallies {
		h.Counters.merge(&t.counters)
		h.LastSuccessAt = max(h.LastSuccessAt, t.succeeded)
		if t.run.Count > 0 && t.run.Start >= since && t.run.recorded > othersSucceeded(tallies, i) {
			h.Run.merge(t.run.FailureRun)
		}
		for _, c := range t.cells {
			if c.start > now.Add(-RecentSpan) && c.start >= since {
				h.Recent.Attempts += int(c.attempts)
				h.Recent.Failed += int(c.failed)
				h.Recent.Slow += int(c.slow)
			}
		}
	}
	return h
}

func othersSucceeded(tallies []*CounterShard, except int) value.Time {
	var last value.Time
	for i, t := range tallies {
		if i != except {
			last = max(last, t.succeeded)
		}
	}
	return last
}

func (r *FailureRun) merge(o FailureRun) {
	if r.Count == 0 {
		*r = o
		return
	}
	r.Count += o.Count
	r.Start, r.Last = min(r.Start, o.Start), max(r.Last, o.Last)
}

// clipReason keeps the start of a reason, whole characters of it.
func clipReason(reason string) string {
	if len(reason) <= MaxReason {
		return reason
	}
	cut := MaxReason
	for cut > 0 && !utf8.RuneStart(reason[cut]) {
		cut--
	}
	return reason[:cut]
}

// Encode writes the tally, which [DecodeTally] reads.
func (t *CounterShard) Encode() []byte {
	b := append(make([]byte, 0, 256), tallyVersion)
	b = appendCounters(b, &t.counters)
	b = appendTime(b, t.succeeded)
	b = appendNumber(b, int64(t.run.Count))
	if t.run.Count > 0 {
		b = appendTime(appendTime(appendTime(b, t.run.Start), t.run.Last), t.run.recorded)
	}
	b = appendNumber(b, int64(len(t.cells)))
	for _, c := range t.cells {
		b = appendTime(b, c.start)
		b = appendNumber(appendNumber(appendNumber(b, c.attempts), c.failed), c.slow)
	}
	return appendHour(b, &t.hour)
}

// DecodeTally reads what [Tally.Encode] wrote. Anything else is an error.
func DecodeCounterShard(b []byte) (*CounterShard, error) {
	d := decoder{rest: b}
	d.version(tallyVersion)
	t := &CounterShard{counters: d.counters(), succeeded: d.time()}
	if t.run.Count = int(d.number()); t.run.Count > 0 {
		t.run.Start, t.run.Last, t.run.recorded = d.time(), d.time(), d.time()
	}
	for range d.length(maxCells) {
		t.cells = append(t.cells, cell{start: d.time(), attempts: d.number(), failed: d.number(), slow: d.number()})
	}
	t.hour = *d.hour()
	if err := d.end("tally of an endpoint", b, t.Encode); err != nil {
		return nil, err
	}
	return t, nil
}

// Add adds an attempt that this process recorded at now to a health that it
// has read.
func (h *Health) Add(a *Attempt, now value.Time) {
	at := a.At.Add(a.Duration())
	h.Recent.Attempts++
	if a.Duration() > SlowAttempt {
		h.Recent.Slow++
	}
	if a.Error == nil {
		h.LastSuccessAt, h.Run = max(now, h.LastSuccessAt), FailureRun{}
		return
	}
	h.Recent.Failed++
	h.Run.merge(FailureRun{Count: 1, Start: at, Last: at})
}
