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

// A scripted stream has one shard with the sequence numbers that a test gives it. An iterator is a position.
type scripted struct {
	mu      sync.Mutex
	records []string
	trimmed string // a sequence number
	shards  int    // more than one is refused

	calls    int
	failures int // requests that are still to fail
}

// fail fails every other request until it has failed often enough. The caller holds the lock.
func (s *scripted) fail() error {
	if s.calls++; s.calls%2 == 1 && s.failures > 0 {
		s.failures--
		return errors.New("connection refused")
	}
	return nil
}

func (s *scripted) DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail(); err != nil {
		return nil, err
	}
	shards := slices.Repeat([]streamtypes.Shard{{ShardId: aws.String("s")}}, max(s.shards, 1))
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: &streamtypes.StreamDescription{Shards: shards}}, nil
}

func (s *scripted) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail(); err != nil {
		return nil, err
	}
	after := aws.ToString(in.SequenceNumber)
	if after != "" && after == s.trimmed {
		return nil, &streamtypes.TrimmedDataAccessException{}
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String(strconv.Itoa(1 + slices.Index(s.records, after)))}, nil
}

func (s *scripted) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail(); err != nil {
		return nil, err
	}
	from, err := strconv.Atoi(*in.ShardIterator)
	if err != nil {
		return nil, err
	}
	out := &dynamodbstreams.GetRecordsOutput{NextShardIterator: aws.String(strconv.Itoa(len(s.records)))}
	for _, sequence := range s.records[from:] {
		out.Records = append(out.Records, streamtypes.Record{
			EventID: aws.String(sequence), EventName: streamtypes.OperationTypeInsert,
			Dynamodb: &streamtypes.StreamRecord{
				SequenceNumber: aws.String(sequence),
				Keys:           map[string]streamtypes.AttributeValue{"PK": &streamtypes.AttributeValueMemberS{Value: sequence}},
			},
		})
	}
	return out, nil
}

func (s *scripted) add(sequence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, sequence)
}

// feed makes a feed of the stream.
func (s *scripted) feed(t *testing.T) *Feed {
	t.Helper()
	made, err := NewFeed(s, FeedConfig{StreamARN: "arn", IdlePoll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestAStreamOfSeveralShardsIsRefused(t *testing.T) {
	if _, _, err := (&reader{feed: (&scripted{shards: 2}).feed(t)}).read(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "the stream has 2 shards") {
		t.Errorf("read: got %v, want the number of shards", err)
	}
}

// sum puts a checksum below a file's line, as the checkpoints have it.
func sum(line string) []byte { return fmt.Appendf(nil, "%s\n%s\n", line, checksum([]byte(line))) }

// writeCheckpoints writes a file of checkpoints.
func writeCheckpoints(t *testing.T, content []byte) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "checkpoints")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func reopen(t *testing.T, c *checkpoints, file string, workers int) *checkpoints {
	t.Helper()
	if c != nil {
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
	}
	reopened, err := openCheckpoints(file, "arn", workers, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return reopened
}

func TestATrimmedCheckpointGoesOnAtTheHorizon(t *testing.T) {
	file := writeCheckpoints(t, sum(`{"streamArn":"arn","workers":["4"]}`))
	h := &handler{}
	source, _ := run(t, (&scripted{records: []string{"8", "9"}, trimmed: "4"}).feed(t), h.function(), StreamConfig{Checkpoints: file})
	waitUntil(t, "the last record", func() bool { return source.Position() == "9" })
	if diff := cmp.Diff([]string{"8", "9"}, h.keys()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestADamagedCheckpointFileOrOneOfAnotherStreamCountsAsNone(t *testing.T) {
	whole := string(sum(`{"streamArn":"arn","workers":["1999"]}`))
	for what, content := range map[string]string{
		"empty":              "",
		"no JSON":            string(sum("{")),
		"another stream":     string(sum(`{"streamArn":"another","workers":["9"]}`)),
		"mixed with another": strings.Replace(whole, "1999", "2999", 1),
		"cut in the sum":     whole[:len(whole)-4],
		"cut in the JSON":    whole[:20],
	} {
		t.Run(what, func(t *testing.T) {
			file := writeCheckpoints(t, []byte(content))
			opened := reopen(t, nil, file, 1)
			if got := opened.at(0); got != "" {
				t.Errorf("checkpoint %q, want none", got)
			}
			if err := opened.set(0, "1", 0); err != nil {
				t.Error(err)
			}
			if got := reopen(t, opened, file, 1).at(0); got != "1" {
				t.Errorf("checkpoint %q after the file was overwritten, want 1", got)
			}
		})
	}
}

func TestAnotherNumberOfWorkersBeginsAtTheLowestCheckpoint(t *testing.T) {
	for workers, want := range map[string][]string{
		`"7","5"`:     {"5", "5", "5"},
		`"7",""`:      {"", "", ""}, // the other has not begun
		`"9"`:         {"9", "9", "9"},
		`"7","","5"`:  {"7", "", "5"},
		`"10","9",""`: {"10", "9", ""},
	} {
		c := reopen(t, nil, writeCheckpoints(t, sum(`{"streamArn":"arn","workers":[`+workers+`]}`)), 3)
		if diff := cmp.Diff(want, c.held.Workers); diff != "" {
			t.Errorf("three workers after %s (-want +got):\n%s", workers, diff)
		}
	}
}

func TestAShorterCheckpointFileIsWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoints")
	c := reopen(t, nil, file, 1)
	for _, sequence := range []string{"123456", "7"} {
		if err := c.set(0, sequence, 0); err != nil {
			t.Fatal(err)
		}
		if c = reopen(t, c, file, 1); c.at(0) != sequence {
			t.Errorf("checkpoint %q, want %s", c.at(0), sequence)
		}
	}
}

func TestACheckpointThatCannotBeWrittenEndsTheSource(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	source, err := (&scripted{records: []string{"1"}}).feed(t).Stream((&handler{}).function(), StreamConfig{Checkpoints: filepath.Join(dir, "c")})
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
