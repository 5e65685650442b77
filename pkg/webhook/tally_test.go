package webhook_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// attempt is one that ended at the time, well when reason is "".
func attempt(at value.Time, took time.Duration, reason string) webhook.Attempt {
	a := webhook.Attempt{At: at.Add(-took), DurationMs: took.Milliseconds()}
	if reason != "" {
		a.Error = &reason
	}
	return a
}

// outcomeOf is the outcome of the delivery's next attempt, which was recorded at the
// time and is the nth of its shard.
func outcomeOf(d *webhook.Delivery, a webhook.Attempt, at value.Time, shard int64, n int) webhook.StreamOutcome {
	result := webhook.AttemptSucceeded
	if a.Error != nil {
		result = webhook.AttemptFailed
	}
	next := d.Record(webhook.Outcome{Attempt: a, Result: result}, "", webhook.MaxRetryCount, 0, at)
	return webhook.StreamOutcome{Previous: d, Next: next, Shard: shard, Sequence: fmt.Sprint(n), At: at}
}

// counting adds attempts, recorded at the time, to a tally.
func counting(t *webhook.Tally, since, at value.Time, attempts ...webhook.Attempt) (*webhook.Tally, webhook.Finished) {
	outcomes := make([]webhook.StreamOutcome, len(attempts))
	for i, a := range attempts {
		outcomes[i] = outcomeOf(&webhook.Delivery{}, a, at, 1, 1000*int(t.Revision)+i+1)
	}
	return t.Count(outcomes, since)
}

func add(t *webhook.Tally, at value.Time, attempts ...webhook.Attempt) *webhook.Tally {
	next, _ := counting(t, 0, at, attempts...)
	return next
}

func TestATallyCountsAttempts(t *testing.T) {
	tally := add(&webhook.Tally{}, now,
		attempt(now-30, 10*time.Millisecond, ""), attempt(now-20, 3*time.Second, "no"), attempt(now-10, 2*time.Second, "connection refused"))
	success, failure, reason := now-30, now-10, "connection refused"
	want := webhook.Health{
		Counters: webhook.Counters{
			SuccessCount: 1, FailureCount: 2, LastSuccessAt: &success, LastFailureAt: &failure, LastFailureReason: &reason,
		},
		Run:    webhook.FailureRun{Count: 2, Start: now - 20, Last: now - 10},
		Recent: webhook.Recent{Attempts: 3, Failed: 2, Slow: 1},
	}
	if diff := cmp.Diff(want, tally.Health(now-1000, now)); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Counters, tally.Counters()); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	if h := tally.Hour(); h.SuccessCount != 1 || h.FailureCount != 2 || h.Start != webhook.StatsHour.Start(now) {
		t.Errorf("hour %s: %d and %d, want 1 and 2 of %s", h.Start, h.SuccessCount, h.FailureCount, webhook.StatsHour.Start(now))
	}
	if tally.Revision != 1 {
		t.Errorf("revision %d, want 1", tally.Revision)
	}
}

func TestCountingLeavesTheTallyAsItWas(t *testing.T) {
	tally := &webhook.Tally{}
	for i := range 10 {
		at := now.Add(time.Duration(i) * 20 * time.Second)
		before := tally.Encode()
		next := add(tally, at, attempt(at, time.Second, "no"), attempt(at, time.Second, ""), attempt(at, time.Second, "no"))
		if !bytes.Equal(tally.Encode(), before) {
			t.Fatalf("after %d batches the tally changed under the next", i)
		}
		tally = next
	}
}

func TestTheLatestFailureGivesTheReason(t *testing.T) {
	early, late := attempt(now-1000, 0, "early"), attempt(now-10, 0, "late")
	for name, attempts := range map[string][]webhook.Attempt{
		"in order":              {early, late},
		"out of order":          {late, early},
		"with a success behind": {early, late, attempt(now, 0, "")},
	} {
		t.Run(name, func(t *testing.T) {
			c := add(&webhook.Tally{}, now, attempts...).Counters()
			if c.FailureCount != 2 || *c.LastFailureReason != "late" || *c.LastFailureAt != now-10 {
				t.Errorf("%d failures, the last %q at %s; want 2, late at %s", c.FailureCount, *c.LastFailureReason, *c.LastFailureAt, now-10)
			}
		})
	}
}

func TestFinishedHoursAndDaysAreHandedOverOnce(t *testing.T) {
	midnight := value.TimeOf(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
	hours, days := map[value.Time]int64{}, map[value.Time]int64{}
	tally := &webhook.Tally{}
	for i, step := range []struct {
		at          []value.Time
		hours, days int // finished
	}{
		{[]value.Time{midnight.Add(-time.Hour), midnight - 1}, 0, 0},
		{[]value.Time{midnight}, 1, 1},
		{[]value.Time{midnight - 1}, 0, 0}, // a clock that is behind
		{[]value.Time{midnight.Add(time.Hour) - 1, midnight.Add(time.Hour), midnight.Add(26 * time.Hour)}, 2, 1},
	} {
		var outcomes []webhook.StreamOutcome
		for n, at := range step.at {
			outcomes = append(outcomes, outcomeOf(&webhook.Delivery{}, attempt(at, 0, ""), at, 1, 10*i+n+1))
		}
		next, finished := tally.Count(outcomes, 0)
		if len(finished.Hours) != step.hours || len(finished.Days) != step.days {
			t.Errorf("step %d: finished %+v and %+v, want %d hours and %d days", i, finished.Hours, finished.Days, step.hours, step.days)
		}
		for _, h := range finished.Hours {
			hours[h.Start] += h.SuccessCount
		}
		for _, d := range finished.Days {
			days[d.Start] += d.Delivered
		}
		tally = next
	}
	hours[tally.Hour().Start] += tally.Hour().SuccessCount
	days[tally.Day().Start] += tally.Day().Delivered
	wantHours := map[value.Time]int64{midnight.Add(-time.Hour): 2, midnight: 3, midnight.Add(time.Hour): 1, midnight.Add(26 * time.Hour): 1}
	wantDays := map[value.Time]int64{midnight.Add(-24 * time.Hour): 2, midnight: 4, midnight.Add(24 * time.Hour): 1}
	if !maps.Equal(hours, wantHours) || !maps.Equal(days, wantDays) {
		t.Errorf("by hour %v and by day %v, want %v and %v", hours, days, wantHours, wantDays)
	}
}

func TestWhatWasBeforeSaysNothing(t *testing.T) {
	old := add(&webhook.Tally{}, now-10, attempt(now-20, 0, "no"), attempt(now-10, 0, "no"))
	failed := func(t *webhook.Tally, since value.Time) *webhook.Tally {
		next, _ := counting(t, since, now, attempt(now, 0, "no"))
		return next
	}
	for name, tt := range map[string]struct {
		tally *webhook.Tally
		since value.Time
		want  int
	}{
		"all of it since":                       {old, now - 20, 2},
		"a part before":                         {old, now - 19, 0},
		"the run begins anew":                   {failed(old, now-15), now - 15, 1},
		"the attempt ended before it counts":    {failed(&webhook.Tally{}, now+1), 0, 0},
		"the attempt ended when it must, at it": {failed(&webhook.Tally{}, now), now, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if h := tt.tally.Health(tt.since, now); h.Run.Count != tt.want {
				t.Errorf("a run of %+v, want %d", h.Run, tt.want)
			}
		})
	}
}

// shardOf is a shard of the stream with outcomes, which were counted up to a place.
type shardOf struct {
	id       int64
	outcomes []webhook.StreamOutcome
	done     int
}

// However the stream's shards are read, in batches that overlap, come again or are
// of a shard that was divided: each attempt counts once.
func TestEachAttemptCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tally, total := &webhook.Tally{}, webhook.Counters{}
		var events int64
		shards := []*shardOf{{id: 1}}
		at := now
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s := rapid.SampledFrom(shards).Draw(t, "shard")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0: // the shard is divided
				if len(shards) < 6 {
					shards = append(shards, &shardOf{id: int64(len(shards) + 1)})
				}
			case 1, 2:
				at = at.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "passing")) * time.Millisecond)
				for _, a := range drawAttempts(t, at) {
					d := &webhook.Delivery{AttemptCount: rapid.IntRange(0, 2).Draw(t, "attempts before")}
					s.outcomes = append(s.outcomes, outcomeOf(d, a, at, s.id, 100*len(s.outcomes)+1))
					total.Count(a)
					if d.AttemptCount == 0 {
						events++
					}
				}
			case 3: // a batch from the last checkpoint, or from an earlier one
				from := rapid.IntRange(0, s.done).Draw(t, "from")
				to := rapid.IntRange(from, len(s.outcomes)).Draw(t, "to")
				if next, _ := tally.Count(s.outcomes[from:to], 0); next != nil {
					tally = next
				}
				s.done = max(s.done, to)
			}
		}
		for _, s := range shards {
			if next, _ := tally.Count(s.outcomes[s.done:], 0); next != nil {
				tally = next
			}
			if next, _ := tally.Count(s.outcomes, 0); next != nil {
				t.Fatal("outcomes count again")
			}
		}
		if diff := cmp.Diff(total, tally.Counters(), cmp.FilterPath(isReason, cmp.Ignore())); diff != "" {
			t.Fatalf("counters (-attempts +got):\n%s", diff)
		}
	})
}

func drawAttempts(t *rapid.T, at value.Time) []webhook.Attempt {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) webhook.Attempt {
		end := at - value.Time(rapid.SampledFrom([]int{0, 0, 1, 50, 30_000}).Draw(t, "since its end"))
		took := time.Duration(rapid.IntRange(0, 4000).Draw(t, "took")) * time.Millisecond
		return attempt(end, took, rapid.SampledFrom([]string{"", "no", "no", "no", "refused"}).Draw(t, "reason"))
	}), 1, 4).Draw(t, "attempts")
}

// Reasons of failures of the same millisecond have no order.
func isReason(p cmp.Path) bool { return p.Last().String() == ".LastFailureReason" }

// A run is the failures since the last success in the order of counting.
func TestARunIsTheFailuresSinceTheLastSuccess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tally, at, since := &webhook.Tally{}, now, value.Time(0)
		var want webhook.FailureRun
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			at = at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 1000, 70_000, 3_600_000}).Draw(t, "passing")) * time.Millisecond)
			if rapid.IntRange(0, 9).Draw(t, "owner") == 0 {
				if since = at; want.Start < since {
					want = webhook.FailureRun{}
				}
			}
			attempts := drawAttempts(t, at)
			for _, a := range attempts {
				switch end := a.End(); {
				case a.Error == nil:
					want = webhook.FailureRun{}
				case end < since:
				case want.Count == 0:
					want = webhook.FailureRun{Count: 1, Start: end, Last: end}
				default:
					want = webhook.FailureRun{Count: want.Count + 1, Start: min(want.Start, end), Last: max(want.Last, end)}
				}
			}
			tally, _ = counting(tally, since, at, attempts...)
			if got := tally.Health(since, at).Run; got != want {
				t.Fatalf("run %+v, want %+v", got, want)
			}
		}
	})
}

// Recent counts by minutes: all of the last four, nothing older than five.
func TestRecentAttemptsAreThoseOfTheLastMinutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tally := &webhook.Tally{}
		since, at := now, now
		var ends []value.Time
		reset := 0 // attempts before since was moved
		for range rapid.IntRange(1, 60).Draw(t, "attempts") {
			at = at.Add(time.Duration(rapid.IntRange(0, 90_000).Draw(t, "passing")) * time.Millisecond)
			if rapid.IntRange(0, 20).Draw(t, "owner") == 0 {
				since, reset = at, len(ends)
			}
			tally, _ = counting(tally, since, at, attempt(at, 3*time.Second, "no"))
			ends = append(ends, at)
			count := func(span time.Duration, ends []value.Time) (n int) {
				for _, end := range ends {
					if end > at.Add(-span) && end >= since {
						n++
					}
				}
				return n
			}
			got := tally.Health(since, at).Recent
			least, most := count(4*time.Minute, ends[reset:]), count(5*time.Minute, ends)
			if got.Attempts < least || got.Attempts > most || got.Slow != got.Attempts || got.Failed != got.Attempts {
				t.Fatalf("recent %+v, want %d to %d attempts since %s at %s", got, least, most, since, at)
			}
		}
	})
}

func TestATallyAtRestReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tally, at := &webhook.Tally{}, now
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			at = at.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "passing")) * time.Millisecond)
			tally = add(tally, at, drawAttempts(t, at)...)
		}
		body := tally.Encode()
		got, err := webhook.DecodeTally(body)
		if err != nil {
			t.Fatalf("decode %x: %v", body, err)
		}
		if diff := cmp.Diff(tally.Health(0, at), got.Health(0, at)); diff != "" || tally.Day() != got.Day() {
			t.Fatalf("health differs:\n%s", diff)
		}
		hour, err := webhook.DecodeHourStats(tally.Hour().Encode())
		if err != nil || *hour != *got.Hour() || *hour != *tally.Hour() {
			t.Fatalf("hour %+v, %v, want %+v", hour, err, tally.Hour())
		}
	})
}

func TestATallyAtRestIsSmall(t *testing.T) {
	tally, reason := &webhook.Tally{}, "timed out after 15 s waiting for headers"
	for i := range 20_000 { // a busy hour with all kinds of latencies
		at := now.Add(time.Duration(i) * 100 * time.Millisecond)
		tally = add(tally, at, attempt(at, time.Duration(i%97)*time.Duration(i%89)*2*time.Millisecond, ""), attempt(at, 15*time.Second, reason))
	}
	if n := len(tally.Encode()); n >= 700 {
		t.Errorf("%d bytes, want less than 700", n)
	}
	if n := len(add(&webhook.Tally{}, now, attempt(now, 20*time.Millisecond, "")).Encode()); n >= 90 {
		t.Errorf("after one attempt %d bytes, want less than 90", n)
	}
	long := add(&webhook.Tally{}, now, attempt(now, 0, strings.Repeat("é", 1000)))
	if got := *long.Counters().LastFailureReason; got != strings.Repeat("é", 150) {
		t.Errorf("a reason of 2,000 bytes is kept as %d: %q", len(got), got)
	}
}

// The shards of a stream end after some hours, and none brings a record that is
// older than the stream keeps.
func TestShardsThatEndedAreForgotten(t *testing.T) {
	tally := &webhook.Tally{}
	var most int
	for hour := range 100 {
		at := now.Add(time.Duration(hour) * time.Hour)
		tally, _ = tally.Count([]webhook.StreamOutcome{outcomeOf(&webhook.Delivery{}, attempt(at, 0, ""), at, int64(hour)+1<<40, 1)}, 0)
		most = max(most, len(tally.Encode()))
	}
	if again, _ := tally.Count([]webhook.StreamOutcome{outcomeOf(&webhook.Delivery{}, attempt(now, 0, ""), now, 75+1<<40, 1)}, 0); again != nil {
		t.Error("a record of a day ago counts again")
	}
	if most > 600 {
		t.Errorf("%d bytes, want at most 600", most)
	}
}

func TestMalformedTallyIsRefused(t *testing.T) {
	empty := (&webhook.Tally{}).Encode()
	reason := func(length int) []byte { // of one failure, at 0
		head := binary.AppendUvarint([]byte{3, 0, 1, 0}, uint64(length))
		return slices.Concat(head, bytes.Repeat([]byte("n"), length), make([]byte, 8))
	}
	cells := func(n int) []byte {
		return slices.Concat([]byte{3, 0, 0, 0, byte(n)}, make([]byte, 4*n), make([]byte, 6))
	}
	for name, tt := range map[string]struct {
		body []byte
		ok   bool
	}{
		"nothing":                 {nil, false},
		"nothing counted":         {empty, true},
		"a former version":        {append([]byte{2}, empty[1:]...), false},
		"a byte too many":         {append(slices.Clone(empty), 0), false},
		"a byte too few":          {reason(5)[:14], false},
		"the longest reason":      {reason(300), true},
		"too long a reason":       {reason(301), false},
		"eight minutes":           {cells(8), true},
		"nine minutes":            {cells(9), false},
		"a number in two forms":   {append([]byte{3, 0x80, 0}, empty[2:]...), false},
		"a number past all bound": {append(binary.AppendUvarint([]byte{3}, 1<<48+1), empty[2:]...), false},
		"an empty bucket":         {[]byte{3, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0}, false},
		"a bucket past the last":  {[]byte{3, 0, 0, 0, 0, 0, 0, 0, 1, 105, 1, 0, 0}, false},
		"the last bucket":         {[]byte{3, 0, 0, 0, 0, 0, 0, 0, 1, 104, 1, 0, 0}, true},
		"a shard":                 {append(slices.Clone(empty[:len(empty)-1]), 1, 7, 9, 1, '5'), true},
		"a shard cut off":         {append(slices.Clone(empty[:len(empty)-1]), 1, 7, 9, 2, '5'), false},
	} {
		t.Run(name, func(t *testing.T) {
			if tally, err := webhook.DecodeTally(tt.body); (err == nil) != tt.ok || (tally != nil) != tt.ok {
				t.Errorf("%x reads as %+v, %v; want a tally %t", tt.body, tally, err, tt.ok)
			}
		})
	}
}

// seeds are tallies and hours at rest, and what is nearly one.
func seeds() [][]byte {
	tally := &webhook.Tally{}
	found := [][]byte{nil, {0}, {1}, {3}, tally.Encode(), tally.Hour().Encode()}
	for i := range 12 {
		at := now.Add(time.Duration(i) * 50 * time.Second)
		tally = add(tally, at, attempt(at, time.Duration(i)*700*time.Millisecond, []string{"", "no"}[i%2]))
		found = append(found, tally.Encode(), tally.Hour().Encode())
	}
	last := tally.Encode()
	for i := range last {
		damaged := slices.Clone(last)
		damaged[i] ^= 0x81
		found = append(found, last[:i], damaged)
	}
	return append(found, append(last, 0), bytes.Repeat([]byte{0xff}, 300), append([]byte{1}, bytes.Repeat([]byte{0x80}, 300)...))
}

// What is taken for a tally or an hour is in the one form of it, and can be
// worked with.
func FuzzDecodeTally(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if tally, err := webhook.DecodeTally(b); err == nil {
			if again := tally.Encode(); !bytes.Equal(again, b) {
				t.Fatalf("%x reads as what is written %x", b, again)
			}
			if next := add(tally, now, attempt(now, time.Second, "no")); next != nil {
				next.Health(0, now)
			}
		}
		if hour, err := webhook.DecodeHourStats(b); err == nil {
			if again := hour.Encode(); !bytes.Equal(again, b) {
				t.Fatalf("%x reads as what is written %x", b, again)
			}
			hour.Percentile(95)
		}
	})
}
