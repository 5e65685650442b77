package webhook

import (
	"slices"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

const (
	// MaxReason is the most bytes of a reason that counters keep.
	MaxReason = 300
	// StreamRetention is how long a stream keeps a record: a shard from which none
	// has come for longer brings none again.
	StreamRetention = 25 * time.Hour

	cellSpan = time.Minute
	maxCells = 8
)

// Tally is what is counted of an endpoint: its attempts, from the outcomes in
// the table's stream, and how far each shard of the stream is counted, so that
// each attempt counts once however often its record comes. Its zero value has
// counted nothing.
type Tally struct {
	// Revision rises by one with every write; 0: there is none yet.
	Revision int64

	counters Counters
	run      FailureRun
	// cells are attempts of the last minutes, the oldest first.
	cells     []cell
	hour      HourStats
	day       EventDay
	positions []position
}

// cell counts the attempts of up to a minute.
type cell struct {
	start                  value.Time // of the first
	attempts, failed, slow int64
}

// position says how far a shard of the stream is counted. The sequence numbers of
// a shard rise; those of another shard say nothing.
type position struct {
	shard    int64  // identifies it
	sequence string // of its last record that is counted
	at       value.Time
}

// StreamOutcome is the outcome of an attempt in the stream: the delivery before
// and after it, and its place. Shard identifies the shard, in 48 bits.
type StreamOutcome struct {
	Previous, Next *Delivery
	Shard          int64
	Sequence       string
	At             value.Time // when it was written
}

// Attempt is the attempt that the outcome is of.
func (o *StreamOutcome) Attempt() *Attempt { return &o.Next.Attempts[len(o.Next.Attempts)-1] }

// Troubled reports whether an endpoint's routing may have to change by the outcomes:
// an attempt failed or was slow, or the routing was not the usual one.
func Troubled(outcomes []StreamOutcome) bool {
	return slices.ContainsFunc(outcomes, func(o StreamOutcome) bool {
		a := o.Attempt()
		return a.Error != nil || a.Duration() > SlowAttempt || o.Next.Unsettled
	})
}

// Finished are the hours and days that a count has ended. They are kept apart
// from the tally from then on.
type Finished struct {
	Hours []HourStats
	Days  []EventDay
}

// Counters are what has been counted since the endpoint was created.
func (t *Tally) Counters() Counters { return t.counters }

// Hour is the present hour, or the last one in which something was recorded.
func (t *Tally) Hour() *HourStats {
	h := t.hour
	return &h
}

// Day is the present day, or the last one on which something was recorded.
func (t *Tally) Day() EventDay { return t.day }

// Count returns the tally after those of the outcomes that are not counted yet,
// nil when all are. Outcomes of a shard are in the order of the stream. Attempts
// that ended before since do not count for Run and Recent, and a run of failures
// that began before begins anew. An attempt counts in the hour and on the day in
// which it was recorded, or in the present one when that is over.
func (t *Tally) Count(outcomes []StreamOutcome, since value.Time) (next *Tally, finished Finished) {
	next = new(Tally)
	*next = *t
	next.Revision++
	next.cells, next.positions = slices.Clone(t.cells), slices.Clone(t.positions)
	if next.run.Start < since {
		next.run = FailureRun{}
	}
	next.cells = slices.DeleteFunc(next.cells, func(c cell) bool { return c.start < since })
	counted := false
	for i := range outcomes {
		if o := &outcomes[i]; next.pass(o) {
			next.turn(o.Next.UpdatedAt, &finished)
			next.add(o.Attempt(), since)
			next.day.Count(o.Previous, o.Next)
			counted = true
		}
	}
	if !counted {
		return nil, Finished{}
	}
	next.forget()
	return next, finished
}

// pass notes that the outcome is counted; false means that it was before.
func (t *Tally) pass(o *StreamOutcome) bool {
	i := slices.IndexFunc(t.positions, func(p position) bool { return p.shard == o.Shard })
	if i < 0 {
		i, t.positions = len(t.positions), append(t.positions, position{shard: o.Shard})
	}
	p := &t.positions[i]
	if value.CompareSequences(o.Sequence, p.sequence) <= 0 {
		return false
	}
	p.sequence, p.at = o.Sequence, max(p.at, o.At)
	return true
}

// turn begins a new hour and a new day where the time lies in a later one.
func (t *Tally) turn(now value.Time, finished *Finished) {
	if hour := StatsHour.Start(now); hour > t.hour.Start {
		if t.hour.SuccessCount+t.hour.FailureCount > 0 {
			finished.Hours = append(finished.Hours, t.hour)
		}
		t.hour = HourStats{Start: hour}
	}
	if day := StatsDay.Start(now); day > t.day.Start {
		if t.day != (EventDay{Start: t.day.Start}) {
			finished.Days = append(finished.Days, t.day)
		}
		t.day = EventDay{Start: day}
	}
}

func (t *Tally) add(a *Attempt, since value.Time) {
	counted, failed, at := *a, a.Error != nil, a.End()
	if failed {
		reason := clip(*a.Error, MaxReason)
		counted.Error = &reason
	} else {
		t.run = FailureRun{}
	}
	t.counters.Count(counted)
	t.hour.add(a)
	if at < since {
		return
	}
	t.cell(at).add(a)
	if failed {
		t.run.add(at)
	}
}

// cell is the one that an attempt which ended at the time belongs to.
func (t *Tally) cell(at value.Time) *cell {
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

// forget leaves out the cells that are no longer recent, and the shards that have
// ended.
func (t *Tally) forget() {
	var last value.Time
	for _, p := range t.positions {
		last = max(last, p.at)
	}
	t.cells = slices.DeleteFunc(t.cells, func(c cell) bool { return c.start <= last.Add(-RecentSpan) })
	t.positions = slices.DeleteFunc(t.positions, func(p position) bool { return p.at < last.Add(-StreamRetention) })
}

// Health is how the endpoint does at now; for Run and Recent only attempts count
// that ended since.
func (t *Tally) Health(since, now value.Time) Health {
	h := Health{Counters: t.counters}
	if t.run.Start >= since {
		h.Run = t.run
	}
	for _, c := range t.cells {
		if c.start > now.Add(-RecentSpan) && c.start >= since {
			h.Recent.Attempts += int(c.attempts)
			h.Recent.Failed += int(c.failed)
			h.Recent.Slow += int(c.slow)
		}
	}
	return h
}

// Encode writes the tally but for its revision; [DecodeTally] reads it.
func (t *Tally) Encode() []byte { return encode(tallyVersion, t, (*codec).tally) }

// DecodeTally reads what [Tally.Encode] wrote. Anything else is an error.
func DecodeTally(b []byte) (*Tally, error) {
	return decode("tally of an endpoint", tallyVersion, b, (*codec).tally)
}
