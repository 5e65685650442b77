package runner

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/local/template"
)

// table is a table server with the service's table.
type table struct {
	*tableserver.Server
	servers   *servers
	streamARN string
	ttl       string
}

func newTable(t *testing.T) *table {
	t.Helper()
	cache, err := tableserver.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	data, err := openFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &servers{}
	cfg := &Config{TableServer: tableserver.Dynoxide, BinDir: cache, Logger: slog.New(slog.DiscardHandler)}
	if err := s.start(t.Context(), cfg, data, l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		if err := s.close(); err != nil {
			t.Error(err)
		}
		if err := data.close(); err != nil {
			t.Error(err)
		}
	})
	model, err := template.Load("../../../template.yaml", map[string]string{"JwtIssuer": issuerName, "JwtAudience": audience})
	if err != nil {
		t.Fatal(err)
	}
	arn, err := provision.Table(t.Context(), s.dynamodb(), model.Table, tableName)
	if err != nil {
		t.Fatal(err)
	}
	return &table{s.table, s, arn, model.Table.TTL}
}

func (x *table) put(t *testing.T, id string, expires time.Time) {
	t.Helper()
	_, err := x.servers.dynamodb().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(tableName), Item: map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: id}, "SK": &types.AttributeValueMemberS{Value: id},
		x.ttl: &types.AttributeValueMemberN{Value: strconv.FormatInt(expires.Unix(), 10)},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func (x *table) items(t *testing.T) int {
	t.Helper()
	out, err := x.servers.dynamodb().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(tableName)})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Items)
}

// records returns the sequence numbers that the stream holds.
func (x *table) records(t *testing.T) []string {
	t.Helper()
	client := dynamodbstreams.NewFromConfig(x.servers.aws, func(o *dynamodbstreams.Options) { o.BaseEndpoint = &x.servers.tableURL })
	described, err := client.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: &x.streamARN})
	if err != nil {
		t.Fatal(err)
	}
	iterator, err := client.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: &x.streamARN, ShardId: described.StreamDescription.Shards[0].ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator.ShardIterator})
	if err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, r := range out.Records {
		numbers = append(numbers, *r.Dynamodb.SequenceNumber)
	}
	return numbers
}

// keep runs the upkeep until the condition holds, which it does within 10 s.
func (x *table) keep(t *testing.T, u *upkeep, what string, holds func() bool) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		u.run(ctx)
	}()
	defer func() {
		end()
		<-ended
	}()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

func TestUpkeepRemovesWhatHasExpiredAndWhatAllReadersArePast(t *testing.T) {
	x := newTable(t)
	x.put(t, "old", time.Now().Add(-time.Hour))
	x.put(t, "fresh", time.Now().Add(time.Hour))
	past := x.records(t)[0]
	u := &upkeep{
		server: x.Server, table: tableName, ttl: x.ttl, past: func() string { return past },
		logger: slog.New(slog.DiscardHandler), trimEvery: 5 * time.Millisecond, sweepEvery: 5 * time.Millisecond,
	}
	x.keep(t, u, "one item, and a stream without its first record", func() bool {
		return x.items(t) == 1 && x.records(t)[0] != past
	})
	if left := len(x.records(t)); left != 2 {
		t.Errorf("stream: got %d records, want the second item and the deletion", left)
	}
}
