package ops_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/dispatcher"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// state is what the operator's commands work on. Only the test reads its stream
// and its queues.
type state struct{ *servicetest.Service }

func newState(t *testing.T) state {
	t.Helper()
	return state{servicetest.New(t)}
}

// neighbour is the same state as another organization sees it.
func (s state) neighbour(t *testing.T) state {
	t.Helper()
	return state{s.Organization(t)}
}

// apply stores what a message says, as ingest does, and returns what the stream
// has of it. The message is given without its organization.
func (s state) apply(t *testing.T, format string, args ...any) []events.DynamoDBEventRecord {
	t.Helper()
	body := fmt.Sprintf(`{"organizationId":%q,%s}`, s.Org, fmt.Sprintf(format, args...))
	changes, refusals := commerce.ParseMessage([]byte(body))
	if len(refusals) > 0 {
		t.Fatalf("%s: %+v", body, refusals)
	}
	for _, change := range changes {
		id, err := commerce.Identify(change)
		if err != nil {
			t.Fatal(err)
		}
		found := s.Table.ReadRecords(t.Context(), []dynamo.RecordRef{{OrganizationID: s.Org, Kind: change.Kind, ID: id}})[0]
		next, err := commerce.Apply(found.Stored, change, s.Now())
		if err := errors.Join(found.Err, err, s.Table.PutRecord(t.Context(), found.Stored, next)); err != nil {
			t.Fatal(err)
		}
	}
	return s.StreamRecords(t, dynamo.StreamRecord)
}

// product stores a product and returns what the stream has of it.
func (s state) product(t *testing.T, id value.ID, name string) []events.DynamoDBEventRecord {
	t.Helper()
	return s.apply(t, `"kind":"product","op":"put","record":{"id":%q,"name":%q}`, id, name)
}

func (s state) lists() *index.Lists { return index.NewLists(s.Table, dynamo.Shards) }

func (s state) compactor() *compactor.Compactor {
	return compactor.New(s.Table, s.lists().All(), s.Time, s.Leaks.Logger())
}

// handle has the stream's consumers process records.
func (s state) handle(t *testing.T, records []events.DynamoDBEventRecord) {
	t.Helper()
	park, batch, log := s.park(), events.DynamoDBEvent{Records: records}, s.Leaks.Logger()
	_, err := dispatcher.New(s.Table, s.Queues().Deliveries(), park, s.Time, log).Handle(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	s.index(t, records)
}

func (s state) index(t *testing.T, records []events.DynamoDBEventRecord) {
	t.Helper()
	decode := indexer.DecodeFor(s.lists(), dynamo.Stream{}, s.Table)
	jobs := queue.NewIndexJobs(s.Queues().Queue("IndexJobsQueue"))
	_, err := indexer.New(s.Table, decode, s.park(), jobs, s.Leaks.Logger()).Handle(t.Context(), events.DynamoDBEvent{Records: records})
	if err != nil {
		t.Fatal(err)
	}
}

// reindex rebuilds lists, all unless some are named.
func (s state) reindex(t *testing.T, names ...string) {
	t.Helper()
	for _, list := range s.named(names) {
		if err := ops.Rebuild(t.Context(), s.Table, s.compactor(), index.Key{Org: s.Org, List: list}, func(int, int) {}); err != nil {
			t.Fatal(err)
		}
	}
}

func (s state) named(names []string) (lists []*index.List) {
	if len(names) == 0 {
		return s.lists().All()
	}
	for _, name := range names {
		lists = append(lists, s.lists().Named(name))
	}
	return lists
}

// differs returns in what lists differ from the table.
func (s state) differs(t *testing.T, names ...string) (lines []string) {
	t.Helper()
	for _, list := range s.named(names) {
		found, err := ops.Verifier{}.Verify(t.Context(), s.Table, s.Org, list)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			lines = append(lines, list.Name+" "+d.String())
		}
	}
	return lines
}

func (s state) park() queue.Park { return queue.NewPark(s.Queues().Queue(servicetest.ParkQueue)) }

// send puts messages on a queue.
func (s state) send(t *testing.T, queue string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if _, err := s.Queues().Client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(s.Queues().URL(queue)), MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
}

// take takes all messages of a queue.
func (s state) take(t *testing.T, queue string) (all []events.SQSMessage) {
	t.Helper()
	for {
		messages := s.Queues().Receive(t, queue)
		if len(messages) == 0 {
			return all
		}
		s.Queues().Delete(t, queue, messages...)
		all = append(all, messages...)
	}
}

// waiting counts the messages of a queue, those in flight apart.
func (s state) waiting(ctx context.Context, t *testing.T, queue string) (visible, hidden int) {
	t.Helper()
	attributes, err := ops.QueueAttributes(ctx, s.Queues().Client, s.Queues().URL(queue))
	if err != nil {
		t.Fatal(err)
	}
	visible, err = strconv.Atoi(attributes["ApproximateNumberOfMessages"])
	hidden, err2 := strconv.Atoi(attributes["ApproximateNumberOfMessagesNotVisible"])
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return visible, hidden
}

func (s state) scan(queue string, limit int) *ops.QueueScan {
	return ops.NewQueueScan(s.Queues().Client, s.Queues().URL(queue), limit)
}

// remove removes an item as nothing of the service does, without a trace.
func (s state) remove(t *testing.T, keys map[string]events.DynamoDBAttributeValue) {
	t.Helper()
	key := map[string]types.AttributeValue{}
	for name, v := range keys {
		key[name] = &types.AttributeValueMemberS{Value: v.String()}
	}
	name := s.Table.Name()
	if _, err := s.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: key}); err != nil {
		t.Fatal(err)
	}
}
