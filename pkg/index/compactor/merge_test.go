package compactor

import (
	"testing"

	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/lists/columnar"
	"github.com/commerce-integration/service/pkg/lists/segment"
)

// Text that packs well is much larger in memory than in storage: a merge is
// bounded in both.
func TestMergesAreBoundedInStorageAndInMemory(t *testing.T) {
	schema := columnar.MustSchema("things", columnar.Column{Name: "name", Type: columnar.Text, Search: true})
	partition := func(n, stored, unpacked int) *index.Partition {
		p := &index.Partition{}
		for range n {
			s := &index.Segment{Rows: 1000}
			s.Groups[segment.Text], s.Unpacked[segment.Text] = stored, unpacked
			p.Segments = append(p.Segments, s)
		}
		return p
	}
	dead := partition(2, 1<<20, 200<<20)
	dead.Counted, dead.Live = 2000, 1
	for _, row := range []struct {
		name string
		p    *index.Partition
		want int
	}{
		{"eight that fit", partition(8, 1<<20, 2<<20), 8},
		{"seven", partition(7, 1<<20, 2<<20), 0},
		{"large in storage", partition(8, 15<<20, 16<<20), 4},
		{"large in memory", partition(8, 1<<20, 60<<20), 4},
		{"so large in memory that merging is not worth it", partition(8, 1<<20, 80<<20), 0},
		{"mostly dead and large in memory", dead, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := len(toMerge(schema, row.p)); got != row.want {
				t.Errorf("got %d segments, want %d", got, row.want)
			}
		})
	}
}
