package index

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// chunksOf is a storage that holds chunks, each byte of which is its number, and notes
// which are read.
type chunksOf struct {
	Reader
	read []uint64
}

func (c *chunksOf) Chunks(_ context.Context, _ value.ID, _ string, numbers []uint64, _ bool, each func(StoredChunk) error) error {
	for _, n := range slices.Sorted(slices.Values(numbers)) {
		c.read = append(c.read, n)
		if err := each(storedChunk(n)); err != nil {
			return err
		}
	}
	return nil
}

func storedChunk(n uint64) StoredChunk {
	body := bytes.Repeat([]byte{byte(n)}, 40)
	return StoredChunk{Number: n, ContentID: n<<32 | uint64(crc32.ChecksumIEEE(body)), Body: body}
}

func TestOnlyTheChunksOfWantedGroupsAreRead(t *testing.T) {
	for _, row := range []struct {
		core int
		text bool
		want []uint64
	}{
		{30, false, []uint64{1}},
		{40, false, []uint64{1}},
		{41, false, []uint64{1, 2}},
		{120, false, []uint64{1, 2, 3}},
		{30, true, []uint64{1, 2, 3}},
	} {
		t.Run(fmt.Sprint(row.core, row.text), func(t *testing.T) {
			s := &Segment{Groups: [segment.NumGroups]int{row.core, 120 - row.core}}
			for n := range uint64(3) {
				s.Chunks = append(s.Chunks, Chunk{Number: n + 1, ContentID: storedChunk(n + 1).ContentID, Size: 40})
			}
			storage := &chunksOf{}
			bodies, err := Index{Key: Key{List: &List{}}, Reader: storage}.chunks(t.Context(), []*Segment{s}, row.text)
			if err != nil || !slices.Equal(storage.read, row.want) {
				t.Errorf("reads %v, %v; want %v", storage.read, err, row.want)
			}
			groups := s.groups(bodies, row.text)
			if len(groups[0]) != row.core || row.text && len(groups[1]) != 120-row.core || !row.text && groups[1] != nil {
				t.Errorf("groups of %d and %d bytes", len(groups[0]), len(groups[1]))
			}
			for i, got := range slices.Concat(groups[0], groups[1]) {
				if int(got) != 1+i/40 {
					t.Errorf("byte %d is of chunk %d", i, got)
				}
			}
		})
	}
}

func TestPartsAreCalendarMonthsAndDays(t *testing.T) {
	monthly, daily := &List{By: Monthly, Keep: 30 * 24 * time.Hour}, &List{By: Daily, Keep: 24 * time.Hour}
	at := func(text string) time.Time {
		v, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i, row := range []struct {
		list        *List
		first, last string // moments of one part
		next        string
	}{
		{monthly, "2026-11-01 00:00:00", "2026-11-30 23:59:59", "2026-12-01 00:00:00"},
		{monthly, "2026-12-01 00:00:00", "2026-12-31 23:59:59", "2027-01-01 00:00:00"},
		{monthly, "0001-01-01 00:00:00", "1999-12-31 23:59:59", "2000-01-01 00:00:00"},
		{monthly, "2100-01-01 00:00:00", "9999-12-31 23:59:59", ""},
		{daily, "2026-11-21 00:00:00", "2026-11-21 23:59:59", "2026-11-22 00:00:00"},
		{daily, "0001-01-01 00:00:00", "1970-01-02 23:59:59", "1970-01-03 00:00:00"},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			first, last := row.list.partition(at(row.first).UnixMilli()), row.list.partition(at(row.last).UnixMilli())
			if first != last {
				t.Errorf("%s and %s: parts %d and %d, want one", row.first, row.last, first, last)
			}
			if row.next == "" {
				return
			}
			if next := row.list.partition(at(row.next).UnixMilli()); next <= last {
				t.Errorf("%s and %s: parts %d and %d, want a later one", row.last, row.next, last, next)
			}
			end := at(row.next).Add(row.list.Keep)
			if row.list.Expired(last, end) || !row.list.Expired(last, end.Add(time.Millisecond)) {
				t.Errorf("part of %s: expires at another time than %s", row.last, end)
			}
		})
	}
}

// swapped has chunks with the contents of others, each sound in itself.
type swapped struct {
	Reader
	id uint64
}

func (s swapped) Chunks(_ context.Context, _ value.ID, _ string, numbers []uint64, _ bool, each func(StoredChunk) error) error {
	for _, n := range numbers {
		c := StoredChunk{Number: n, ContentID: s.id, Body: seal(nil, []byte("that"))} // which ends with its own checksum
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

func TestAChunkWithAnothersContentIsDamaged(t *testing.T) {
	storage := swapped{id: NewContentID(seal(nil, []byte("this")))}
	s := &Segment{Groups: [segment.NumGroups]int{8, 0}, Chunks: []Chunk{{Number: 1, ContentID: storage.id, Size: 8}}}
	if _, err := (Index{Key: Key{List: &List{}}, Reader: storage}).chunks(t.Context(), []*Segment{s}, false); !Damaged(err) {
		t.Errorf("got %v, want a damaged index", err)
	}
}
