package tableserver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// BenchmarkPutsWithStream puts b.N new items of about 600 bytes by four writers while a consumer reads the stream and
// trims what it has read, and reports the puts per second of the first and the last 10,000 side by side:
//
//	go test -run '^$' -bench PutsWithStream -benchtime 300000x ./pkg/local/tableserver
func BenchmarkPutsWithStream(b *testing.B) {
	server := start(b, b.TempDir())
	db := client(server)
	arn := createTable(b, db)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var read atomic.Int64
	var consumer sync.WaitGroup
	consumer.Go(func() { consume(ctx, b, server, db, arn, &read) })

	window := min(10_000, b.N)
	started := time.Now()
	var first, last time.Time
	var next atomic.Int64
	var writers sync.WaitGroup
	b.ResetTimer()
	for range 4 {
		writers.Go(func() {
			for {
				i := int(next.Add(1))
				if i > b.N {
					return
				}
				if i == window+1 {
					first = time.Now()
				}
				if i == b.N-window+1 {
					last = time.Now()
				}
				item := map[string]types.AttributeValue{"v": &types.AttributeValueMemberS{Value: strings.Repeat("x", 500)}}
				if err := put(ctx, db, fmt.Sprintf("ORG#%d", i), item); err != nil {
					b.Errorf("put %d: %v", i, err)
					return
				}
			}
		})
	}
	writers.Wait()
	ended := time.Now()
	b.StopTimer()
	if first.IsZero() {
		first = ended
	}
	for deadline := time.Now().Add(time.Minute); read.Load() < int64(b.N); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("the consumer read %d of %d records", read.Load(), b.N)
		}
	}
	cancel()
	consumer.Wait()
	b.ReportMetric(float64(window)/first.Sub(started).Seconds(), "first-puts/s")
	b.ReportMetric(float64(window)/ended.Sub(last).Seconds(), "last-puts/s")
	b.ReportMetric(float64(b.N)/ended.Sub(started).Seconds(), "puts/s")
}

// consume reads the stream to its end again and again and trims what it has read four times a second.
func consume(ctx context.Context, b *testing.B, server *Server, db *dynamodb.Client, arn string, read *atomic.Int64) {
	options := db.Options()
	streams := dynamodbstreams.New(dynamodbstreams.Options{Region: options.Region, BaseEndpoint: options.BaseEndpoint, Credentials: options.Credentials})
	described, err := streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(arn)})
	if err != nil {
		b.Errorf("describing the stream: %v", err)
		return
	}
	begun, err := streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: aws.String(arn), ShardId: described.StreamDescription.Shards[0].ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		b.Errorf("beginning to read the stream: %v", err)
		return
	}
	iterator, trimmed := begun.ShardIterator, time.Now()
	for {
		page, err := streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			b.Errorf("reading the stream: %v", err)
			return
		}
		iterator = page.NextShardIterator
		if n := len(page.Records); n > 0 {
			read.Add(int64(n))
			if time.Since(trimmed) > 250*time.Millisecond {
				if err := server.Trim(ctx, table, *page.Records[n-1].Dynamodb.SequenceNumber); err != nil && ctx.Err() == nil {
					b.Errorf("trimming: %v", err)
					return
				}
				trimmed = time.Now()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// BenchmarkSweep sweeps a table of 20,000 items of about 600 bytes of which 10 have expired, b.N times, and reports the
// longest that another request waited meanwhile:
//
//	go test -run '^$' -bench Sweep -benchtime 1x ./pkg/local/tableserver
func BenchmarkSweep(b *testing.B) {
	server := start(b, b.TempDir())
	db := client(server)
	createTable(b, db)
	now := time.Now()
	fill(b, db, 20_000, now.Add(time.Hour))
	for name, sweeper := range sweepers(server, db) {
		b.Run(name, func(b *testing.B) {
			var longest time.Duration
			for range b.N {
				b.StopTimer()
				for i := range 10 {
					if err := put(b.Context(), db, fmt.Sprintf("expired-%d", i), map[string]types.AttributeValue{ttl: epoch(now)}); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				wait := longestWait(b, db, func() {
					if n, err := sweeper.Sweep(b.Context(), now); err != nil || n != 10 {
						b.Errorf("the sweep deleted %d, %v; want 10", n, err)
					}
				})
				longest = max(longest, wait)
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-get")
		})
	}
}

// longestWait gets an item again and again while something else is done.
func longestWait(b *testing.B, db *dynamodb.Client, meanwhile func()) (longest time.Duration) {
	b.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		meanwhile()
	}()
	for {
		began := time.Now()
		if _, err := db.GetItem(b.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key("filled-1")}); err != nil {
			b.Errorf("getting an item beside a sweep: %v", err)
			return longest
		}
		longest = max(longest, time.Since(began))
		select {
		case <-done:
			return longest
		default:
		}
	}
}
