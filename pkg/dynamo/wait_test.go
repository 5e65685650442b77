package dynamo_test

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

func TestWaitsOfAnOrganizationAreFewAndEnd(t *testing.T) {
	table, org, start := dynamotest.NewTable(t), value.NewID(), value.TimeOf(time.Now())
	begin := func(org value.ID, now, until value.Time, want bool) {
		t.Helper()
		if begun, err := table.BeginWait(t.Context(), org, 3, now, until); err != nil || begun != want {
			t.Errorf("a wait from %d ms to %d ms: got %t, %v, want %t", now-start, until-start, begun, err, want)
		}
	}
	end := func(until value.Time) {
		t.Helper()
		if err := table.EndWait(t.Context(), org, until); err != nil {
			t.Error(err)
		}
	}
	begin(org, start, start+100, true)
	begin(org, start, start+200, true)
	begin(org, start, start+200, true)
	begin(org, start, start+300, false)
	begin(value.NewID(), start, start+300, true)
	end(start + 200)
	begin(org, start, start+300, true)
	begin(org, start, start+300, false)
	end(start + 400) // that nobody began
	begin(org, start+99, start+400, false)
	begin(org, start+100, start+400, true) // one that did not end
	end(start + 100)
	begin(org, start+100, start+400, false)
	begin(org, start+1000, start+2000, true)
}

func TestInstancesShareTheWaitsOfAnOrganization(t *testing.T) {
	table, org, now := dynamotest.NewTable(t), value.NewID(), value.TimeOf(time.Now())
	var begun atomic.Int64
	var group errgroup.Group
	for range 20 {
		group.Go(func() error {
			ok, err := table.BeginWait(t.Context(), org, 10, now, now+1000)
			if ok {
				begun.Add(1)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil || begun.Load() != 10 {
		t.Errorf("got %d of 20 at once, %v, want 10", begun.Load(), err)
	}
}
