package eventsource

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/go-json-experiment/json"
)

const region = "eu-central-1"

// A scripted stream has one shard with the changes that a test makes; their numbers are 1, 2, … An iterator is a
// position.
type scripted struct {
	mu       sync.Mutex
	records  []types.Record
	trimmed  string // a sequence number
	failures int    // requests that are still to fail, each second one
	requests int
	polls    int
}

func (s *scripted) DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: &types.StreamDescription{Shards: make([]types.Shard, 1)}}, s.fail()
}

func (s *scripted) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	after := aws.ToString(in.SequenceNumber)
	if after != "" && after == s.trimmed {
		return nil, &types.TrimmedDataAccessException{}
	}
	if after == "" {
		after = "0"
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: &after}, s.fail()
}

func (s *scripted) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	from, err := strconv.Atoi(*in.ShardIterator)
	if err := errors.Join(err, s.fail()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls++
	to := min(len(s.records), from+int(*in.Limit))
	return &dynamodbstreams.GetRecordsOutput{Records: s.records[from:to], NextShardIterator: aws.String(strconv.Itoa(to))}, nil
}

func (s *scripted) fail() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests++; s.requests%2 == 0 && s.failures > 0 {
		s.failures--
		return errors.New("connection refused")
	}
	return nil
}

func (s *scripted) polled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls
}

// put adds changes of the items with these keys, whose new images have an attribute more.
func (s *scripted) put(name, value string, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		pk := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: key}}
		s.records = append(s.records, types.Record{EventName: types.OperationTypeInsert, Dynamodb: &types.StreamRecord{
			SequenceNumber: aws.String(strconv.Itoa(len(s.records) + 1)), Keys: pk,
			NewImage: map[string]types.AttributeValue{"PK": pk["PK"], name: &types.AttributeValueMemberS{Value: value}},
		}})
	}
}

// numbered returns the keys from, from+1, … to-1.
func numbered(from, to int) []string {
	var keys []string
	for i := from; i < to; i++ {
		keys = append(keys, fmt.Sprintf("%03d", i))
	}
	return keys
}

// A handler stands in for a function: it keeps what it is given and answers by a script.
type handler struct {
	answer func(call int, keys []string) (string, error)

	mu    sync.Mutex
	calls [][]string // the keys of each call
	begun []time.Time
	raw   [][]byte
}

func (h *handler) function() Function {
	return Function{Name: "handler", Timeout: 10 * time.Second, Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
		var event events.DynamoDBEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var keys []string
		for _, one := range event.Records {
			keys = append(keys, one.Change.Keys["PK"].String())
		}
		h.mu.Lock()
		h.calls, h.begun, h.raw = append(h.calls, keys), append(h.begun, time.Now()), append(h.raw, payload)
		call := len(h.calls)
		h.mu.Unlock()
		if h.answer == nil {
			return nil, nil
		}
		answer, err := h.answer(call, keys)
		return []byte(answer), err
	}}
}

func (h *handler) seen() [][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func (h *handler) keys() []string { return slices.Concat(h.seen()...) }

// broken is the answer of a function that fails.
func broken() (string, error) { return "", errors.New("table unreachable") }

// A scene is a scripted stream in a bubble of its own time.
type scene struct {
	*testing.T
	stream *scripted
	dir    string // of checkpoints
}

func inBubble(t *testing.T, test func(s *scene)) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sources")
	synctest.Test(t, func(t *testing.T) { test(&scene{t, &scripted{}, dir}) })
}

// run runs a feed with a source of each handler. It returns the function that ends it, which must not fail.
func (s *scene) run(cfg StreamConfig, handlers ...*handler) (feed *Feed, stop func()) {
	s.Helper()
	feed = NewFeed(s.stream, FeedConfig{Host: Host{Region: region}, StreamARN: "arn", PartitionKey: "PK"})
	for i, h := range handlers {
		cfg.Checkpoints = filepath.Join(s.dir, fmt.Sprint(i))
		if err := feed.Add(h.function(), cfg); err != nil {
			s.Fatal(err)
		}
	}
	return feed, runFeed(s, feed)
}

func runFeed(t testing.TB, feed *Feed) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// pass lets time pass in a bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func join(calls [][]string) string {
	var lines []string
	for _, keys := range calls {
		lines = append(lines, strings.Join(keys, " "))
	}
	return strings.Join(lines, "\n")
}
