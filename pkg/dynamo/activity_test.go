package dynamo_test

import (
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// TestAnEntryIsAnnouncedBeforeItIsThere appends by two writers whose clocks
// differ, in turn and at the same time.
func TestAnEntryIsAnnouncedBeforeItIsThere(t *testing.T) {
	client, name := dynamotest.Client(t)
	var mu sync.Mutex
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	clock := func(ahead time.Duration) func() time.Time {
		return func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now.Add(ahead)
		}
	}
	writers := []*dynamo.Table{dynamo.New(client, name, clock(0)), dynamo.New(client, name, clock(-5*time.Minute))}
	org := value.NewID()
	activity := func(org value.ID) value.Time {
		t.Helper()
		until, err := writers[0].Activity(t.Context(), org)
		must(t, err)
		return until
	}
	if got := activity(org); got != 0 {
		t.Errorf("before the first entry: got %s, want nothing", got)
	}
	if _, err := writers[0].AppendTail(t.Context(), org, index.DeliveryListName, fixed([]byte("x"))); err != nil || activity(org) != 0 {
		t.Errorf("a delivery announced an entry, %v", err)
	}
	before := value.Time(0)
	for n := range 12 {
		var group sync.WaitGroup
		for i, w := range writers {
			group.Go(func() {
				at, err := w.AppendTail(t.Context(), org, []string{"products", "orders"}[(n+i)%2], fixed([]byte("x")))
				if until := activity(org); err != nil || until < at.At {
					t.Errorf("an entry of %s: %v, and the activity ends at %s", at.At, err, until)
				}
			})
			if n%2 == 0 {
				group.Wait()
			}
		}
		group.Wait()
		until := activity(org)
		if until < before || until > value.TimeOf(clock(0)().Add(31*time.Second)) {
			t.Errorf("the activity goes from %s to %s", before, until)
		}
		before = until
		mu.Lock()
		now = now.Add(9 * time.Second)
		mu.Unlock()
	}
	if got := activity(value.NewID()); got != 0 {
		t.Errorf("another organization: got %s, want nothing", got)
	}
}
