package tableserver

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const ttl = "expiresAtEpoch"

func TestSweepDeletesWhatDynamoDBWouldExpire(t *testing.T) {
	server, db := newTable(t)
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
		{"milliseconds by mistake", &types.AttributeValueMemberN{Value: strconv.FormatInt(now.UnixMilli(), 10)}, true},
		{"a string", &types.AttributeValueMemberS{Value: seconds(now)}, true},
		{"a map", &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"N": epoch(now)}}, true},
		{"a fraction after now", &types.AttributeValueMemberN{Value: seconds(now) + ".5"}, true},
		{"a fraction before now", &types.AttributeValueMemberN{Value: seconds(now.Add(-time.Second)) + ".5"}, false},
		{"an exponent", &types.AttributeValueMemberN{Value: "1.7e9"}, false},
		{"no such time", &types.AttributeValueMemberN{Value: "1e100"}, true},
		{"before all time", &types.AttributeValueMemberN{Value: "-1e100"}, true},
		{"a key to escape: \"\\\x00\u2028ü😀", epoch(now), false},
	}
	want := 0
	for _, item := range items {
		more := map[string]types.AttributeValue{}
		if item.ttl != nil {
			more[ttl] = item.ttl
		}
		if err := put(t.Context(), db, item.pk, more); err != nil {
			t.Fatal(err)
		}
		if !item.want {
			want++
		}
	}
	if deleted, err := server.Sweep(t.Context(), table, ttl, now); err != nil || deleted != want {
		t.Errorf("the sweep deleted %d, %v; want %d", deleted, err, want)
	}
	for _, item := range items {
		if got := exists(t, db, item.pk); got != item.want {
			t.Errorf("item %q after the sweep: exists %v, want %v", item.pk, got, item.want)
		}
	}
}

func TestSweepLeavesAnItemThatWasProlonged(t *testing.T) {
	server, db := newTable(t)
	now := time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)
	if err := put(t.Context(), db, "prolonged", map[string]types.AttributeValue{ttl: epoch(now.Add(time.Hour))}); err != nil {
		t.Fatal(err)
	}
	gone, err := server.deleteExpired(t.Context(), key("prolonged"), ttl, now)
	if err != nil || gone || !exists(t, db, "prolonged") {
		t.Errorf("deleting a prolonged item: gone %v, %v; want it to stay", gone, err)
	}
}

func TestTrimAndSweepAreBounded(t *testing.T) {
	server, db := newTable(t)
	now := time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)
	const live, more = 4100, 7
	fill(t, db, "expired", sweepLimit+more, now.Add(-time.Minute))
	fill(t, db, "live", live, now.Add(time.Hour))
	for _, want := range []int{live + sweepLimit + more - 5000, 1} {
		if err := server.Trim(t.Context(), table, "1000000"); err != nil {
			t.Fatal(err)
		}
		if count, _, highest := sequence(t, db); count != want || highest != live+sweepLimit+more {
			t.Errorf("after Trim: %d records up to %d, want %d", count, highest, want)
		}
	}
	if got, err := server.Sweep(t.Context(), table, ttl, now); err != nil || got != sweepLimit {
		t.Errorf("a sweep deleted %d, %v; want %d", got, err, sweepLimit)
	}
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// fill puts n items.
func fill(t testing.TB, db *dynamodb.Client, name string, n int, expires time.Time) {
	t.Helper()
	for first := 1; first <= n; first += 25 {
		var puts []types.WriteRequest
		for i := first; i < min(first+25, n+1); i++ {
			item := key(fmt.Sprint(name, i))
			item[ttl] = epoch(expires)
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		}
		if _, err := db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: puts}}); err != nil {
			t.Fatal(err)
		}
	}
}
