package eventsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

// versions is a function that keeps what it gets of each key, and how many
// calls it has at a time.
type versions struct {
	before func(keys []string) error // is asked what becomes of a call

	mu       sync.Mutex
	of       map[string][]string
	busy     int
	most     int
	disorder []string // batches that had a neighbour with the same key
	keys     map[string]bool
}

func (v *versions) function() Function {
	return Function{Name: "versions", Timeout: 10 * time.Second, Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var keys []string
		for _, one := range event.Records {
			keys = append(keys, one.Change.Keys["PK"].String())
		}
		v.enter(keys)
		defer v.leave(keys)
		if v.before != nil {
			if err := v.before(keys); err != nil {
				return nil, err
			}
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		for i, one := range event.Records {
			v.of[keys[i]] = append(v.of[keys[i]], one.Change.NewImage["v"].Number())
		}
		return nil, nil
	}}
}

func (v *versions) enter(keys []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil {
		v.of, v.keys = map[string][]string{}, map[string]bool{}
	}
	v.busy++
	v.most = max(v.most, v.busy)
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		if v.keys[key] {
			v.disorder = append(v.disorder, key)
		}
		v.keys[key] = true
	}
}

func (v *versions) leave(keys []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.busy--
	for _, key := range keys {
		delete(v.keys, key)
	}
}

func (v *versions) seen() map[string][]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := map[string][]string{}
	for key, of := range v.of {
		all[key] = slices.Clone(of)
	}
	return all
}

func (v *versions) len() (n int) {
	for _, of := range v.seen() {
		n += len(of)
	}
	return n
}

func (b *table) putVersion(t testing.TB, pk string, version int) {
	t.Helper()
	b.put(t, pk, map[string]types.AttributeValue{"v": &types.AttributeValueMemberN{Value: fmt.Sprint(version)}})
}

// splitInto starts a source that reads the table's shard as n.
func splitInto(t *testing.T, b *table, f Function, n int, file string) (*Stream, func()) {
	t.Helper()
	return run(t, b.feed(t, FeedConfig{}), f, StreamConfig{
		Checkpoints: file, BatchSize: 5, ShardWorkers: n, RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond,
	})
}

func TestSplitShardKeepsTheOrderOfEachKey(t *testing.T) {
	b := newTable(t)
	const keys, each = 20, 10
	together := make(chan struct{})
	v := &versions{}
	v.before = func([]string) error {
		// The first calls meet, which they can only side by side.
		v.mu.Lock()
		if v.most >= 4 && together != nil {
			close(together)
			together = nil
		}
		wait := together
		v.mu.Unlock()
		if wait != nil {
			<-wait
		}
		return nil
	}
	for version := range each {
		for key := range keys {
			b.putVersion(t, fmt.Sprintf("%03d", key), version)
		}
	}
	source, _ := splitInto(t, b, v.function(), 8, filepath.Join(t.TempDir(), "c"))
	waitUntil(t, "all records", func() bool { return v.len() == keys*each })
	want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	for key, got := range v.seen() {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("key %s (-want +got):\n%s", key, diff)
		}
	}
	if len(v.disorder) > 0 || v.most < 4 || v.most > 8 {
		t.Errorf("%d calls side by side, of which keys %v had two at a time; want 4 to 8 and none", v.most, v.disorder)
	}
	waitUntil(t, "the end of the stream", func() bool { return source.Position() == fmt.Sprint(keys*each) })
}

func TestAShardThatFailsHoldsUpItselfAndTheTrimmingOnly(t *testing.T) {
	b := newTable(t)
	file := filepath.Join(t.TempDir(), "c")
	var mu sync.Mutex
	broken := true
	v := &versions{before: func(keys []string) error {
		mu.Lock()
		defer mu.Unlock()
		if broken && slices.Contains(keys, "bad") {
			return errors.New("table unreachable")
		}
		return nil
	}}
	b.putVersion(t, "first", 0)
	source, stop := splitInto(t, b, v.function(), 8, file)
	waitUntil(t, "the first record", func() bool { return source.Position() == "1" })
	b.putVersion(t, "bad", 0)
	keys := numbered(0, 40)
	for _, key := range keys {
		b.putVersion(t, key, 0)
	}
	format := recordFormat{partitionKey: "PK"}
	part := func(key string) int { return format.worker(changeOf(key), 8) }
	others := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return part(key) == part("bad") })
	if len(others) == len(keys) {
		t.Fatal("no key shares its shard with the bad one")
	}
	waitUntil(t, "the records of the other shards", func() bool { return v.len() == 1+len(others) })
	if got := source.Position(); got != "1" {
		t.Errorf("position %s while the second record fails, want 1", got)
	}
	stop()

	// Each shard goes on where it was.
	mu.Lock()
	broken = false
	mu.Unlock()
	again := &versions{}
	source, _ = splitInto(t, b, again.function(), 8, file)
	waitUntil(t, "the end of the stream", func() bool { return source.Position() == "42" })
	want := slices.Sorted(slices.Values(append(slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return part(key) != part("bad") }), "bad")))
	if got := slices.Sorted(maps.Keys(again.seen())); !slices.Equal(got, want) {
		t.Errorf("after a restart: got %v, want those of the shard that failed, %v", got, want)
	}
}

func TestWhatIsReadAheadIsBounded(t *testing.T) {
	held := newBacklog(10)
	records := []record{{size: 6}, {size: 6}}
	held.add(records, 1)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan struct{})
	go func() {
		held.await(ctx)
		close(waited)
	}()
	select {
	case <-waited:
		t.Fatal("12 bytes: reading went on, want it to wait")
	case <-time.After(20 * time.Millisecond):
	}
	held.add(records[:1], -1)
	<-waited
	held.add(records, 1)
	cancel()
	held.await(ctx) // and the end of the run ends it
}

// changeOf is a change of the item with the key.
func changeOf(key string) *change {
	return &change{from: &streamtypes.StreamRecord{Keys: map[string]streamtypes.AttributeValue{"PK": &streamtypes.AttributeValueMemberS{Value: key}}}}
}
