package eventsource

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/testkit/cputime"
)

// inBothForms measures a function that takes the event's type, and one that
// takes its JSON text, as in a process of its own.
func inBothForms(b *testing.B, measure func(b *testing.B, form func(Function) Function)) {
	b.Run("typed", func(b *testing.B) { measure(b, func(f Function) Function { return f }) })
	b.Run("json", func(b *testing.B) {
		measure(b, func(f Function) Function {
			handler := any(f.Changes)
			if f.Changes == nil {
				handler = f.Messages
			}
			f.Invoke = func(ctx context.Context, payload []byte) ([]byte, error) {
				return lambda.NewHandler(handler).Invoke(ctx, payload)
			}
			f.Changes, f.Messages = nil, nil
			return f
		})
	})
}

func unused(context.Context, []byte) ([]byte, error) { panic("called with JSON") }

// BenchmarkStreamRecord measures a change of the table on its way to two
// functions, of which the one wants every other and the other a quarter.
func BenchmarkStreamRecord(b *testing.B) {
	inBothForms(b, func(b *testing.B, form func(Function) Function) {
		made := newTable(b)
		fill(b, made)
		var got atomic.Int64
		function := form(Function{Name: "f", Invoke: unused, Changes: func(_ context.Context, event events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
			got.Add(int64(len(event.Records)))
			return events.DynamoDBEventResponse{}, nil
		}})
		feed := made.feed(b, FeedConfig{})
		b.ReportAllocs()
		b.ResetTimer()
		before := cputime.Used()
		for i, pattern := range []string{`{"dynamodb":{"NewImage":{"t":{"S":["0","1"]}}}}`, `{"dynamodb":{"NewImage":{"t":{"S":["0"]}}}}`} {
			run(b, feed, function, StreamConfig{Checkpoints: filepath.Join(b.TempDir(), strconv.Itoa(i)), Filters: []string{pattern}, ReportBatchItemFailures: true})
		}
		want := int64((b.N+3)/4*2 + (b.N+2)/4)
		waitUntil(b, "all records", func() bool { return got.Load() == want })
		b.ReportMetric(float64((cputime.Used()-before).Microseconds())/float64(b.N), "cpu-µs/op")
	})
}

// fill puts b.N items of a kilobyte and of four types into the table.
func fill(b *testing.B, made *table) {
	for first := 0; first < b.N; first += 25 {
		var requests []types.WriteRequest
		for i := first; i < min(first+25, b.N); i++ {
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
				"PK":  &types.AttributeValueMemberS{Value: fmt.Sprint(i)},
				"t":   &types.AttributeValueMemberS{Value: strconv.Itoa(i % 4)},
				"rev": &types.AttributeValueMemberN{Value: "1767225600000"},
				"doc": &types.AttributeValueMemberS{Value: `{"items":[` + strings.Repeat(`{"name":"Tea","quantity":2},`, 35) + `]}`},
			}}})
		}
		if _, err := made.db.BatchWriteItem(b.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"commerce": requests}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkQueueMessage measures a message on its way from a queue to a
// function, the queue server included.
func BenchmarkQueueMessage(b *testing.B) {
	inBothForms(b, func(b *testing.B, form func(Function) Function) {
		q := newQueue(b)
		body := `{"organizationId":"0197a3b4-0000-7000-8000-000000000001","text":"` + strings.Repeat("x", 500) + `"}`
		for first := 0; first < b.N; first += 10 {
			var entries []sqstypes.SendMessageBatchRequestEntry
			for i := first; i < min(first+10, b.N); i++ {
				entries = append(entries, sqstypes.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(body), MessageGroupId: aws.String(fmt.Sprint(i % 7))})
			}
			if _, err := q.client.SendMessageBatch(b.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String(q.url), Entries: entries}); err != nil {
				b.Fatal(err)
			}
		}
		var got atomic.Int64
		function := form(Function{Name: "f", Timeout: 3 * time.Second, Invoke: unused, Messages: func(_ context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
			got.Add(int64(len(event.Records)))
			return events.SQSEventResponse{}, nil
		}})
		source, err := NewQueue(q.client, function, QueueConfig{QueueURL: q.url, ReportBatchItemFailures: true})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		b.ReportAllocs()
		b.ResetTimer()
		before := cputime.Used()
		go source.Run(ctx)
		waitUntil(b, "all messages", func() bool { return got.Load() == int64(b.N) })
		b.ReportMetric(float64((cputime.Used()-before).Microseconds())/float64(b.N), "cpu-µs/op")
	})
}
