package queueserver_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
)

// batchOf is ten messages of 1 KB in ten groups.
func batchOf() []types.SendMessageBatchRequestEntry {
	body := strings.Repeat("x", 1000)
	var entries []types.SendMessageBatchRequestEntry
	for i := range 10 {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: &body, MessageGroupId: aws.String("tenant-" + strconv.Itoa(i)),
		})
	}
	return entries
}

// receiveAndDelete takes one batch from the queue and returns its size.
func receiveAndDelete(b *testing.B, client *sqs.Client, queue string) int {
	out, err := client.ReceiveMessage(b.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10})
	if err != nil {
		b.Error(err)
	}
	if err != nil || len(out.Messages) == 0 {
		return 0
	}
	var entries []types.DeleteMessageBatchRequestEntry
	for i, m := range out.Messages {
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	if _, err := client.DeleteMessageBatch(b.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &queue, Entries: entries}); err != nil {
		b.Error(err)
	}
	return len(out.Messages)
}

// BenchmarkBatch sends, receives and deletes batches of ten with the SDK over loopback; one operation is one batch.
func BenchmarkBatch(b *testing.B) {
	web := httptest.NewServer(open(b, b.TempDir(), nil).Handler())
	defer web.Close()
	client := newClient(web.URL, sdkhttp.New(&http.Transport{MaxIdleConnsPerHost: 64}))
	queue := (&harness{TB: b, Client: client}).queue("q")
	entries := batchOf()
	var messages atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := client.SendMessageBatch(b.Context(), &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: entries}); err != nil {
				b.Error(err)
			}
			messages.Add(int64(receiveAndDelete(b, client, queue)))
		}
	})
	b.ReportMetric(float64(messages.Load())/b.Elapsed().Seconds(), "messages/s")
}
