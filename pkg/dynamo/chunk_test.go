package dynamo_test

import (
	"bytes"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

func readChunks(t *testing.T, table *dynamo.Table, org value.ID, numbers ...uint64) map[uint64]index.StoredChunk {
	t.Helper()
	found := map[uint64]index.StoredChunk{}
	err := table.Chunks(t.Context(), org, list, numbers, false, func(c index.StoredChunk) error {
		if _, twice := found[c.Number]; twice {
			t.Errorf("chunk %d was given twice", c.Number)
		}
		found[c.Number] = c
		return nil
	})
	must(t, err)
	return found
}

func putChunk(t *testing.T, table *dynamo.Table, org value.ID, c index.StoredChunk, replaces uint64) bool {
	t.Helper()
	done, err := table.PutChunk(t.Context(), org, list, c, replaces)
	if err != nil {
		t.Fatalf("put chunk %d over %d: %v", c.Number, replaces, err)
	}
	return done
}

func TestAChunkIsOverwrittenByItsReplacementOnly(t *testing.T) {
	const (
		nothing  = 0
		own      = 7
		replaced = 8
		foreign  = 9
	)
	for _, row := range []struct {
		name     string
		lies     uint64
		age      time.Duration
		replaces uint64
		want     bool
	}{
		{"empty", nothing, 0, 0, true},
		{"empty instead of what it replaces", nothing, 0, replaced, true},
		{"what it replaces", replaced, 0, replaced, true},
		{"its own earlier try", own, 0, 0, true},
		{"its own earlier try over another", own, 0, replaced, true},
		{"another's", foreign, 0, 0, false},
		{"another's of a year ago", foreign, 365 * 24 * time.Hour, 0, false},
		{"another's instead of what it replaces", foreign, 0, replaced, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			now := value.TimeOf(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
			table, org := tableAt(t, &now), value.NewID()
			if row.lies != nothing {
				putChunk(t, table, org, index.StoredChunk{Number: 1, ContentID: row.lies, Body: []byte("lies")}, 0)
			}
			now = now.Add(row.age)
			if got := putChunk(t, table, org, index.StoredChunk{Number: 1, ContentID: own, Body: []byte("new")}, row.replaces); got != row.want {
				t.Errorf("got %t, want %t", got, row.want)
			}
			if got := readChunks(t, table, org, 1)[1].ContentID; (got == own) != row.want {
				t.Errorf("the chunk has the content %d", got)
			}
		})
	}
}

func TestAChunkIsDeletedByItsContentID(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	putChunk(t, table, org, index.StoredChunk{Number: 1, ContentID: 5}, 0)
	for i, row := range []struct {
		org               value.ID
		number, contentID uint64
		left              int
	}{{value.NewID(), 1, 5, 1}, {org, 2, 5, 1}, {org, 1, 6, 1}, {org, 1, 5, 0}, {org, 1, 5, 0}} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if err := table.DeleteChunk(t.Context(), row.org, list, row.number, row.contentID); err != nil {
				t.Error(err)
			}
			if left := readChunks(t, table, org, 1); len(left) != row.left {
				t.Errorf("delete %d of chunk %d: %d chunks left, want %d", row.contentID, row.number, len(left), row.left)
			}
		})
	}
}

func TestChunksThatAreThereAreRead(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	want := map[uint64]index.StoredChunk{}
	var numbers []uint64
	for number := range uint64(90) {
		numbers = append(numbers, number<<40)
		if number%3 == 0 {
			continue
		}
		size := 1000
		if number > 75 {
			size = index.MaxBody
		}
		c := index.StoredChunk{Number: number << 40, ContentID: number + 1, Body: bytes.Repeat([]byte{byte(number)}, size)}
		putChunk(t, table, org, c, 0)
		want[c.Number] = c
	}
	for _, n := range []int{0, 1, 3, 4, 5, 17, 90} {
		got := readChunks(t, table, org, numbers[:n]...)
		there := 0
		for _, number := range numbers[:n] {
			w, ok := want[number]
			if ok {
				there++
			}
			if g := got[number]; g.ContentID != w.ContentID || !bytes.Equal(g.Body, w.Body) {
				t.Errorf("chunk %x of %d: got the content %d and %d bytes, want %d and %d", number, n, g.ContentID, len(g.Body), w.ContentID, len(w.Body))
			}
		}
		if len(got) != there {
			t.Errorf("got %d of %d chunks, want %d", len(got), n, there)
		}
	}
	if got := readChunks(t, table, value.NewID(), numbers...); len(got) != 0 {
		t.Errorf("another organization reads %d chunks", len(got))
	}
}

func TestChunksAreGivenOneAtATimeUntilOneIsRefused(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	var numbers []uint64
	for number := range uint64(40) {
		numbers = append(numbers, number)
		putChunk(t, table, org, index.StoredChunk{Number: number, ContentID: 1}, 0)
	}
	refusal := errors.New("enough")
	var at, given atomic.Int32
	err := table.Chunks(t.Context(), org, list, numbers, false, func(index.StoredChunk) error {
		if at.Add(1) > 1 {
			t.Error("two chunks were given at a time")
		}
		defer at.Add(-1)
		if given.Add(1) == 5 {
			return refusal
		}
		return nil
	})
	if !errors.Is(err, refusal) || given.Load() != 5 {
		t.Errorf("got %v after %d chunks, want the refusal after 5", err, given.Load())
	}
}

func TestChunksThatTheTableLeavesUnprocessedAreAskedForAgain(t *testing.T) {
	table, proxy := faultyTable(t, faults.Every(0.9, faults.Unprocessed))
	org := value.NewID()
	var numbers []uint64
	for number := range uint64(30) {
		numbers = append(numbers, number)
		putChunk(t, table, org, index.StoredChunk{Number: number, ContentID: number + 1}, 0)
	}
	got := readChunks(t, table, org, numbers...)
	for _, number := range numbers {
		if got[number].ContentID != number+1 {
			t.Errorf("chunk %d: got the content %d", number, got[number].ContentID)
		}
	}
	if n := proxy.Counts().Of(faults.Unprocessed); n == 0 {
		t.Error("nothing was left unprocessed")
	}
}
