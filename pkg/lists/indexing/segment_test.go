package indexing

import (
	"slices"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/value"
)

func TestGroupsAreCutWhereTheyAreLarge(t *testing.T) {
	for _, row := range []struct {
		groups [columnar.Groups]int
		want   []int
	}{
		{[columnar.Groups]int{100, 200, 300}, []int{600}},
		{[columnar.Groups]int{apart, 200, 300}, []int{apart, 500}},
		{[columnar.Groups]int{apart - 1, 1, 300}, []int{apart, 300}},
		{[columnar.Groups]int{apart, apart, 0}, []int{apart, apart}},
		{[columnar.Groups]int{maxChunk, 0, 0}, []int{maxChunk}},
		{[columnar.Groups]int{maxChunk + 1, 0, 0}, []int{maxChunk, 1}},
		{[columnar.Groups]int{1, maxChunk, 0}, []int{maxChunk, 1}},
		{[columnar.Groups]int{2*maxChunk + apart, 7, 0}, []int{maxChunk, maxChunk, apart, 7}},
	} {
		if got := cuts(row.groups); !slices.Equal(got, row.want) {
			t.Errorf("%v: got %v, want %v", row.groups, got, row.want)
		}
	}
}

func TestGroupsAreFoundInTheirChunks(t *testing.T) {
	data := make([]byte, 100)
	for i := range data {
		data[i] = byte(i)
	}
	s := &segment{groups: [columnar.Groups]int{30, 50, 20}, chunks: []chunk{{slot: 1, size: 40}, {slot: 2, size: 40}, {slot: 3, size: 20}}}
	for groups, want := range map[columnar.GroupSet][]uint64{1: {1}, 2: {1, 2}, 4: {3}, 5: {1, 3}, 7: {1, 2, 3}} {
		bodies, offset := map[uint64][]byte{}, 0
		var needed []uint64
		for _, c := range s.chunks {
			if s.holds(offset, c.size, groups) {
				needed = append(needed, c.slot)
				bodies[c.slot] = data[offset : offset+c.size]
			}
			offset += c.size
		}
		if !slices.Equal(needed, want) {
			t.Errorf("groups %b: chunks %v, want %v", groups, needed, want)
		}
		got, start := s.assemble(bodies, groups), 0
		for g, size := range s.groups {
			if groups.Has(columnar.Group(g)) && !slices.Equal(got[g], data[start:start+size]) || !groups.Has(columnar.Group(g)) && got[g] != nil {
				t.Errorf("groups %b: group %d is %v", groups, g, got[g])
			}
			start += size
		}
	}
}

func TestFreeSlotsAreTakenWhenTheyFitAndTheirGraceIsOver(t *testing.T) {
	const now = value.Time(1_000_000)
	m := &manifest{free: []slot{
		{chunk{1, 11, 1000}, now - 5}, {chunk{2, 22, 50_000}, now - 5}, {chunk{3, 33, 60_000}, now - 5}, {chunk{4, 44, 55_000}, now + 5},
	}}
	s := &slots{manifest: m, usable: now}
	for _, row := range []struct {
		size int
		want uint64 // mark of the slot, 0 for one that was never used
	}{
		{52_000, 33}, {52_000, 22}, {52_000, 11}, {52_000, 0},
	} {
		if got := s.take(row.size); got.mark != row.want {
			t.Errorf("a slot for %d bytes: got mark %d, want %d", row.size, got.mark, row.want)
		}
	}
	if len(m.free) != 1 || m.free[0].slot != 4 {
		t.Errorf("left: got %v, want slot 4, whose grace is not over", m.free)
	}
	if got := (&slots{manifest: &manifest{free: []slot{{chunk{1, 11, 100_000}, 0}}}, usable: now}).take(1000); got.mark != 0 {
		t.Errorf("1,000 bytes over 100,000: got mark %d, want a slot of its own", got.mark)
	}
}

func TestSlotsBeyondTheBoundAreGivenUpSmallestFirst(t *testing.T) {
	m := &manifest{}
	for i := range maxFree + 3 {
		m.free = append(m.free, slot{chunk{uint64(i), 1, 10 + i}, 0})
	}
	got := m.surplus()
	sizes := []int{}
	for _, c := range got {
		sizes = append(sizes, c.size)
	}
	if slices.Sort(sizes); !slices.Equal(sizes, []int{10, 11, 12}) || len(m.free) != maxFree {
		t.Errorf("got %v and %d left, want the three smallest given up", sizes, len(m.free))
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
	for _, row := range []struct {
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
		first, last := row.list.part(at(row.first).UnixMilli()), row.list.part(at(row.last).UnixMilli())
		if first != last {
			t.Errorf("%s and %s: parts %d and %d, want one", row.first, row.last, first, last)
		}
		if row.next == "" {
			continue
		}
		if next := row.list.part(at(row.next).UnixMilli()); next <= last {
			t.Errorf("%s and %s: parts %d and %d, want a later one", row.last, row.next, last, next)
		}
		end := at(row.next).Add(row.list.Keep)
		if row.list.expired(last, end) || !row.list.expired(last, end.Add(time.Millisecond)) {
			t.Errorf("part of %s: expires at another time than %s", row.last, end)
		}
	}
}
