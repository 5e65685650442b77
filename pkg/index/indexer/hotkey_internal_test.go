package indexer

import (
	"context"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
)

// registered notes what prepare asks of a storage.
type registered struct {
	Storage
	organizations, jobs int
}

func (r *registered) RegisterOrganization(context.Context, value.ID) error {
	r.organizations++
	return nil
}

func (r *registered) RequestJob(context.Context, value.ID, string, value.Time) error {
	r.jobs++
	return nil
}

// TestTheRegisterIsWrittenEvenly simulates a week of 20,000 organizations with
// seven lists, of which each changes every second. Each writes the register's
// one partition key, of a unit, in the second in which its week turns. The key
// takes 1,000 units a second; with one turn for all it was asked for 140,000.
func TestTheRegisterIsWrittenEvenly(t *testing.T) {
	const organizations, lists, units = 20_000, 7, 1000
	start := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	store := &registered{}
	x := New(store, nil, nil, nil, nil)
	list := &index.List{Name: "orders"}
	perSecond := make([]int, int(flushWithin/time.Second)+1)
	for range organizations {
		key := index.Key{Org: value.NewID(), List: list}
		// registersBy tells whether an entry then is the first of another week than
		// one at the start.
		registersBy := func(second int) bool {
			before := store.organizations
			next := index.Position{Previous: value.TimeOf(start), At: value.TimeOf(start.Add(time.Duration(second) * time.Second))}
			if err := x.prepare(t.Context(), key, next); err != nil {
				t.Fatal(err)
			}
			return store.organizations > before
		}
		second := sort.Search(len(perSecond), registersBy)
		if second == len(perSecond) {
			t.Fatalf("%s is not registered within a week", key.Org)
		}
		perSecond[second] += lists
	}
	if most := slices.Max(perSecond); most > units/10 {
		t.Errorf("the register gets %d units in a second, want at most %d", most, units/10)
	}
}
