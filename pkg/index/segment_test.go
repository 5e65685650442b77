package index

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

func TestGroupsAreFoundInTheirChunks(t *testing.T) {
	data := make([]byte, 100)
	for i := range data {
		data[i] = byte(i)
	}
	s := &Segment{Groups: [columnar.NumColumnGroups]int{30, 50, 20}, Chunks: []Chunk{{Number: 1, Size: 40}, {Number: 2, Size: 40}, {Number: 3, Size: 20}}}
	for groups, want := range map[columnar.ColumnGroupSet][]uint64{1: {1}, 2: {1, 2}, 4: {3}, 5: {1, 3}, 7: {1, 2, 3}} {
		t.Run(fmt.Sprint(groups), func(t *testing.T) {
			bodies := map[uint64][]byte{}
			needed := map[uint64]bool{}
			for g := range all(groups) {
				for p := range s.pieces(g) {
					needed[p.Number] = true
					at := 40 * (p.Number - 1)
					bodies[p.Number] = data[at : at+uint64(p.Size)]
				}
			}
			if got := slices.Sorted(maps.Keys(needed)); !slices.Equal(got, want) {
				t.Errorf("groups %b: chunks %v, want %v", groups, got, want)
			}
			start := 0
			for g, size := range s.Groups {
				if groups.Has(columnar.ColumnGroup(g)) {
					if got := s.assemble(columnar.ColumnGroup(g), bodies); !slices.Equal(got, data[start:start+size]) {
						t.Errorf("groups %b: group %d is %v", groups, g, got)
					}
				}
				start += size
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
