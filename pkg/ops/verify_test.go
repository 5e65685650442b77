package ops

import (
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
)

func TestADifferencePersistsUntilTheIndexComesToWhatTheTableHeld(t *testing.T) {
	t.Parallel()
	id, other := value.NewID(), value.NewID()
	type d = Difference
	for name, c := range map[string]struct {
		before, now d
		want        bool
	}{
		"the same":                    {d{ID: id, Index: 5, Table: 6}, d{ID: id, Index: 5, Table: 6}, true},
		"the table is further":        {d{ID: id, Index: 5, Table: 6}, d{ID: id, Index: 5, Table: 9}, true},
		"the index is not far enough": {d{ID: id, Index: 5, Table: 8}, d{ID: id, Index: 6, Table: 9}, true},
		"the index came there":        {d{ID: id, Index: 5, Table: 6}, d{ID: id, Index: 6, Table: 9}, false},
		"never indexed":               {d{ID: id, Table: 6}, d{ID: id, Table: 7}, true},
		"indexed, and changed again":  {d{ID: id, Table: 6}, d{ID: id, Index: 6, Table: 7}, false},
		"not in the table":            {d{ID: id, Index: 5}, d{ID: id, Index: 5}, true},
		"made again meanwhile":        {d{ID: id, Index: 5}, d{ID: id, Index: 6, Table: 7}, false},
		"other values":                {d{ID: id, Index: 5, Table: 5}, d{ID: id, Index: 5, Table: 5}, true},
		"another document":            {d{ID: id, Index: 5, Table: 6}, d{ID: other, Index: 5, Table: 6}, false},
		"another half of it":          {d{ID: id, Index: 5, Table: 6}, d{ID: id, Sub: 1, Index: 5, Table: 6}, false},
		"a partition":                 {d{Partition: 3}, d{Partition: 3}, true},
		"another partition":           {d{Partition: 3}, d{Partition: 4}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := persisting([]d{c.before}, []d{c.now})
			if c.want != (len(got) == 1) || c.want && got[0] != c.now {
				t.Errorf("of %v found again as %v got %v, want it: %t", c.before, c.now, got, c.want)
			}
		})
	}
}
