package tableserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestSweepDeletesWhatDynamoDBWouldExpire(t *testing.T) {
	server := start(t, t.TempDir())
	db := client(server)
	createTable(t, db)
	now := time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)
	items := []struct {
		pk   string
		ttl  types.AttributeValue
		want bool
	}{
		{"no attribute", nil, true},
		{"in a second", epoch(now.Add(time.Second)), true},
		{"now", epoch(now), false},
		{"a day ago", epoch(now.AddDate(0, 0, -1)), false},
		{"six years ago", epoch(now.AddDate(-6, 0, 0)), true},
		{"milliseconds by mistake", &types.AttributeValueMemberN{Value: fmt.Sprint(now.UnixMilli())}, true},
		{"a string", &types.AttributeValueMemberS{Value: "1"}, true},
	}
	for _, item := range items {
		more := map[string]types.AttributeValue{}
		if item.ttl != nil {
			more["expiresAtEpoch"] = item.ttl
		}
		if err := put(t.Context(), db, item.pk, more); err != nil {
			t.Fatal(err)
		}
	}
	deleted, err := SweepExpired(t.Context(), db, table, "expiresAtEpoch", now)
	if err != nil || deleted != 2 {
		t.Errorf("SweepExpired = %d, %v; want 2", deleted, err)
	}
	for _, item := range items {
		if got := exists(t, db, item.pk); got != item.want {
			t.Errorf("item %q after the sweep: exists %v, want %v", item.pk, got, item.want)
		}
	}
}

func TestSweepLeavesAnItemThatWasProlonged(t *testing.T) {
	server := start(t, t.TempDir())
	db := client(server)
	createTable(t, db)
	now := time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)
	if err := put(t.Context(), db, "prolonged", map[string]types.AttributeValue{"expiresAtEpoch": epoch(now.Add(time.Hour))}); err != nil {
		t.Fatal(err)
	}
	gone, err := deleteExpired(t.Context(), db, table, "expiresAtEpoch", key("prolonged"), now)
	if err != nil || gone || !exists(t, db, "prolonged") {
		t.Errorf("deleting a prolonged item: gone %v, %v; want it to stay", gone, err)
	}
}

func TestSweepIsBounded(t *testing.T) {
	server := start(t, t.TempDir())
	db := client(server)
	createTable(t, db)
	now := time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)
	const more = 7
	for i := range sweepLimit + more {
		if err := put(t.Context(), db, fmt.Sprint(i), map[string]types.AttributeValue{"expiresAtEpoch": epoch(now.Add(-time.Minute))}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{sweepLimit, more, 0} {
		if got, err := SweepExpired(t.Context(), db, table, "expiresAtEpoch", now); err != nil || got != want {
			t.Errorf("SweepExpired = %d, %v; want %d", got, err, want)
		}
	}
}
