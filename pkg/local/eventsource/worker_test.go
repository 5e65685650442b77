package eventsource

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

func TestSplitShardKeepsTheOrderOfEachKey(t *testing.T) {
	inBubble(t, func(s *scene) {
		const keys, each, workers = 20, 10, 8
		for version := range each {
			s.stream.put("v", fmt.Sprint(version), numbered(0, keys)...)
		}
		var mu sync.Mutex
		busy, apart := map[string]bool{}, true
		h := &handler{answer: func(_ int, keys []string) (string, error) {
			keys = slices.Compact(slices.Sorted(slices.Values(keys)))
			mark := func(is bool) {
				mu.Lock()
				defer mu.Unlock()
				for _, key := range keys {
					apart = apart && busy[key] != is
					busy[key] = is
				}
			}
			mark(true)
			<-time.After(time.Second) // until all workers have theirs
			mark(false)
			return "", nil
		}}
		feed, _ := s.run(StreamConfig{BatchSize: 5, ShardWorkers: workers}, h)
		synctest.Wait()
		if got := len(h.seen()); got != workers {
			s.Errorf("%d calls side by side, want %d", got, workers)
		}
		pass(time.Hour)
		want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
		got := versions(t, h)
		for _, key := range numbered(0, keys) {
			if diff := cmp.Diff(want, got[key]); diff != "" {
				s.Errorf("key %s (-want +got):\n%s", key, diff)
			}
		}
		if !apart || feed.Position() != fmt.Sprint(keys*each) {
			s.Errorf("no two calls of a key at a time: %t; the end is at %s", apart, feed.Position())
		}
	})
}

// versions are the values of v that a handler got of each key, in their order.
func versions(t *testing.T, h *handler) map[string][]string {
	t.Helper()
	of := map[string][]string{}
	for _, payload := range h.raw {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			t.Fatal(err)
		}
		for _, one := range event.Records {
			key := one.Change.Keys["PK"].String()
			of[key] = append(of[key], one.Change.NewImage["v"].String())
		}
	}
	return of
}

// partsOf divides keys into those that share the shard worker of a key and the others.
func partsOf(key string, keys []string, workers int) (with, others []string) {
	part := (&change{key: key}).part(workers)
	for _, other := range keys {
		if (&change{key: other}).part(workers) == part {
			with = append(with, other)
		} else {
			others = append(others, other)
		}
	}
	return with, others
}

func TestAShardThatFailsHoldsUpItselfAndTheTrimmingOnly(t *testing.T) {
	inBubble(t, func(s *scene) {
		failing := &handler{answer: func(_ int, keys []string) (string, error) {
			if slices.Contains(keys, "bad") {
				return broken()
			}
			return "", nil
		}}
		good := &handler{}
		cfg := StreamConfig{BatchSize: 5, ShardWorkers: 8}
		s.stream.put("t", "rec", "first")
		feed, stop := s.run(cfg, failing, good)
		synctest.Wait()
		keys := numbered(0, 40)
		s.stream.put("t", "rec", append([]string{"bad"}, keys...)...)
		pass(time.Minute)
		with, others := partsOf("bad", keys, cfg.ShardWorkers)
		seen := failing.keys()
		if got := slices.DeleteFunc(seen, func(key string) bool { return key == "bad" || slices.Contains(with, key) }); len(got) != 1+len(others) || len(with) == 0 {
			s.Errorf("got %d records of other shards, want %d; %d share the bad one's", len(got), 1+len(others), len(with))
		}
		if feed.Position() != "1" || len(good.keys()) != 42 {
			s.Errorf("position %s while the second record fails, and %d records of the other source; want 1 and 42", feed.Position(), len(good.keys()))
		}
		stop()
		again := &handler{} // each shard goes on where it was
		s.run(cfg, again)
		pass(time.Minute)
		want := append([]string{"bad"}, with...)
		if got := slices.Compact(slices.Sorted(slices.Values(again.keys()))); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			s.Errorf("after a restart: got %v, want those of the shard that failed, %v", got, want)
		}
	})
}

func TestWhatIsReadAheadIsBounded(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.stream.put("t", "rec", numbered(0, 3*pageRecords)...)
		h := &handler{answer: func(int, []string) (string, error) { <-time.After(5 * time.Second); return "", nil }}
		feed := NewFeed(s.stream, FeedConfig{StreamARN: "arn"})
		feed.backlog = newBacklog(pageRecords * recordOverhead)
		if err := feed.Add(h.function(), StreamConfig{Checkpoints: filepath.Join(s.dir, "c"), BatchSize: pageRecords}); err != nil {
			s.Fatal(err)
		}
		runFeed(s, feed)
		synctest.Wait()
		if got := s.stream.polled(); got != 2 {
			s.Errorf("%d pages were read while the first is processed, want one more", got)
		}
		pass(time.Minute)
		if got := len(h.keys()); got != 3*pageRecords {
			s.Errorf("got %d records in the end, want all", got)
		}
	})
}
