package tableserver

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// sweeps are the two ways to sweep a server's table.
func sweeps(s *Server, db *dynamodb.Client) map[string]func(context.Context, time.Time) (int, error) {
	return map[string]func(context.Context, time.Time) (int, error){
		"by index": func(ctx context.Context, now time.Time) (int, error) {
			return s.SweepExpired(ctx, db, table, "expiresAtEpoch", now)
		},
		"by scan": func(ctx context.Context, now time.Time) (int, error) {
			return SweepByScan(ctx, db, table, "expiresAtEpoch", now)
		},
	}
}

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
	for name, sweep := range sweeps(server, db) {
		t.Run(name, func(t *testing.T) {
			want := 0
			for _, item := range items {
				more := map[string]types.AttributeValue{}
				if item.ttl != nil {
					more["expiresAtEpoch"] = item.ttl
				}
				if err := put(t.Context(), db, item.pk, more); err != nil {
					t.Fatal(err)
				}
				if !item.want {
					want++
				}
			}
			if deleted, err := sweep(t.Context(), now); err != nil || deleted != want {
				t.Errorf("the sweep deleted %d, %v; want %d", deleted, err, want)
			}
			for _, item := range items {
				if got := exists(t, db, item.pk); got != item.want {
					t.Errorf("item %q after the sweep: exists %v, want %v", item.pk, got, item.want)
				}
			}
		})
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
	for name, sweep := range sweeps(server, db) {
		for i := range sweepLimit + more {
			if err := put(t.Context(), db, strconv.Itoa(i), map[string]types.AttributeValue{"expiresAtEpoch": epoch(now.Add(-time.Minute))}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []int{sweepLimit, more, 0} {
			if got, err := sweep(t.Context(), now); err != nil || got != want {
				t.Errorf("a sweep %s deleted %d, %v; want %d", name, got, err, want)
			}
		}
	}
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
