package servicetest

import (
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/counter"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/eventsource"
)

// Client is the one that the table is read by.
func (s *Service) Client() *dynamodb.Client { return s.stream.table }

// Put stores a record, given as JSON, as the ingest function does, and returns
// it. A nil previous creates it; adjust, unless it is nil, has it before.
func (s *Service) Put(t testing.TB, kind commerce.Kind, previous *commerce.Stored, record string, adjust func(*commerce.Stored)) *commerce.Stored {
	t.Helper()
	next, err := commerce.Apply(previous, commerce.Change{
		Kind: kind, Op: commerce.OpPut, OrganizationID: s.Org, Record: []byte(record),
	}, s.Now())
	if err != nil {
		t.Fatal(err)
	}
	if adjust != nil {
		adjust(next)
	}
	if err := s.Table.PutRecord(t.Context(), previous, next); err != nil {
		t.Fatal(err)
	}
	return next
}

// StreamRecords returns what the table's stream got since the last call, as
// far as it is of one of the item types, such as dynamo.StreamRecord.
func (s *Service) StreamRecords(t testing.TB, itemTypes ...string) []events.DynamoDBEventRecord {
	t.Helper()
	var found []events.DynamoDBEventRecord
	for _, r := range s.dated(s.stream.read(t)) {
		if slices.Contains(itemTypes, dynamo.StreamType(&r)) {
			found = append(found, r)
		}
	}
	return found
}

// dated gives records the time of the test's clock.
func (s *Service) dated(records []events.DynamoDBEventRecord) []events.DynamoDBEventRecord {
	for i := range records {
		records[i].Change.ApproximateCreationDateTime.Time = s.Time()
	}
	return records
}

// Writes returns how many changes the table's stream got since the last call of
// this or of [Service.StreamRecords].
func (s *Service) Writes(t testing.TB) int {
	t.Helper()
	return len(s.stream.read(t))
}

// CountStream has the stream counted as far as it goes, each record twice.
func (s *Service) CountStream(t testing.TB) {
	t.Helper()
	var batch events.DynamoDBTimeWindowEvent
	batch.Records = s.dated(s.counted.read(t))
	for range 2 {
		c := counter.New(s.Table, s.Queues().Deliveries(), s.Time, s.Leaks.Logger())
		if failures := c.Handle(t.Context(), batch); len(failures) > 0 {
			t.Fatalf("count the stream: %+v", failures)
		}
	}
}

// stream reads the table's stream, which is of one shard.
type stream struct {
	table    *dynamodb.Client
	name     string
	client   *dynamodbstreams.Client // nil until the first read
	iterator *string
}

// open begins at the stream's start.
func (s *stream) open(t testing.TB) {
	t.Helper()
	described, err := s.table.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &s.name})
	if err != nil {
		t.Fatal(err)
	}
	arn, o := described.Table.LatestStreamArn, s.table.Options()
	s.client = dynamodbstreams.New(dynamodbstreams.Options{BaseEndpoint: o.BaseEndpoint, Region: o.Region, Credentials: o.Credentials})
	shards, err := s.client.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil || len(shards.StreamDescription.Shards) != 1 {
		t.Fatalf("stream: %+v, %v", shards, err)
	}
	first, err := s.client.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: arn, ShardId: shards.StreamDescription.Shards[0].ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.iterator = first.ShardIterator
}

func (s *stream) read(t testing.TB) []events.DynamoDBEventRecord {
	t.Helper()
	if s.client == nil {
		s.open(t)
	}
	var found []events.DynamoDBEventRecord
	for {
		page, err := s.client.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: s.iterator})
		if err != nil {
			t.Fatal(err)
		}
		s.iterator = page.NextShardIterator
		if len(page.Records) == 0 {
			return found
		}
		for _, r := range page.Records {
			found = append(found, events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
				SequenceNumber: aws.ToString(r.Dynamodb.SequenceNumber),
				Keys:           eventsource.Image(r.Dynamodb.Keys), OldImage: eventsource.Image(r.Dynamodb.OldImage),
				NewImage: eventsource.Image(r.Dynamodb.NewImage),
			}})
		}
	}
}
