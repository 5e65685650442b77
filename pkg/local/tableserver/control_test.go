package tableserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// sequence reads the table's whole stream and returns how many records it holds and their lowest and highest number.
func sequence(t *testing.T, db *dynamodb.Client) (count, lowest, highest int) {
	t.Helper()
	options := db.Options()
	streams := dynamodbstreams.New(dynamodbstreams.Options{Region: options.Region, BaseEndpoint: options.BaseEndpoint, Credentials: options.Credentials})
	listed, err := streams.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: aws.String(table)})
	if err != nil {
		t.Fatalf("listing the streams: %v", err)
	}
	arn := listed.Streams[0].StreamArn
	described, err := streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil {
		t.Fatalf("describing the stream: %v", err)
	}
	begun, err := streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: arn, ShardId: described.StreamDescription.Shards[0].ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatalf("beginning to read the stream: %v", err)
	}
	for iterator := begun.ShardIterator; ; {
		page, err := streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		if err != nil {
			t.Fatalf("reading the stream: %v", err)
		}
		if len(page.Records) == 0 {
			return count, lowest, highest
		}
		for _, record := range page.Records {
			if highest, err = strconv.Atoi(*record.Dynamodb.SequenceNumber); err != nil {
				t.Fatal(err)
			}
			if count++; count == 1 {
				lowest = highest
			}
		}
		iterator = page.NextShardIterator
	}
}

// sqlite runs SQL on a file by the sqlite3 command, without which the test is skipped.
func sqlite(t *testing.T, file, script string) string {
	t.Helper()
	if _, err := exec.LookPath("sqlite3"); err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), "sqlite3", "-bail", file)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("sqlite3 %s: %v: %s", file, err, out)
	}
	return string(out)
}

func TestTheEmptyFileIsWhatItsScriptMakes(t *testing.T) {
	script, err := os.ReadFile("empty.sql")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "empty.db")
	sqlite(t, file, string(script))
	if got, want := sqlite(t, "empty.db", ".dump"), sqlite(t, file, ".dump"); got != want {
		t.Errorf("empty.db is not what empty.sql makes, run go generate: got %s, want %s", got, want)
	}
}

func TestStreamStatementsOfTheServerUseTheIndexes(t *testing.T) {
	for name, test := range map[string]struct{ statement, index string }{
		"next number": {
			`SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 FROM _stream_records WHERE table_name = 'commerce'`,
			"_stream_records_by_sequence",
		},
		"records": {
			`SELECT new_image FROM _stream_records WHERE table_name = 'commerce' AND shard_id = 's' AND CAST(sequence_number AS INTEGER) > 7 ORDER BY CAST(sequence_number AS INTEGER) ASC LIMIT 1000`,
			"_stream_records_by_shard",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := sqlite(t, "empty.db", "EXPLAIN QUERY PLAN "+test.statement+";")
			if !strings.Contains(plan, test.index) || strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("plan of %s: got %s, want a search by %s", test.statement, plan, test.index)
			}
		})
	}
}

func TestTrimKeepsTheNewestRecordSoThatNumbersRise(t *testing.T) {
	server, db := newTable(t)
	for i := range 10 {
		if err := put(t.Context(), db, strconv.Itoa(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		past                   string
		count, lowest, highest int
	}{
		{past: "4", count: 6, lowest: 5, highest: 10},
		{past: "4", count: 6, lowest: 5, highest: 10},
		{past: "99", count: 1, lowest: 10, highest: 10},
	} {
		if err := server.Trim(t.Context(), table, step.past); err != nil {
			t.Errorf("Trim to %s: %v", step.past, err)
		}
		if count, lowest, highest := sequence(t, db); count != step.count || lowest != step.lowest || highest != step.highest {
			t.Errorf("after Trim to %s: %d records %d-%d, want %d records %d-%d", step.past, count, lowest, highest, step.count, step.lowest, step.highest)
		}
	}
	if err := put(t.Context(), db, "last", nil); err != nil {
		t.Fatal(err)
	}
	if _, _, highest := sequence(t, db); highest != 11 {
		t.Errorf("the number after trimming everything is %d, want 11", highest)
	}
	for _, bad := range []string{"", "x", "1.5"} {
		if err := server.Trim(t.Context(), table, bad); err == nil {
			t.Errorf("Trim to %q works, want an error", bad)
		}
	}
}
