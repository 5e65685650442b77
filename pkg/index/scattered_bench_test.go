package index_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/indexer"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/webhook"
)

type noStarts struct{}

func (noStarts) Send(context.Context, value.ID, string) error { return nil }

// BenchmarkScatteredEvents appends the events of 300 organizations in turn, in
// batches of 1,000 stream records, to a table that answers after 10 ms on average.
// An event is a record, its delivery, and the outcome of that. The first batches,
// with which the tails begin, are not counted.
func BenchmarkScatteredEvents(b *testing.B) {
	const perBatch, uncounted, counted = 333, 3, 18
	client, name := dynamotest.Client(b)
	slow := faults.Config{Meter: faults.NewMeter(), Delay: 10 * time.Millisecond}
	table := dynamo.New(dynamodb.New(client.Options(), slow.Install), name, time.Now)
	lists := index.NewLists(table, dynamo.Shards)
	writer := indexer.New(table, scattered(lists), unparked{b}, noStarts{}, slog.New(slog.DiscardHandler))
	event := 0
	handle := func(batches int) {
		for range batches {
			var batch events.DynamoDBEvent
			for range perBatch {
				for _, change := range []string{"record", "delivery", "outcome"} {
					batch.Records = append(batch.Records, events.DynamoDBEventRecord{EventID: strconv.Itoa(event), EventName: change})
				}
				event++
			}
			if answer, err := writer.Handle(b.Context(), batch); err != nil || len(answer.BatchItemFailures) > 0 {
				b.Fatalf("%v, %v", answer, err)
			}
		}
	}
	handle(uncounted)
	slow.Meter.Reset()
	for b.Loop() {
		handle(counted)
	}
	units, n := slow.Meter.Total(), float64(b.N*counted*perBatch)
	b.ReportMetric(n/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(units.Calls)/n, "calls/event")
	b.ReportMetric(units.Writes/n, "WCU/event")
	b.ReportMetric(units.Reads/n, "RCU/event")
}

// scattered decodes the changes of events by their number.
func scattered(lists *index.Lists) indexer.Decoder {
	var orgs [300]value.ID
	for i := range orgs {
		orgs[i] = value.NewRandomID()
	}
	products := lists.Records[commerce.KindProduct]
	return func(_ context.Context, r *events.DynamoDBEventRecord) ([]indexer.ListChange, error) {
		n, err := strconv.Atoi(r.EventID)
		org, at := orgs[n%len(orgs)], value.TimeOf(time.Now())
		id := value.DeriveID(org, r.EventID)
		list, document := products, products.Schema.Build(id, 0).Document(int64(at), 0)
		if r.EventName != "record" {
			list, document = lists.Deliveries, webhook.DeliveryDocument(&webhook.Delivery{ID: id, CreatedAt: at, UpdatedAt: at}, 0)
		}
		return indexer.Changes(org, list, int64(at), nil, &document), err
	}
}
