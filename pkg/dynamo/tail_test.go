package dynamo_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/value"
)

func readTail(t *testing.T, table *dynamo.Table, org value.ID, after uint64) (entries []dynamo.TailEntry) {
	t.Helper()
	err := table.TailAfter(t.Context(), org, "product", after, func(e dynamo.TailEntry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestConcurrentAppendsLeaveNoGap(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			for i := range 5 {
				if err := table.AppendTail(t.Context(), org, "product", fmt.Appendf(nil, "%d-%d", writer, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	entries := readTail(t, table, org, 0)
	if len(entries) != 20 {
		t.Fatalf("got %d entries, want 20", len(entries))
	}
	for i, e := range entries {
		if e.Sequence != entries[0].Sequence+uint64(i) {
			t.Fatalf("sequences: got %d at %d, want %d", e.Sequence, i, entries[0].Sequence+uint64(i))
		}
	}
	end, err := table.TailEnd(t.Context(), org, "product")
	if err != nil || end != entries[19].Sequence {
		t.Errorf("end: got %d, %v; want %d", end, err, entries[19].Sequence)
	}
	if rest := readTail(t, table, org, entries[14].Sequence); len(rest) != 5 {
		t.Errorf("after the 15th: got %d entries, want 5", len(rest))
	}
	if other := readTail(t, table, value.NewID(), 0); len(other) != 0 {
		t.Errorf("another organization's log: got %d entries, want none", len(other))
	}
}

func TestAReaderOfAnExpiredLogSeesTheNextRun(t *testing.T) {
	client, name := dynamotest.Client(t)
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	table, org := dynamo.New(client, name, func() time.Time { return now }), value.NewID()
	for range 3 {
		if err := table.AppendTail(t.Context(), org, "product", []byte("old")); err != nil {
			t.Fatal(err)
		}
	}
	seen := readTail(t, table, org, 0)
	now = now.Add(dynamo.TailRetention + time.Hour)
	if left := readTail(t, table, org, 0); len(left) != 0 {
		t.Fatalf("expired entries: got %d, want none", len(left))
	}
	if err := table.AppendTail(t.Context(), org, "product", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if next := readTail(t, table, org, seen[2].Sequence); len(next) != 1 || string(next[0].Body) != "new" {
		t.Errorf("after the old run: got %v, want the new entry", next)
	}
}
