package queue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/queuetest"
)

func drain(t *testing.T, q *queuetest.Queues, id string, want int) map[string]events.SQSMessage {
	t.Helper()
	got := map[string]events.SQSMessage{}
	for len(got) < want {
		for _, m := range q.Await(t, id) {
			if _, twice := got[m.Body]; twice {
				t.Errorf("%.40q came twice", m.Body)
			}
			got[m.Body] = m
			q.Delete(t, id, m)
		}
	}
	if more := q.Receive(t, id); len(more) > 0 {
		t.Errorf("%d messages more than %d", len(more), want)
	}
	return got
}

func TestEveryMessageIsSentOnce(t *testing.T) {
	q := queuetest.Start(t)
	var messages []queue.Message
	for i := range 25 {
		messages = append(messages, queue.Message{Body: fmt.Sprintf("message %d", i), Group: fmt.Sprintf("group-%d", i%3), Attributes: map[string]string{"n": fmt.Sprint(i)}})
	}
	if err := q.Queue("DeliveriesQueue").Send(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	got := drain(t, q, "DeliveriesQueue", len(messages))
	for _, m := range messages {
		received, ok := got[m.Body]
		if !ok || received.Attributes["MessageGroupId"] != m.Group || *received.MessageAttributes["n"].StringValue != m.Attributes["n"] {
			t.Errorf("%q: received %+v", m.Body, received)
		}
	}
}

func TestLargeMessagesAreSentInBatchesThatFit(t *testing.T) {
	q := queuetest.Start(t)
	var messages []queue.Message
	for i := range 6 {
		messages = append(messages, queue.Message{Body: fmt.Sprint(i) + strings.Repeat("x", 400<<10)})
	}
	if err := q.Queue("DeliveriesQueue").Send(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	drain(t, q, "DeliveriesQueue", len(messages))
}

func TestDelayedMessageComesLater(t *testing.T) {
	q := queuetest.Start(t)
	start := time.Now()
	if err := q.Queue("DeliveriesQueue").Send(t.Context(), queue.Message{Body: "later", Group: "g", Delay: 900 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	q.Await(t, "DeliveriesQueue")
	if took := time.Since(start); took < 900*time.Millisecond {
		t.Errorf("came after %s", took)
	}
}

func TestHiddenMessageComesAgain(t *testing.T) {
	q := queuetest.Start(t)
	deliveries := q.Queue("DeliveriesQueue")
	if err := deliveries.Send(t.Context(), queue.Message{Body: "again"}); err != nil {
		t.Fatal(err)
	}
	first := q.Await(t, "DeliveriesQueue")[0]
	hidden := time.Now()
	if err := deliveries.ChangeVisibility(t.Context(), queue.VisibilityChange{Receipt: first.ReceiptHandle, For: 300 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	again := q.Await(t, "DeliveriesQueue")[0]
	if again.MessageId != first.MessageId || time.Since(hidden) < 300*time.Millisecond {
		t.Errorf("got %s after %s, want %s", again.MessageId, time.Since(hidden), first.MessageId)
	}
}

func TestWhatTheQueueRefusesIsNoPassingFault(t *testing.T) {
	q := queuetest.Start(t)
	for name, err := range map[string]error{
		"empty body":       q.Queue("DeliveriesQueue").Send(t.Context(), queue.Message{}),
		"too large":        q.Queue("DeliveriesQueue").Send(t.Context(), queue.Message{Body: strings.Repeat("x", queue.MaxMessage+1)}),
		"no such queue":    queue.New(q.Client, "http://127.0.0.1/000000000000/none").Send(t.Context(), queue.Message{Body: "x"}),
		"a rubbish handle": q.Queue("DeliveriesQueue").ChangeVisibility(t.Context(), queue.VisibilityChange{Receipt: "rubbish", For: time.Second}),
	} {
		t.Run(name, func(t *testing.T) {
			if err == nil || fault.Is(err, fault.Unavailable) {
				t.Errorf("%v, want an error that stays", err)
			}
		})
	}
}

func TestUnreachableQueueIsAPassingFault(t *testing.T) {
	client := sqs.New(sqs.Options{
		BaseEndpoint: aws.String("http://127.0.0.1:1"), Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	q := queue.New(client, "http://127.0.0.1:1/000000000000/q")
	if err := q.Send(t.Context(), queue.Message{Body: "x"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Send: %v, want a fault of kind Unavailable", err)
	}
}

func TestParkedRecordIsKeptWhole(t *testing.T) {
	q := queuetest.Start(t)
	for name, doc := range map[string]string{"small": "{}", "larger than a message": strings.Repeat(`{"a":"b"},`, 120_000)} {
		t.Run(name, func(t *testing.T) {
			record := events.DynamoDBEventRecord{EventID: "1", EventName: "MODIFY", Change: events.DynamoDBStreamRecord{
				SequenceNumber: "7", NewImage: map[string]events.DynamoDBAttributeValue{"doc": events.NewStringAttribute(doc)},
			}}
			if err := queue.NewPark(q.Queue("ParkQueue")).Park(t.Context(), "dispatcher", record, errors.New("broken\x00 \xff")); err != nil {
				t.Fatal(err)
			}
			m := q.Await(t, "ParkQueue")[0]
			q.Delete(t, "ParkQueue", m)
			attributes := map[string]string{}
			for name, v := range m.MessageAttributes {
				attributes[name] = *v.StringValue
			}
			consumer, got, err := queue.Unpark(m.Body, attributes)
			if err != nil || consumer != "dispatcher" || got.Change.SequenceNumber != "7" || got.Change.NewImage["doc"].String() != doc {
				t.Errorf("unparked %q, %v", consumer, err)
			}
			if by, cause := queue.ParkedBy(attributes); by != "dispatcher" || cause != "broken " {
				t.Errorf("parked by %q for %q", by, cause)
			}
		})
	}
}

func TestRefusedRecordsTellWhatIsWrong(t *testing.T) {
	q := queuetest.Start(t)
	refusals := []commerce.Refusal{
		{Reason: "validation_failed", Field: "record.name", Message: "is required", Body: []byte(`{"a":1}`)},
		{Reason: "malformed_json", Message: "is not JSON", Body: []byte(strings.Repeat("x", queue.MaxMessage-30))},
	}
	if err := queue.NewRejects(q.Queue("RecordsDLQ")).Reject(t.Context(), "m-1", refusals); err != nil {
		t.Fatal(err)
	}
	got := drain(t, q, "RecordsDLQ", 2)
	attributes := map[string]string{}
	for name, v := range got[`{"a":1}`].MessageAttributes {
		attributes[name] = *v.StringValue
	}
	for name, want := range map[string]string{"reason": "validation_failed", "field": "record.name", "message": "is required", "sourceMessageId": "m-1"} {
		if v := attributes[name]; v != want {
			t.Errorf("attribute %s = %q, want %q", name, v, want)
		}
	}
	want := queue.Rejection{Reason: "validation_failed", Field: "record.name", Message: "is required", SourceMessageID: "m-1"}
	if got := queue.RejectionOf(attributes); got != want {
		t.Errorf("read as %+v, want %+v", got, want)
	}
	if len(got) != 2 {
		t.Errorf("%d messages, want the large one too", len(got))
	}
}
