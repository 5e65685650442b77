package dynamo_test

import (
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestShardOfAnEndpointAreReadTogether(t *testing.T) {
	table := dynamotest.NewTable(t)
	r := newRecorded(t, table, 0)
	org, now := r.e.OrganizationID, r.now
	if s, err := table.CounterShard(t.Context(), org, r.e.ID, 7); err != nil || s.Number != 7 || s.Revision != 0 || s.Shard == nil {
		t.Errorf("a shard that is not there: %+v, %v; want an empty one", s, err)
	}
	for shard := range webhook.MaxCounterShards {
		r.record(nil, r.counted(emptyShard(shard), shard+1))
	}
	other := newRecorded(t, table, 0)
	other.e.OrganizationID = org
	other.record(nil, other.counted(emptyShard(2), 1))
	if taken, err := table.TakePermit(t.Context(), org, r.e.ID, "worker", now, now.Add(time.Minute)); !taken || err != nil {
		t.Fatalf("TakePermit: %t, %v", taken, err)
	}
	for shard := range webhook.MaxCounterShards {
		s, err := table.CounterShard(t.Context(), org, r.e.ID, shard)
		if err != nil || s.Number != shard || s.Revision != 1 || s.Shard.Counters().SuccessCount != int64(shard+1) {
			t.Errorf("shard %d: %+v with %d successes, %v", shard, s, s.Shard.Counters().SuccessCount, err)
		}
	}
	h, err := table.Health(t.Context(), org, r.e.ID, 0, now)
	if err != nil || h.Counters.SuccessCount != 136 || h.Recent.Attempts != 136 {
		t.Errorf("Health: %+v, %v; want 136 attempts", h, err)
	}
	if h, err := table.Health(t.Context(), org, r.e.ID, now+1, now); err != nil || h.Counters.SuccessCount != 136 || h.Recent.Attempts != 0 || h.Since != now+1 {
		t.Errorf("Health since later: %+v, %v; want no recent attempts", h, err)
	}
	if h, err := table.Health(t.Context(), value.NewID(), r.e.ID, 0, now); h.Counters.SuccessCount != 0 || err != nil {
		t.Errorf("Health of another organization's: %+v, %v", h, err)
	}
}

func TestAForgottenEndpointLeavesNothingThatStays(t *testing.T) {
	client, name := dynamotest.Client(t)
	table := dynamo.New(client, name, time.Now)
	r := newRecorded(t, table, 0)
	org, now := r.e.OrganizationID, r.now
	kept := newRecorded(t, table, 0)
	kept.e.OrganizationID = org
	kept.record(nil, kept.counted(emptyShard(1), 1))
	for shard := range webhook.MaxCounterShards {
		r.record(nil, r.counted(emptyShard(shard), 1))
	}
	if _, err := table.TakePermit(t.Context(), org, r.e.ID, "worker", now, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	must(t, table.FinishEndpointDeletion(t.Context(), value.NewID(), r.e.ID))
	r.check(webhook.MaxCounterShards, nil)
	must(t, table.FinishEndpointDeletion(t.Context(), org, r.e.ID))
	r.check(0, nil)
	kept.check(1, nil)
	for i := range webhook.PermitHolders {
		if taken, err := table.TakePermit(t.Context(), org, r.e.ID, string(rune('a'+i)), now, now.Add(time.Minute)); !taken || err != nil {
			t.Errorf("slot %d of the forgotten endpoint: %t, %v; want it free", i, taken, err)
		}
	}
}
