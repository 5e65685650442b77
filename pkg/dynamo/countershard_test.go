package dynamo_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
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
	stored, err := table.CounterShards(t.Context(), org, r.e.ID)
	if err != nil || len(stored) != 1 || len(stored[r.e.ID]) != webhook.MaxCounterShards {
		t.Fatalf("%d shards, %v; want %d", len(stored[r.e.ID]), err, webhook.MaxCounterShards)
	}
	for shard, s := range stored[r.e.ID] {
		if s.Number != shard || s.Revision != 1 || s.Shard.Counters().SuccessCount != int64(shard+1) {
			t.Errorf("shard %d: %+v with %d successes", shard, s, s.Shard.Counters().SuccessCount)
		}
	}
	h, err := table.Health(t.Context(), org, r.e.ID, 0, now)
	if err != nil || h.Counters.SuccessCount != 136 || h.Recent.Attempts != 136 {
		t.Errorf("Health: %+v, %v; want 136 attempts", h, err)
	}
	if h, err := table.Health(t.Context(), org, r.e.ID, now+1, now); err != nil || h.Counters.SuccessCount != 136 || h.Recent.Attempts != 0 || h.Since != now+1 {
		t.Errorf("Health since later: %+v, %v; want no recent attempts", h, err)
	}
	if foreign, err := table.CounterShards(t.Context(), value.NewID(), r.e.ID); len(foreign) > 0 || err != nil {
		t.Errorf("Shards of another organization: %+v, %v", foreign, err)
	}
}

// storeAsFormer moves the counter shard 0 of an endpoint, with the hours and
// days that it has finished, to the keys under which an earlier release counted
// the other endpoint.
func storeAsFormer(t *testing.T, client *dynamodb.Client, name string, from, to value.ID) {
	t.Helper()
	keys := strings.NewReplacer("#COUNTERS#"+from.String(), "#COUNTERS", "#STATS#"+from.String(), "#STATS#"+to.String())
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for _, it := range out.Items {
		pk, sk := it["PK"].(*types.AttributeValueMemberS).Value, it["SK"].(*types.AttributeValueMemberS).Value
		formerPK, formerSK := keys.Replace(pk), ""
		switch {
		case strings.Contains(sk, from.String()+"#g"): // a day
			formerSK = strings.Replace(sk, from.String()+"#g", to.String()+"#0", 1)
		case formerPK == pk:
			continue
		case sk == "g":
			formerSK = to.String() + "#0"
		default: // an hour
			formerSK = strings.TrimSuffix(sk, "g") + "0"
		}
		if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: map[string]types.AttributeValue{"PK": it["PK"], "SK": it["SK"]}}); err != nil {
			t.Fatal(err)
		}
		it["PK"], it["SK"] = &types.AttributeValueMemberS{Value: formerPK}, &types.AttributeValueMemberS{Value: formerSK}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
			t.Fatal(err)
		}
		moved++
	}
	if moved == 0 {
		t.Fatal("nothing was counted")
	}
}

// An earlier release counted an endpoint under other keys, and may still do so
// beside this one: each outcome counts once, whichever of both counted it.
func TestCounterShardsOfAnEarlierReleaseCountToo(t *testing.T) {
	client, name := dynamotest.Client(t)
	first := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	table := dynamo.New(client, name, func() time.Time { return first })
	s := servicetest.OnTable(t, table, value.NewID())
	e, former, other := s.Endpoint(t, "*"), s.Endpoint(t, "*"), s.Endpoint(t, "*")
	count := func(endpoint value.ID, after time.Duration, n int) {
		now := value.TimeOf(first.Add(after))
		s.Count(t, endpoint, now, slices.Repeat([]webhook.Attempt{{At: now}}, n)...)
	}
	for i, after := range []time.Duration{0, time.Hour, 3 * time.Hour} { // two hours of a day, one of the next
		count(former.ID, after, 1+i)
		count(e.ID, after, 10*(1+i))
	}
	count(other.ID, 0, 1000)
	storeAsFormer(t, client, name, former.ID, e.ID)

	check := func(want int64) {
		t.Helper()
		for _, more := range [][]value.ID{nil, {other.ID, former.ID, value.NewID(), value.NewID()}} {
			asked := append([]value.ID{e.ID}, more...)
			c, err := table.Counters(t.Context(), s.Org, asked...)
			if err != nil || c[e.ID].SuccessCount != want || len(more) > 0 && (c[other.ID].SuccessCount != 1000 || c[former.ID].SuccessCount != 0) {
				t.Errorf("of %d endpoints: %+v, %v; want %d, and 1000 of the other", len(asked), c, err, want)
			}
		}
	}
	check(66)
	h, err := table.Health(t.Context(), s.Org, e.ID, 0, value.TimeOf(first.Add(3*time.Hour)))
	if err != nil || h.Recent.Attempts != 33 {
		t.Errorf("Health: %+v, %v; want 33 recent attempts", h, err)
	}
	hours, err := table.Stats(t.Context(), s.Org, e.ID, value.TimeOf(first), value.TimeOf(first.Add(day)))
	var counted []int64
	for _, h := range hours {
		counted = append(counted, h.SuccessCount)
	}
	if diff := cmp.Diff([]int64{11, 22, 33}, counted); err != nil || diff != "" {
		t.Errorf("Stats: %v (-want +got):\n%s", err, diff)
	}
	usage, err := table.Usage(t.Context(), s.Org, s.App, value.TimeOf(first.Truncate(day)), value.TimeOf(first.Add(day)))
	if err != nil || usage["2026-11-21"].Events != 33+1000 || usage["2026-11-22"].Events != 33 {
		t.Errorf("Usage: %+v, %v; want 1,033 events and 33 on the next day", usage, err)
	}
	if err := table.FinishEndpointDeletion(t.Context(), s.Org, e.ID); err != nil {
		t.Fatal(err)
	}
	check(0)
}

// Few endpoints are read one by one, many at once: the answers are the same.
func TestCountersOfManyEndpointsAreReadTogether(t *testing.T) {
	table := dynamotest.NewTable(t)
	first := newRecorded(t, table, 0)
	org, now := first.e.OrganizationID, first.now
	service := servicetest.OnTable(t, table, org)
	want := map[value.ID]webhook.Counters{}
	var ids []value.ID
	at, reason := now, "answered 500"
	for i := range 9 {
		e := value.NewID()
		ids, want[e] = append(ids, e), webhook.Counters{}
		if i%3 == 2 {
			continue
		}
		attempts := make([]webhook.Attempt, i+1)
		for j := range attempts {
			attempts[j] = webhook.Attempt{At: now}
		}
		attempts[0].Error = &reason
		service.Count(t, e, now, attempts...)
		c := webhook.Counters{SuccessCount: int64(i), FailureCount: 1, LastFailureAt: &at, LastFailureReason: &reason}
		if i > 0 {
			c.LastSuccessAt = &at
		}
		want[e] = c
	}
	service.Count(t, first.e.ID, now, webhook.Attempt{At: now})
	slices.Reverse(ids)
	for _, n := range []int{0, 1, 4, 5, 9} {
		asked := map[value.ID]webhook.Counters{}
		for _, id := range ids[:n] {
			asked[id] = want[id]
		}
		got, err := table.Counters(t.Context(), org, ids[:n]...)
		if err != nil || cmp.Diff(got, asked) != "" {
			t.Errorf("Counters of %d: %v\n%s", n, err, cmp.Diff(got, asked))
		}
		foreign, err := table.Counters(t.Context(), value.NewID(), ids[:n]...)
		for id, c := range foreign {
			if c != (webhook.Counters{}) {
				t.Errorf("another organization reads %+v of %s", c, id)
			}
		}
		if err != nil || len(foreign) != n {
			t.Errorf("Counters of another organization: %d, %v; want %d empty ones", len(foreign), err, n)
		}
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
	if err := table.FinishEndpointDeletion(t.Context(), value.NewID(), r.e.ID); err != nil {
		t.Fatal(err)
	}
	r.check(webhook.MaxCounterShards, nil)
	if err := table.FinishEndpointDeletion(t.Context(), org, r.e.ID); err != nil {
		t.Fatal(err)
	}
	r.check(0, nil)
	kept.check(1, nil)
	for i := range webhook.PermitHolders {
		if taken, err := table.TakePermit(t.Context(), org, r.e.ID, string(rune('a'+i)), now, now.Add(time.Minute)); !taken || err != nil {
			t.Errorf("slot %d of the forgotten endpoint: %t, %v; want it free", i, taken, err)
		}
	}
}
