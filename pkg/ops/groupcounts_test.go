package ops

import (
	"cmp"
	"testing"
	"time"
)

func TestGroupCountsKeepTheOldestAndABoundedNumberOfGroups(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	found := newGroupCounts(-1)
	for i := range maxGroups + 50 {
		found.add(i, start)
	}
	found.add(7, start.Add(-time.Hour))
	found.add(7, start.Add(time.Hour))
	if got := found.groups[7]; got.Messages != 3 || !got.Oldest.Equal(start.Add(-time.Hour)) {
		t.Errorf("group 7: got %+v, want 3 since an hour before %s", got, start)
	}
	if len(found.groups) != maxGroups+1 || found.groups[-1].Messages != 50 || found.Messages != maxGroups+52 {
		t.Errorf("got %d groups, %d others of %d; want %d, 50 of %d",
			len(found.groups), found.groups[-1].Messages, found.Messages, maxGroups+1, maxGroups+52)
	}
	order := found.Sorted(cmp.Compare[int])
	if order[0].Group != -1 || order[1].Group != 7 || order[2].Group != 0 {
		t.Errorf("order: got %v, want the largest first", order[:3])
	}
}
