package eventsource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"
)

// A splitting stream has what the local table server never has: several shards, of which some are closed and some are
// trimmed. An iterator is "shard/position".
type splitting struct {
	mu      sync.Mutex
	shards  []streamtypes.Shard
	records map[string][]string // sequence numbers by shard
	closed  map[string]bool
	trimmed map[string]bool // by sequence number
}

func (s *splitting) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// One shard a page.
	next := 1 + slices.IndexFunc(s.shards, func(one streamtypes.Shard) bool {
		return aws.ToString(one.ShardId) == aws.ToString(in.ExclusiveStartShardId)
	})
	described := &streamtypes.StreamDescription{Shards: s.shards[next : next+1]}
	if next+1 < len(s.shards) {
		described.LastEvaluatedShardId = s.shards[next].ShardId
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: described}, nil
}

func (s *splitting) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after := aws.ToString(in.SequenceNumber)
	if s.trimmed[after] {
		return nil, &streamtypes.TrimmedDataAccessException{}
	}
	at := 1 + slices.Index(s.records[*in.ShardId], after)
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String(fmt.Sprintf("%s/%d", *in.ShardId, at))}, nil
}

func (s *splitting) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shard, position, _ := strings.Cut(*in.ShardIterator, "/")
	from, err := strconv.Atoi(position)
	if err != nil {
		return nil, err
	}
	out := &dynamodbstreams.GetRecordsOutput{}
	for _, sequence := range s.records[shard][from:] {
		out.Records = append(out.Records, streamtypes.Record{
			EventID: aws.String(sequence), EventName: streamtypes.OperationTypeInsert,
			Dynamodb: &streamtypes.StreamRecord{
				SequenceNumber: aws.String(sequence),
				Keys:           map[string]streamtypes.AttributeValue{"PK": &streamtypes.AttributeValueMemberS{Value: shard + ":" + sequence}},
			},
		})
	}
	if !s.closed[shard] {
		out.NextShardIterator = aws.String(fmt.Sprintf("%s/%d", shard, len(s.records[shard])))
	}
	return out, nil
}

func (s *splitting) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func child(id string, parent *string) streamtypes.Shard {
	return streamtypes.Shard{ShardId: aws.String(id), ParentShardId: parent}
}

// follow runs a source on a splitting stream.
func follow(t *testing.T, client StreamClient, file string, h *handler, batch int) (*Stream, func()) {
	t.Helper()
	feed, err := NewFeed(client, FeedConfig{StreamARN: "arn", IdlePoll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, feed, h.function(), StreamConfig{Checkpoints: file, BatchSize: batch})
}

func TestAParentShardIsReadToItsEndBeforeItsChildren(t *testing.T) {
	stream := &splitting{
		// The parent of p is no longer listed: p is read at once.
		shards:  []streamtypes.Shard{child("c1", aws.String("p")), child("c2", aws.String("p")), child("p", aws.String("gone"))},
		records: map[string][]string{"p": {"1", "2", "3"}, "c1": {"14", "16"}, "c2": {"15"}},
		closed:  map[string]bool{},
	}
	file := filepath.Join(t.TempDir(), "checkpoints")
	h := &handler{}
	source, stop := follow(t, stream, file, h, 2)
	waitUntil(t, "the parent's records", func() bool { return source.Position() == "3" })
	if diff := cmp.Diff([][]string{{"p:1", "p:2"}, {"p:3"}}, h.seen()); diff != "" {
		t.Fatalf("before the parent is closed (-want +got):\n%s", diff)
	}
	stream.change(func() { stream.closed["p"] = true })
	waitUntil(t, "all records", func() bool { return len(h.keys()) == 6 })
	waitUntil(t, "the lowest of two open shards", func() bool { return source.Position() == "15" })
	stop()

	// The parent is not read again, the children go on at their checkpoints, and what is no longer listed is forgotten.
	stream.change(func() {
		stream.shards = stream.shards[:2]
		stream.records["c2"] = append(stream.records["c2"], "17")
	})
	again := &handler{}
	source, _ = follow(t, stream, file, again, 2)
	waitUntil(t, "the new record", func() bool { return source.Position() == "16" })
	if diff := cmp.Diff([][]string{{"c2:17"}}, again.seen()); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	if kept, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(kept), `{"streamArn":"arn","shards":{"c1":"16","c2":"17"}}`+"\n") {
		t.Errorf("checkpoints %s, %v; want those of c1 and c2", kept, err)
	}
}

func TestATrimmedCheckpointGoesOnAtTheHorizon(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoints")
	if err := os.WriteFile(file, []byte(`{"streamArn":"arn","shards":{"s":"4"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	stream := &splitting{shards: []streamtypes.Shard{child("s", nil)}, records: map[string][]string{"s": {"8", "9"}}, trimmed: map[string]bool{"4": true}}
	h := &handler{}
	source, _ := follow(t, stream, file, h, 10)
	waitUntil(t, "the last record", func() bool { return source.Position() == "9" })
	if diff := cmp.Diff([]string{"s:8", "s:9"}, h.keys()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestACheckpointFileOfAnotherStreamOrNoneCounts(t *testing.T) {
	for _, content := range []string{"", "{", `{"streamArn":"another","shards":{"s":"9"}}`, `{"streamArn":"arn","shards":null}`, `{"streamArn":"arn","shards":{"s":"9"}}` + "\n00000000\n"} {
		file := filepath.Join(t.TempDir(), "checkpoints")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := openCheckpoints(file, "arn", time.Now)
		if err != nil {
			t.Errorf("file %q: %v", content, err)
			continue
		}
		if got := opened.at("s"); got != "" {
			t.Errorf("file %q: checkpoint %q, want none", content, got)
		}
		if err := opened.set("s", "1"); err != nil {
			t.Errorf("file %q: %v", content, err)
		}
		if reopened := reopen(t, opened, file); reopened.at("s") != "1" {
			t.Errorf("file %q: checkpoint %q after it was overwritten, want 1", content, reopened.at("s"))
		}
	}
}

func reopen(t *testing.T, c *checkpoints, file string) *checkpoints {
	t.Helper()
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	reopened, err := openCheckpoints(file, "arn", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return reopened
}

func TestAShorterCheckpointFileIsWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoints")
	c, err := openCheckpoints(file, "arn", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range []string{"a", "b"} {
		if err := c.set(shard, "123456"); err != nil {
			t.Fatal(err)
		}
	}
	for _, round := range []string{"by the writer", "after a restart"} {
		if err := c.retain(map[string]bool{"b": true}); err != nil {
			t.Fatal(err)
		}
		if err := c.set("b", "7"); err != nil {
			t.Fatal(err)
		}
		if c = reopen(t, c, file); c.at("a") != "" || c.at("b") != "7" {
			t.Errorf("%s: checkpoints %q and %q, want none and 7", round, c.at("a"), c.at("b"))
		}
	}
}

func TestADamagedCheckpointFileCountsAsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoints")
	c, err := openCheckpoints(file, "arn", time.Now)
	if err == nil {
		err = errors.Join(c.set("s", "1999"), c.close())
	}
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, damaged := range map[string]string{
		"mixed with another": strings.Replace(string(whole), "1999", "2999", 1),
		"cut in the sum":     string(whole[:len(whole)-4]),
		"cut in the JSON":    string(whole[:20]),
	} {
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := openCheckpoints(file, "arn", time.Now); err != nil || c.at("s") != "" {
			t.Errorf("%s: checkpoint %q, %v; want none", what, c.at("s"), err)
		}
	}
}

func TestACheckpointThatCannotBeWrittenEndsTheSource(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	stream := &splitting{shards: []streamtypes.Shard{child("s", nil)}, records: map[string][]string{"s": {"1"}}}
	feed, err := NewFeed(stream, FeedConfig{StreamARN: "arn"})
	if err != nil {
		t.Fatal(err)
	}
	source, err := feed.Stream((&handler{}).function(), StreamConfig{Checkpoints: filepath.Join(dir, "c")})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := source.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "writing the checkpoints") {
		t.Errorf("Run = %v, want the checkpoint's error", err)
	}
}

func TestLowestPosition(t *testing.T) {
	for _, test := range []struct {
		positions []string
		want      string
	}{
		{nil, ""},
		{[]string{"7"}, "7"},
		{[]string{"10", "9"}, "9"},
		{[]string{"100000000000000000000000000000000000002", "100000000000000000000000000000000000001"}, "100000000000000000000000000000000000001"},
		{[]string{"9", ""}, ""},
	} {
		if got := Lowest(test.positions...); got != test.want {
			t.Errorf("Lowest(%q) = %q, want %q", test.positions, got, test.want)
		}
	}
}

func TestPagesAdaptToTheSizeOfTheRecords(t *testing.T) {
	for _, test := range []struct {
		limit         int32
		size, records int
		want          int32
	}{
		{100, 0, 0, 100},                // nothing learned
		{100, 100 * 500, 100, 200},      // small records: double
		{800, 800 * 500, 800, 1000},     // no more than DynamoDB's own bound
		{100, 100 * 128 << 10, 100, 32}, // large records: 4 MiB
		{32, 32 * 800 << 10, 32, 5},     // the largest: two images of 400 KB
		{5, 5 * 500, 5, 10},             // and up again
	} {
		if got := nextLimit(test.limit, test.size, test.records); got != test.want {
			t.Errorf("nextLimit(%d, %d bytes, %d records) = %d, want %d", test.limit, test.size, test.records, got, test.want)
		}
	}
}
