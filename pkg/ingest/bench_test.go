//go:build unix

package ingest_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/testkit/cputime"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// counting counts requests on their way to the table, or to nothing.
type counting struct {
	calls atomic.Int64
	empty bool // there is no table: none of the records is stored, and every write succeeds
}

func (c *counting) Do(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	if !c.empty {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := "{}"
	if n := bytes.Count(body, []byte(`"Statement":`)); n > 0 {
		answer = `{"Responses":[{}` + strings.Repeat(",{}", n-1) + `]}`
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(answer)),
	}, nil
}

// BenchmarkNewRecords handles batches as they come when records are sent one
// by one, and an import's message: what this process, which the table is not
// part of, uses of the processor for each record, and the table's calls.
func BenchmarkNewRecords(b *testing.B) {
	for _, row := range []struct{ messages, records int }{{1, 1}, {10, 1}, {1, 500}} {
		b.Run(fmt.Sprintf("%dx%d/table", row.messages, row.records), func(b *testing.B) {
			client, name := dynamotest.Client(b)
			benchmarkNew(b, client.Options(), name, &counting{}, row.messages, row.records)
		})
		b.Run(fmt.Sprintf("%dx%d/none", row.messages, row.records), func(b *testing.B) {
			endpoint := "http://127.0.0.1"
			benchmarkNew(b, dynamodb.Options{
				BaseEndpoint: &endpoint, Region: "us-east-1",
				Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("local", "local", "")),
			}, "none", &counting{empty: true}, row.messages, row.records)
		})
	}
}

func benchmarkNew(b *testing.B, options dynamodb.Options, name string, count *counting, messages, records int) {
	client := dynamodb.New(options, func(o *dynamodb.Options) { o.HTTPClient = count })
	table, org := dynamo.New(client, name, time.Now), value.NewID()
	refused := &rejects{}
	ingester := ingest.New(table, refused, &imports{}, time.Now, slog.New(slog.DiscardHandler))
	b.ReportAllocs()
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		batch := newRecords(org, messages, records)
		b.StartTimer()
		before := cputime.Used()
		response, err := ingester.Handle(b.Context(), batch)
		used += cputime.Used() - before
		if err != nil || len(response.BatchItemFailures)+len(refused.got) > 0 {
			b.Fatal(response, refused.got, err)
		}
	}
	n := float64(b.N * messages * records)
	b.ReportMetric(float64(used.Microseconds())/n, "cpu-µs/record")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "µs/record")
	b.ReportMetric(float64(count.calls.Load())/n, "calls/record")
}

// newRecords is a batch of products that are not stored, of some 350 bytes.
func newRecords(org value.ID, messages, records int) events.SQSEvent {
	var batch events.SQSEvent
	for m := range messages {
		entries := make([]string, records)
		for i := range entries {
			entries[i] = fmt.Sprintf(`"kind":"product","op":"put","version":1,"record":{"id":%q,"name":"Product %d","description":%q,"sku":"SKU-%d","sellingPrice":12.5}`,
				value.NewID(), i, strings.Repeat("what it is ", 10), i)
		}
		body := fmt.Sprintf(`{"organizationId":%q,"records":[{%s}]}`, org, strings.Join(entries, "},{"))
		if records == 1 {
			body = fmt.Sprintf(`{"organizationId":%q,%s}`, org, entries[0])
		}
		batch.Records = append(batch.Records, events.SQSMessage{
			MessageId: fmt.Sprint(m), EventSource: "imports", Body: body, Attributes: map[string]string{"SentTimestamp": "1795243523000"},
		})
	}
	return batch
}
