package dynamo_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/auth/ratelimit/window"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/lab/workload"
)

// answered answers every request at once, without a server.
type answered string

func (a answered) Do(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(string(a))), ContentLength: int64(len(a)),
	}, nil
}

// BenchmarkLease is the CPU of the write of a lease with the day's counts in it
// and without, in turns, so that a busy machine slows both. An instance's first
// request makes such a write, and a busy one's every few. A request of the API
// takes some 300 µs besides.
func BenchmarkLease(b *testing.B) {
	const answer = `{"Attributes":{"winHead":{"N":"1770000000"},"winTotal":{"N":"7"},"itemVersion":{"N":"9"},"b3":{"N":"7"}`
	extend := func(counts string, usage window.Usage) func() {
		client := dynamodb.New(dynamodb.Options{
			HTTPClient: answered(answer + counts + `}}`), Region: "us-east-1",
			Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("k", "s", "")),
		})
		table := dynamo.New(client, "t", time.Now)
		return func() {
			_, written, err := table.ExtendWindow(b.Context(), "subject", window.Extension{Head: 1_770_000_000, Lease: 1, Limit: 600, Usage: usage})
			if err != nil || !written {
				b.Fatal(written, err)
			}
		}
	}
	plain := extend("", window.Usage{})
	counting := extend(`,"requests":{"N":"123"},"clientErrors":{"N":"12"},"rateLimited":{"N":"3"}`, window.Usage{Requests: 1})
	const batch = 1000 // of which each takes many ticks of the measure
	var spent [2]time.Duration
	for b.Loop() {
		for i, write := range []func(){plain, counting} {
			before := workload.OwnCPU().Own
			for range batch {
				write()
			}
			spent[i] += workload.OwnCPU().Own - before
		}
	}
	writes := float64(batch*b.N) * 1e3
	b.ReportMetric(float64(spent[0])/writes, "plain-µs/write")
	b.ReportMetric(float64(spent[1])/writes, "counting-µs/write")
}
