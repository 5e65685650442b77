package eventsource

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/google/go-cmp/cmp"
)

// A counting client counts the pages that it reads, and what is in them.
type counting struct {
	StreamClient
	polls, records atomic.Int64
}

func (c *counting) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput, o ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	c.polls.Add(1)
	out, err := c.StreamClient.GetRecords(ctx, in, o...)
	if err == nil {
		c.records.Add(int64(len(out.Records)))
	}
	return out, err
}

// counted is a feed of the table and what it reads.
func (b *table) counted(t testing.TB) (*Feed, *counting) {
	t.Helper()
	client := &counting{StreamClient: b.streams}
	feed := b.feed(t, FeedConfig{})
	feed.client = client
	return feed, client
}

func large() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"v": &types.AttributeValueMemberS{Value: strings.Repeat("x", 390_000)}}
}

func TestSourcesOfAFeedShareWhatItReads(t *testing.T) {
	b := newTable(t)
	feed, client := b.counted(t)
	first, second := &handler{}, &handler{}
	run(t, feed, first.function(), StreamConfig{})
	keys := numbered(0, 50)
	run(t, feed, second.function(), StreamConfig{Filters: []string{fmt.Sprintf(`{"dynamodb":{"NewImage":{"PK":{"S":["%s"]}}}}`, strings.Join(keys[:10], `","`))}})
	for _, pk := range keys {
		b.put(t, pk, nil)
	}
	waitUntil(t, "all records", func() bool { return len(first.keys()) >= 50 && len(second.keys()) >= 10 })
	if diff := cmp.Diff(keys, first.keys()); diff != "" {
		t.Errorf("the first source (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(keys[:10], second.keys()); diff != "" {
		t.Errorf("the second source (-want +got):\n%s", diff)
	}
	if got := client.records.Load(); got != 50 {
		t.Errorf("read %d records, want each of 50 once", got)
	}
}

func TestASourceThatFailsHoldsUpNoOther(t *testing.T) {
	b := newTable(t)
	feed := b.feed(t, FeedConfig{})
	feed.maxCached, feed.maxBacklog = 1<<20, 2<<20
	var mended atomic.Bool
	failing := &handler{answer: func(int, []string) (string, error) {
		if !mended.Load() {
			return "", errors.New("table unreachable")
		}
		return "", nil
	}}
	good := &handler{}
	stuck, _ := run(t, feed, failing.function(), StreamConfig{RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond})
	source, _ := run(t, feed, good.function(), StreamConfig{})
	const n = 20 // more than is kept and read ahead together
	for _, pk := range numbered(0, n) {
		b.put(t, pk, large())
	}
	waitUntil(t, "the good source", func() bool { return len(good.keys()) == n })
	if stuck.Position() != "" || source.Position() == "" {
		t.Errorf("the failing source is past %q and the other past %q, want nothing and something", stuck.Position(), source.Position())
	}
	mended.Store(true)
	waitUntil(t, "the end for the source that failed", func() bool { return stuck.Position() == source.Position() })
	all := failing.keys()
	if got := slices.Compact(slices.Sorted(slices.Values(all))); !slices.Equal(got, numbered(0, n)) {
		t.Errorf("the source that failed got %d keys, want %d", len(got), n)
	}
}

func TestASourceThatIsBehindCatchesUp(t *testing.T) {
	b := newTable(t)
	feed, client := b.counted(t)
	feed.maxCached = 1 << 20
	early := &handler{}
	source, _ := run(t, feed, early.function(), StreamConfig{})
	const n = 12
	for i, pk := range numbered(0, n) {
		b.put(t, pk, large())
		// What one poll brings is kept as a whole.
		waitUntil(t, "the early source", func() bool { return source.Position() != "" && len(early.keys()) == i+1 })
	}
	late := &handler{}
	run(t, feed, late.function(), StreamConfig{})
	waitUntil(t, "the late source", func() bool { return len(late.keys()) == n })
	b.put(t, "last", nil)
	waitUntil(t, "the last record", func() bool { return len(late.keys()) == n+1 && len(early.keys()) == n+1 })
	want := append(numbered(0, n), "last")
	if diff := cmp.Diff(want, late.keys()); diff != "" {
		t.Errorf("the late source (-want +got):\n%s", diff)
	}
	if got := client.records.Load(); got < 3*n/2 || got > 2*n+1 {
		t.Errorf("read %d records for two sources, want %d once, and again those that were no longer kept", got, n)
	}
}

// quietly runs sources of a feed on a stream in a bubble of its own time.
func quietly(t *testing.T, stream *scripted, test func(feed *Feed, client *counting, got func() int), sources ...StreamConfig) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := &counting{StreamClient: stream}
		feed, err := NewFeed(client, FeedConfig{StreamARN: "arn"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var n atomic.Int64
		for _, cfg := range sources {
			cfg.Checkpoints = filepath.Join(t.TempDir(), "c")
			source, err := feed.Stream(Function{Name: "f", Invoke: func(context.Context, []byte) ([]byte, error) { panic("called with JSON") }, Changes: func(_ context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
				n.Add(int64(len(event.Records)))
				return events.DynamoDBEventResponse{}, nil
			}}, cfg)
			if err != nil {
				t.Fatal(err)
			}
			running.Go(func() {
				if err := source.Run(ctx); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
		}
		test(feed, client, func() int { return int(n.Load()) })
		cancel()
		running.Wait()
	})
}

func TestAQuietStreamIsPolledFourTimesASecondForAllSources(t *testing.T) {
	quietly(t, &scripted{}, func(_ *Feed, client *counting, _ func() int) {
		time.Sleep(time.Second)
		before := client.polls.Load()
		time.Sleep(10 * time.Second)
		if got := client.polls.Load() - before; got != 40 {
			t.Errorf("%d polls in 10 s, want 40", got)
		}
	}, StreamConfig{}, StreamConfig{})
}

func TestANudgePollsAtOnceAndManyDoNotPollMoreThanNeeded(t *testing.T) {
	stream := &scripted{}
	quietly(t, stream, func(feed *Feed, client *counting, got func() int) {
		time.Sleep(time.Minute)
		stream.add("1")
		feed.Nudge()
		synctest.Wait()
		if got() != 1 {
			t.Errorf("got %d records after a nudge, want 1 without a pause", got())
		}
		before := client.polls.Load()
		for range 1000 {
			feed.Nudge()
			time.Sleep(100 * time.Microsecond)
		}
		if polls := client.polls.Load() - before; polls < 30 || polls > 35 {
			t.Errorf("%d polls for 1000 nudges within 100 ms, want one in %v", polls, minPollInterval)
		}
	}, StreamConfig{})
}

// What nobody waits for, such as what only a source with a window wants, must
// not keep the feed busy.
func TestPollsAreFrequentOnlyWhileASourceWaits(t *testing.T) {
	for name, test := range map[string]struct {
		source   StreamConfig
		min, max int64
	}{
		"wanted":   {StreamConfig{}, 2, 4},
		"unwanted": {StreamConfig{Filters: []string{`{"dynamodb":{"NewImage":{"t":{"S":["other"]}}}}`}}, 1, 2},
		"gathered": {StreamConfig{MaximumBatchingWindow: time.Second}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			stream := &scripted{}
			quietly(t, stream, func(_ *Feed, client *counting, _ func() int) {
				time.Sleep(time.Minute)
				stream.add("1")
				for before := client.records.Load(); client.records.Load() == before; {
					time.Sleep(time.Millisecond)
				}
				before := client.polls.Load()
				time.Sleep(400 * time.Millisecond)
				if got := client.polls.Load() - before; got < test.min || got > test.max {
					t.Errorf("%d polls within 400 ms after a change, want %d to %d", got, test.min, test.max)
				}
			}, test.source)
		})
	}
}
