package webhook_test

import (
	"bytes"
	"encoding/binary"
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

func add(t *webhook.CounterShard, at value.Time, attempts ...webhook.Attempt) *webhook.CounterShard {
	next, _ := t.Add(attempts, webhook.Health{}, at)
	return next
}

func TestCounterShardCountsItsAttempts(t *testing.T) {
	shard := add(&webhook.CounterShard{}, now,
		attempt(now-30, 10*time.Millisecond, ""), attempt(now-20, 3*time.Second, "no"), attempt(now-10, 2*time.Second, "connection refused"))
	success, failure, reason := now-30, now-10, "connection refused"
	want := webhook.Health{
		Counters: webhook.Counters{
			SuccessCount: 1, FailureCount: 2, LastSuccessAt: &success, LastFailureAt: &failure, LastFailureReason: &reason,
		},
		LastSuccessAt: now, Since: now - 1000,
		Run:    webhook.FailureRun{Count: 2, Start: now - 20, Last: now - 10},
		Recent: webhook.Recent{Attempts: 3, Failed: 2, Slow: 1},
	}
	got := webhook.HealthOf([]*webhook.CounterShard{shard}, now-1000, now)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Counters, shard.Counters()); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	if h := shard.Hour(); h.SuccessCount != 1 || h.FailureCount != 2 || h.Start != webhook.StatsHour.Start(now) {
		t.Errorf("hour %s: %d and %d, want 1 and 2 of %s", h.Start, h.SuccessCount, h.FailureCount, webhook.StatsHour.Start(now))
	}
}

func TestAddingLeavesTheCounterShardAsItWas(t *testing.T) {
	shard := &webhook.CounterShard{}
	for i := range 10 {
		at := now.Add(time.Duration(i) * 20 * time.Second)
		before := shard.Encode()
		next := add(shard, at, attempt(at, time.Second, "no"), attempt(at, time.Second, ""), attempt(at, time.Second, "no"))
		if !bytes.Equal(shard.Encode(), before) {
			t.Fatalf("after %d batches the shard changed under the next", i)
		}
		shard = next
	}
}

func TestLatestFailureOfAllCounterShardsGivesTheReason(t *testing.T) {
	early, late := attempt(now-1000, 0, "early"), attempt(now-10, 0, "late")
	for name, shards := range map[string][]*webhook.CounterShard{
		"two writers":           {add(&webhook.CounterShard{}, now, late), add(&webhook.CounterShard{}, now, early)},
		"the other way":         {add(&webhook.CounterShard{}, now, early), add(&webhook.CounterShard{}, now, late)},
		"out of order":          {add(&webhook.CounterShard{}, now, late, early)},
		"beside one that is 0":  {add(&webhook.CounterShard{}, now, early, late), {}},
		"with a success behind": {add(&webhook.CounterShard{}, now, early, late, attempt(now, 0, ""))},
	} {
		t.Run(name, func(t *testing.T) {
			c := webhook.HealthOf(shards, 0, now).Counters
			if c.FailureCount != 2 || *c.LastFailureReason != "late" || *c.LastFailureAt != now-10 {
				t.Errorf("%d failures, the last %q at %s; want 2, late at %s", c.FailureCount, *c.LastFailureReason, *c.LastFailureAt, now-10)
			}
		})
	}
}

func TestFinishedHourIsHandedOverOnce(t *testing.T) {
	hour := webhook.StatsHour.Start(now)
	steps := []struct {
		at       value.Time
		attempts int
		finished value.Time // 0: none
	}{
		{hour, 1, 0},
		{hour.Add(time.Hour) - 1, 2, 0},
		{hour.Add(time.Hour), 0, 0}, // nothing is recorded
		{hour.Add(time.Hour), 3, hour},
		{hour.Add(time.Hour) - 1, 1, 0}, // a clock that is behind
		{hour.Add(9 * time.Hour), 1, hour.Add(time.Hour)},
	}
	shard, counted := &webhook.CounterShard{}, map[value.Time]int64{}
	for i, step := range steps {
		next, finished := shard.Add(slices.Repeat([]webhook.Attempt{attempt(step.at, 0, "")}, step.attempts), webhook.Health{}, step.at)
		var start value.Time
		if finished != nil {
			start = finished.Start
			counted[start] += finished.SuccessCount
		}
		if start != step.finished {
			t.Errorf("step %d: finished the hour of %s, want %s", i, start, step.finished)
		}
		shard = next
	}
	counted[shard.Hour().Start] += shard.Hour().SuccessCount
	want := map[value.Time]int64{hour: 3, hour.Add(time.Hour): 4, hour.Add(9 * time.Hour): 1}
	if diff := cmp.Diff(want, counted); diff != "" {
		t.Errorf("attempts by hour (-want +got):\n%s", diff)
	}
}

func TestWhatWasBeforeTellsNothing(t *testing.T) {
	old := add(&webhook.CounterShard{}, now-10, attempt(now-20, 0, "no"), attempt(now-10, 0, "no"))
	for name, tt := range map[string]struct {
		shard *webhook.CounterShard
		since value.Time
		want  int
	}{
		"all of it since":                       {old, now - 20, 2},
		"a part before":                         {old, now - 19, 0},
		"the writer knows and begins anew":      {addKnowing(old, webhook.Health{Since: now - 15}), now - 15, 1},
		"the writer does not know":              {addKnowing(old, webhook.Health{}), now - 15, 0},
		"the writer hears of a success":         {addKnowing(old, webhook.Health{LastSuccessAt: now - 10}), 0, 1},
		"the success was before the run":        {addKnowing(old, webhook.Health{LastSuccessAt: now - 11}), 0, 3},
		"the attempt ended before it counts":    {addKnowing(&webhook.CounterShard{}, webhook.Health{Since: now + 1}), 0, 0},
		"the attempt ended when it must, at it": {addKnowing(&webhook.CounterShard{}, webhook.Health{Since: now}), now, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := webhook.HealthOf([]*webhook.CounterShard{tt.shard}, tt.since, now)
			if h.Run.Count != tt.want {
				t.Errorf("a run of %+v, want %d", h.Run, tt.want)
			}
		})
	}
}

// addKnowing adds a failure that ends now.
func addKnowing(t *webhook.CounterShard, known webhook.Health) *webhook.CounterShard {
	next, _ := t.Add([]webhook.Attempt{attempt(now, 0, "no")}, known, now)
	return next
}

// A record is what one writer added at one time, as a log that all writers
// share would have it.
type record struct {
	at       value.Time
	writer   int
	attempts []webhook.Attempt
}

// trailing are the failures behind the last success of the log that ended
// since.
func trailing(log []record, since value.Time) (run webhook.FailureRun) {
	for _, r := range log {
		for _, a := range r.attempts {
			end := a.At.Add(a.Duration())
			switch {
			case a.Error == nil:
				run = webhook.FailureRun{}
			case end < since:
			case run.Count == 0:
				run = webhook.FailureRun{Count: 1, Start: end, Last: end}
			default:
				run = webhook.FailureRun{Count: run.Count + 1, Start: min(run.Start, end), Last: max(run.Last, end)}
			}
		}
	}
	return run
}

func drawAttempts(t *rapid.T, at value.Time) []webhook.Attempt {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) webhook.Attempt {
		end := at - value.Time(rapid.SampledFrom([]int{0, 0, 1, 50, 30_000}).Draw(t, "since its end"))
		took := time.Duration(rapid.IntRange(0, 4000).Draw(t, "took")) * time.Millisecond
		return attempt(end, took, rapid.SampledFrom([]string{"", "no", "no", "no", "refused"}).Draw(t, "reason"))
	}), 1, 4).Draw(t, "attempts")
}

// Whoever records what in whatever order, and whatever a writer knows of the
// others: counters are exact, and a run never reaches over a success.
func TestHealthHoldsAgainstOneLogOfAllAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		writers := rapid.IntRange(1, 4).Draw(t, "writers")
		fresh := rapid.Bool().Draw(t, "everybody looks at all shards first")
		strict := rapid.Bool().Draw(t, "no two records at the same time")
		shards := slices.Repeat([]*webhook.CounterShard{{}}, writers)
		var since value.Time
		sinceMoved := false
		known := []webhook.Health{{}}
		var log []record
		at, total := now, webhook.Counters{}
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			at = at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 1000, 70_000, 3_600_000}).Draw(t, "passing")) * time.Millisecond)
			if strict {
				at++
			}
			if rapid.IntRange(0, 9).Draw(t, "owner") == 0 {
				since, sinceMoved = at, sinceMoved || len(log) > 0
			}
			r := record{at, rapid.IntRange(0, writers-1).Draw(t, "writer"), drawAttempts(t, at)}
			k := webhook.HealthOf(shards, since, at)
			if !fresh {
				k = known[rapid.IntRange(0, len(known)-1).Draw(t, "known")]
				k.Since = since
			}
			shards[r.writer], _ = shards[r.writer].Add(r.attempts, k, at)
			log = append(log, r)
			for _, a := range r.attempts {
				total.Count(a)
			}
			h := webhook.HealthOf(shards, since, at)
			known = append(known, h)
			want := trailing(log, since)
			exact := !sinceMoved && (writers == 1 || fresh && strict)
			if h.Run.Count > want.Count || h.Run.Count > 0 && (h.Run.Start < want.Start || h.Run.Last > want.Last) || exact && h.Run != want {
				t.Fatalf("run %+v; the log has %+v; exact %t", h.Run, want, exact)
			}
			if diff := cmp.Diff(total, h.Counters, cmp.FilterPath(isReason, cmp.Ignore())); diff != "" {
				t.Fatalf("counters (-log +got):\n%s", diff)
			}
		}
	})
}

// Reasons of failures of the same millisecond have no order.
func isReason(p cmp.Path) bool { return p.Last().String() == ".LastFailureReason" }

// Recent counts by minutes: all of the last four, nothing older than five.
func TestRecentAttemptsAreThoseOfTheLastMinutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := slices.Repeat([]*webhook.CounterShard{{}}, rapid.IntRange(1, 3).Draw(t, "writers"))
		since, at := now, now
		var ends []value.Time
		reset := 0 // attempts before since was moved
		for range rapid.IntRange(1, 60).Draw(t, "attempts") {
			at = at.Add(time.Duration(rapid.IntRange(0, 90_000).Draw(t, "passing")) * time.Millisecond)
			if rapid.IntRange(0, 20).Draw(t, "owner") == 0 {
				since, reset = at, len(ends)
			}
			w := rapid.IntRange(0, len(shards)-1).Draw(t, "writer")
			shards[w], _ = shards[w].Add([]webhook.Attempt{attempt(at, 3*time.Second, "no")}, webhook.Health{Since: since}, at)
			ends = append(ends, at)
			count := func(span time.Duration, ends []value.Time) (n int) {
				for _, end := range ends {
					if end > at.Add(-span) && end >= since {
						n++
					}
				}
				return n
			}
			got := webhook.HealthOf(shards, since, at).Recent
			least, most := count(4*time.Minute, ends[reset:]), count(5*time.Minute, ends)
			if got.Attempts < least || got.Attempts > most || got.Slow != got.Attempts || got.Failed != got.Attempts {
				t.Fatalf("recent %+v, want %d to %d attempts since %s at %s", got, least, most, since, at)
			}
		}
	})
}

func TestCounterShardAtRestReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shard, at := &webhook.CounterShard{}, now
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			at = at.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "passing")) * time.Millisecond)
			shard, _ = shard.Add(drawAttempts(t, at), webhook.Health{}, at)
		}
		body := shard.Encode()
		got, err := webhook.DecodeCounterShard(body)
		if err != nil {
			t.Fatalf("decode %x: %v", body, err)
		}
		shards := func(t *webhook.CounterShard) []*webhook.CounterShard { return []*webhook.CounterShard{t} }
		if diff := cmp.Diff(webhook.HealthOf(shards(shard), 0, at), webhook.HealthOf(shards(got), 0, at)); diff != "" {
			t.Fatalf("health differs:\n%s", diff)
		}
		hour, err := webhook.DecodeHourStats(shard.Hour().Encode())
		if err != nil || *hour != *got.Hour() || *hour != *shard.Hour() {
			t.Fatalf("hour %+v, %v, want %+v", hour, err, shard.Hour())
		}
	})
}

func TestCounterShardAtRestIsSmall(t *testing.T) {
	shard, reason := &webhook.CounterShard{}, "timed out after 15 s waiting for headers"
	for i := range 20_000 { // a busy hour with all kinds of latencies
		at := now.Add(time.Duration(i) * 100 * time.Millisecond)
		shard = add(shard, at, attempt(at, time.Duration(i%97)*time.Duration(i%89)*2*time.Millisecond, ""), attempt(at, 15*time.Second, reason))
	}
	if n := len(shard.Encode()); n >= 700 {
		t.Errorf("%d bytes, want less than 700", n)
	}
	if n := len(add(&webhook.CounterShard{}, now, attempt(now, 20*time.Millisecond, "")).Encode()); n >= 70 {
		t.Errorf("after one attempt %d bytes, want less than 70", n)
	}
	long := add(&webhook.CounterShard{}, now, attempt(now, 0, strings.Repeat("é", 1000)))
	if got := *long.Counters().LastFailureReason; got != strings.Repeat("é", 150) {
		t.Errorf("a reason of 2,000 bytes is kept as %d: %q", len(got), got)
	}
}

func TestMalformedCounterShardIsRefused(t *testing.T) {
	reason := func(length int) []byte { // of one failure, at 0
		head := binary.AppendUvarint([]byte{2, 0, 1, 0}, uint64(length))
		return slices.Concat(head, bytes.Repeat([]byte("n"), length), make([]byte, 8))
	}
	cells := func(n int) []byte {
		return slices.Concat([]byte{2, 0, 0, 0, 0, byte(n)}, make([]byte, 4*n), make([]byte, 5))
	}
	for name, tt := range map[string]struct {
		body []byte
		ok   bool
	}{
		"nothing":                 {nil, false},
		"nothing counted":         {(&webhook.CounterShard{}).Encode(), true},
		"a former version":        {append([]byte{1}, (&webhook.CounterShard{}).Encode()[1:]...), false},
		"a byte too many":         {append((&webhook.CounterShard{}).Encode(), 0), false},
		"a byte too few":          {reason(5)[:15], false},
		"the longest reason":      {reason(300), true},
		"too long a reason":       {reason(301), false},
		"eight minutes":           {cells(8), true},
		"nine minutes":            {cells(9), false},
		"a number in two forms":   {[]byte{2, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, false},
		"a number past all bound": {append(binary.AppendUvarint([]byte{2}, 1<<48+1), make([]byte, 11)...), false},
		"an empty bucket":         {[]byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0}, false},
		"a bucket past the last":  {[]byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 105, 1, 0}, false},
		"the last bucket":         {[]byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 104, 1, 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if shard, err := webhook.DecodeCounterShard(tt.body); (err == nil) != tt.ok || (shard != nil) != tt.ok {
				t.Errorf("%x reads as %+v, %v; want a shard %t", tt.body, shard, err, tt.ok)
			}
		})
	}
}

// seeds are shards and hours at rest, and what is nearly one.
func seeds() [][]byte {
	shard := &webhook.CounterShard{}
	found := [][]byte{nil, {0}, {1}, {2}, shard.Encode(), shard.Hour().Encode()}
	for i := range 12 {
		at := now.Add(time.Duration(i) * 50 * time.Second)
		shard = add(shard, at, attempt(at, time.Duration(i)*700*time.Millisecond, []string{"", "no"}[i%2]))
		found = append(found, shard.Encode(), shard.Hour().Encode())
	}
	last := shard.Encode()
	for i := range last {
		damaged := slices.Clone(last)
		damaged[i] ^= 0x81
		found = append(found, last[:i], damaged)
	}
	return append(found, append(last, 0), bytes.Repeat([]byte{0xff}, 300), append([]byte{1}, bytes.Repeat([]byte{0x80}, 300)...))
}

// What is taken for a shard or an hour is in the one form of it, and can be
// worked with.
func FuzzDecodeCounterShard(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if shard, err := webhook.DecodeCounterShard(b); err == nil {
			if again := shard.Encode(); !bytes.Equal(again, b) {
				t.Fatalf("%x reads as what is written %x", b, again)
			}
			next := add(shard, now, attempt(now, time.Second, "no"))
			webhook.HealthOf([]*webhook.CounterShard{shard, next}, 0, now)
		}
		if hour, err := webhook.DecodeHourStats(b); err == nil {
			if again := hour.Encode(); !bytes.Equal(again, b) {
				t.Fatalf("%x reads as what is written %x", b, again)
			}
			hour.Percentile(95)
		}
	})
}
