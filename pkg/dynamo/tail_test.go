package dynamo_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

const list = "product"

func readTail(t *testing.T, table *dynamo.Table, org value.ID, after uint64) (entries []index.StoredEntry) {
	t.Helper()
	err := table.TailAfter(t.Context(), org, list, after, false, func(e index.StoredEntry) error {
		entries = append(entries, e)
		return nil
	})
	must(t, err)
	return entries
}

func appendTail(t *testing.T, table *dynamo.Table, org value.ID, body string) index.Position {
	t.Helper()
	a, err := table.AppendTail(t.Context(), org, list, fixed([]byte(body)))
	if err != nil {
		t.Fatalf("append %q: %v", body, err)
	}
	return a
}

// removeEntries deletes entries as their age does.
func removeEntries(t *testing.T, client *dynamodb.Client, table string, org value.ID, sequences ...uint64) {
	t.Helper()
	for _, sequence := range sequences {
		_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: "IDX#" + org.String() + "#" + list},
			"SK": &types.AttributeValueMemberS{Value: fmt.Sprintf("T#%016x", sequence)},
		}})
		must(t, err)
	}
}

func TestTailIsReadFromASequenceOnAndBack(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	for i := range 5 {
		appendTail(t, table, org, fmt.Sprint(i))
	}
	for _, row := range []struct {
		after uint64
		want  string
	}{{0, "01234"}, {3, "34"}, {5, ""}, {1 << 40, ""}, {1<<64 - 1, ""}} {
		t.Run(fmt.Sprint(row.after), func(t *testing.T) {
			var got string
			for _, e := range readTail(t, table, org, row.after) {
				got += string(e.Body)
			}
			if got != row.want {
				t.Errorf("after %d: got %q, want %q", row.after, got, row.want)
			}
		})
	}
	got := ""
	err := table.TailBack(t.Context(), org, list, 3, func(e index.StoredEntry) (bool, error) {
		got += string(e.Body)
		return len(got) < 2, nil
	})
	if err != nil || got != "21" {
		t.Errorf("two entries back from the third: got %q, %v; want 21", got, err)
	}
	if other := readTail(t, table, value.NewID(), 0); len(other) != 0 {
		t.Errorf("another organization's tail: got %d entries, want none", len(other))
	}
}

func TestTailOfManyPagesIsReadWhole(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	body := bytes.Repeat([]byte{7}, index.MaxBody)
	for range 5 {
		if _, err := table.AppendTail(t.Context(), org, list, fixed(body)); err != nil {
			t.Fatal(err)
		}
	}
	for i, e := range readTail(t, table, org, 0) {
		if e.Sequence != uint64(i+1) || !bytes.Equal(e.Body, body) {
			t.Errorf("entry %d: sequence %d of %d bytes", i, e.Sequence, len(e.Body))
		}
	}
	if _, err := table.AppendTail(t.Context(), org, list, fixed(append(body, 7))); err == nil {
		t.Errorf("a body of %d bytes was taken", len(body)+1)
	}
}

func TestTailGoesOnAfterItsEntriesAreGone(t *testing.T) {
	const old = dynamo.TailRetention + time.Hour
	for _, row := range []struct {
		name     string
		covered  uint64
		after    time.Duration
		removed  []uint64
		want     uint64
		standing bool // the entry before the new one
	}{
		{"young", 0, time.Hour, nil, 4, true},
		{"young and folded", 3, time.Hour, nil, 4, true},
		{"old, all there", 3, old, nil, 4, true},
		{"old, not folded", 1, old, nil, 4, true},
		{"old, the newest removed first", 3, old, []uint64{3}, 4, false},
		{"old, one in the middle left", 3, old, []uint64{1, 3}, 4, false},
		{"all removed", 3, old, []uint64{1, 2, 3}, 4, false},
		{"all removed, never folded", 0, old, []uint64{1, 2, 3}, 1, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			client, name := dynamotest.Client(t)
			now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
			table, org := dynamo.New(client, name, func() time.Time { return now }), value.NewID()
			var last index.Position
			for range 3 {
				last = appendTail(t, table, org, "old")
			}
			if row.covered > 0 {
				putManifest(t, table, org, index.StoredManifest{Version: 1, Covered: row.covered})
			}
			now = now.Add(row.after)
			removeEntries(t, client, name, org, row.removed...)
			want := index.Position{Sequence: row.want, Sum: 4, At: value.TimeOf(now)}
			if row.standing {
				want.Sum, want.Previous = 13, last.At
			}
			if end, err := table.TailEnd(t.Context(), org, list); end.Sequence != row.want-1 || err != nil {
				t.Errorf("the tail ends at %+v, %v, want %d", end, err, row.want-1)
			}
			if got := appendTail(t, table, org, "new!"); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			shown := readTail(t, table, org, 0)
			if row.after == old && (len(shown) != 1 || shown[0].Sequence != row.want) {
				t.Errorf("the tail shows %d entries, want the new one only", len(shown))
			}
		})
	}
}

// A writer has appended two entries; then others act, or time passes.
func TestAWriterAsksWhereTheTailEndsUnlessItIsAlone(t *testing.T) {
	for _, row := range []struct {
		name     string
		others   bool   // append an entry
		covered  uint64 // by the manifest
		removed  bool   // all entries, by age
		lost     bool   // the answer to an entry of the writer's
		after    time.Duration
		sequence uint64
		queries  int
	}{
		{name: "alone", sequence: 3},
		{name: "folded", covered: 2, sequence: 3},
		{name: "for nearly an hour", after: time.Hour - 1, sequence: 3},
		{name: "for an hour", after: time.Hour, sequence: 3, queries: 1},
		{name: "others", others: true, sequence: 4, queries: 1},
		{name: "others, folded", others: true, covered: 3, sequence: 4, queries: 1},
		{name: "others, removed", others: true, covered: 3, removed: true, after: dynamo.TailRetention, sequence: 4, queries: 2},
		{name: "lost answer", lost: true, sequence: 4, queries: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			client, name := dynamotest.Client(t)
			now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
			clock := func() time.Time { return now }
			table, proxy := behindProxy(t, client, name, nil, clock)
			org := value.NewID()
			appendTail(t, table, org, "1")
			appendTail(t, table, org, "2")
			if row.others {
				appendTail(t, dynamo.New(client, name, clock), org, "3")
			}
			if row.lost {
				proxy.SetOperation("PutItem", faults.Every(1, faults.LostAnswer))
				if _, err := table.AppendTail(t.Context(), org, list, fixed([]byte("3"))); err == nil {
					t.Error("the answer was not lost")
				}
				proxy.Off()
			}
			if row.covered > 0 {
				putManifest(t, table, org, index.StoredManifest{Version: 1, Covered: row.covered})
			}
			if row.removed {
				removeEntries(t, client, name, org, 1, 2, 3)
			}
			now = now.Add(row.after)
			before := proxy.Counts().Requests["Query"]
			got := appendTail(t, table, org, "!")
			if queries := proxy.Counts().Requests["Query"] - before; got.Sequence != row.sequence || queries != row.queries {
				t.Errorf("appended entry %d with %d queries, want %d with %d", got.Sequence, queries, row.sequence, row.queries)
			}
		})
	}
}

func TestManyWritersShareATail(t *testing.T) {
	const writers, each = 64, 3
	client, name := dynamotest.Client(t)
	org := value.NewID()
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			table := dynamo.New(client, name, time.Now)
			for n := range each {
				if _, err := table.AppendTail(t.Context(), org, list, fixed(fmt.Append(nil, w, n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	bodies := map[string]bool{}
	for n, e := range readTail(t, dynamo.New(client, name, time.Now), org, 0) {
		if bodies[string(e.Body)] = true; e.Sequence != uint64(n+1) {
			t.Errorf("entry %d has the sequence %d", n+1, e.Sequence)
		}
	}
	if len(bodies) != writers*each {
		t.Errorf("got %d entries, want those of %d writers, %d each", len(bodies), writers, each)
	}
}

func TestEntryIsAfterTheOneBefore(t *testing.T) {
	now := value.TimeOf(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	table, org := tableAt(t, &now), value.NewID()
	first := appendTail(t, table, org, "a")
	if second := appendTail(t, table, org, "b"); second.At != first.At+1 || second.Previous != first.At {
		t.Errorf("in the same millisecond: got %+v, want the time after %s", second, first.At)
	}
	now = now.Add(-3 * time.Second)
	if third := appendTail(t, table, org, "c"); third.At != first.At+2 {
		t.Errorf("a writer whose clock is slow: got %+v, want the time after %s", third, first.At+1)
	}
}

func TestEntryIsAfterOneThatHasExpired(t *testing.T) {
	client, name := dynamotest.Client(t)
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	table, org := dynamo.New(client, name, func() time.Time { return now }), value.NewID()
	late := value.TimeOf(now.Add(2 * dynamo.TailRetention))
	putManifest(t, table, org, index.StoredManifest{Version: 1, Covered: 3, CoveredAt: late})
	if end, err := table.TailEnd(t.Context(), org, list); end.Sequence != 3 || end.At != late || err != nil {
		t.Errorf("the tail ends at %+v, %v, want entry 3 of %s", end, err, late)
	}
	if got := appendTail(t, table, org, "new"); got.Sequence != 4 || got.At != late+1 {
		t.Errorf("got %+v, want entry 4 after %s", got, late)
	}
}

// fixed is an entry that is the same wherever it comes to stand.
func fixed(body []byte) func(index.Position) ([]byte, error) {
	return func(index.Position) ([]byte, error) { return body, nil }
}

func TestWhatMustPrecedeAnEntryIsDoneFirst(t *testing.T) {
	now := value.TimeOf(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	table, org := tableAt(t, &now), value.NewID()
	type times struct{ previous, at value.Time }
	var told []times
	refusal := errors.New("not now")
	start := now
	for i, refused := range []error{nil, refusal, nil} {
		now = start.Add(time.Duration(i) * time.Hour)
		_, err := table.AppendTail(t.Context(), org, list, func(next index.Position) ([]byte, error) {
			told = append(told, times{next.Previous, next.At})
			return []byte("x"), refused
		})
		if !errors.Is(err, refused) {
			t.Errorf("append %d: %v, want %v", i, err, refused)
		}
	}
	want := []times{{0, start}, {start, start.Add(time.Hour)}, {start, start.Add(2 * time.Hour)}}
	if !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	if entries := readTail(t, table, org, 0); len(entries) != 2 {
		t.Errorf("got %d entries, want those that were not refused", len(entries))
	}
}

// A writer that is overtaken after it has done what must precede its entry
// does it again for the place that the entry gets.
func TestAnOvertakenAppendIsPreparedAnew(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	var tries int
	got, err := table.AppendTail(t.Context(), org, list, func(next index.Position) ([]byte, error) {
		tries++
		if (next.Previous == 0) != (tries == 1) {
			t.Errorf("try %d: the entry before is from %s", tries, next.Previous)
		}
		if tries <= 3 {
			appendTail(t, table, org, "fast")
		}
		return []byte("late"), nil
	})
	if err != nil || tries != 4 || got.Sequence != 4 || got.Sum != 16 {
		t.Errorf("got %+v, %v after %d tries, want the sequence 4 and the sum 16 after 4", got, err, tries)
	}
}

// BenchmarkSharedTail has processes append to one tail, all together 2,000 times a
// second, or as often as they can.
func BenchmarkSharedTail(b *testing.B) {
	const rate = 2000
	for _, row := range []struct {
		writers int
		delay   time.Duration
	}{{1, 0}, {8, 0}, {64, 0}, {64, 10 * time.Millisecond}} {
		b.Run(fmt.Sprintf("writers=%d,delay=%s", row.writers, row.delay), func(b *testing.B) {
			client, name := dynamotest.Client(b)
			cfg := faults.Config{Meter: faults.NewMeter(), Delay: row.delay}
			org := value.NewID()
			var appended, failed atomic.Int64
			for b.Loop() {
				var group sync.WaitGroup
				for range row.writers {
					table := dynamo.New(dynamodb.New(client.Options(), cfg.Install), name, time.Now)
					group.Go(func() {
						start := time.Now()
						for due := start; time.Since(start) < 5*time.Second; due = due.Add(time.Second * time.Duration(row.writers) / rate) {
							if _, err := table.AppendTail(b.Context(), org, list, fixed(make([]byte, 500))); err != nil {
								failed.Add(1)
							}
							appended.Add(1)
							time.Sleep(time.Until(due))
						}
					})
				}
				group.Wait()
			}
			units, n := cfg.Meter.Total(), float64(appended.Load()-failed.Load())
			b.ReportMetric(n/b.Elapsed().Seconds(), "appends/s")
			b.ReportMetric(float64(failed.Load())/n, "failures/append")
			b.ReportMetric(float64(units.Calls)/n, "calls/append")
			b.ReportMetric(units.Writes/n, "WCU/append")
			b.ReportMetric(units.Reads/n, "RCU/append")
		})
	}
}
