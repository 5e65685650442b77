package ops

import (
	"cmp"
	"testing"
	"time"
)

func TestGroupCountsKeepTheOldestAndSortTheLargestFirst(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	found := newGroupCounts[int]()
	for i := range 10 {
		found.add(i, start)
	}
	found.add(7, start.Add(-time.Hour))
	found.add(7, start.Add(time.Hour))
	order := found.Sorted(cmp.Compare[int])
	if order[0].Group != 7 || order[0].Messages != 3 || !order[0].Oldest.Equal(start.Add(-time.Hour)) || order[1].Group != 0 {
		t.Errorf("got %v, want 3 of group 7 since an hour before %s, then group 0", order[:2], start)
	}
}
