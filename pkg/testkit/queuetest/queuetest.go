// Package queuetest gives tests real queues: a local queue server for each
// test, with the queues that the template declares.
package queuetest

import (
	"errors"
	"maps"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/queueserver"
	"github.com/commerce-integration/service/pkg/local/template"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// Queues are the queues of one test.
type Queues struct {
	Client    *sqs.Client
	urls      map[string]provision.Queue
	elsewhere bool // on another server than ours
	server    *queueserver.Server
}

// Start starts a queue server with the template's queues; it ends with the
// test. Where AWS_ENDPOINT_URL_SQS names a server, the queues are made there,
// under names of the test's own. With -short the test is skipped: it needs a
// server.
func Start(t testing.TB) *Queues {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a queue server")
	}
	queues, endpoint := dynamotest.Model(t).Queues, os.Getenv("AWS_ENDPOINT_URL_SQS")
	elsewhere := endpoint != ""
	var server *queueserver.Server
	if elsewhere {
		queues = renamed(queues, value.NewRandomID().String())
	} else {
		server, endpoint = startServer(t)
	}
	client := sqs.New(sqs.Options{
		HTTPClient:   sdkhttp.New(awshttp.NewBuildableClient().GetTransport()),
		BaseEndpoint: &endpoint, Region: "us-east-1",
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("local", "local", "")),
	})
	urls, err := provision.Queues(t.Context(), client, queues)
	if err != nil {
		t.Fatal(err)
	}
	return &Queues{Client: client, urls: urls, elsewhere: elsewhere, server: server}
}

func startServer(t testing.TB) (server *queueserver.Server, endpoint string) {
	t.Helper()
	server, err := queueserver.Open(t.TempDir(), &queueserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		listener.Close()
	})
	return server, listener.URL
}

// renamed returns the queues, by their logical ids, with names of their own.
func renamed(queues map[string]template.Queue, suffix string) map[string]template.Queue {
	named := maps.Clone(queues)
	for id, q := range named {
		q.LogicalID = id + "-" + suffix
		named[id] = q
	}
	return named
}

// Queue returns the queue of the template's logical id.
func (q *Queues) Queue(id string) *queue.Queue { return queue.New(q.Client, q.URL(id)) }

// URL is the queue's.
func (q *Queues) URL(id string) string { return q.urls[id].URL }

// Deliveries returns the deliveries in their two queues.
func (q *Queues) Deliveries() queue.Deliveries {
	return queue.NewDeliveries(q.Queue("DeliveriesQueue"), q.Queue("SlowDeliveriesQueue"))
}

// Receive takes the messages that are visible in a queue now, as the event source hands it
// to a function: up to ten messages, none when the queue has none.
func (q *Queues) Receive(t testing.TB, id string) []events.SQSMessage {
	t.Helper()
	out, err := q.Client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(q.urls[id].URL), MaxNumberOfMessages: 10,
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	messages := make([]events.SQSMessage, len(out.Messages))
	for i, m := range out.Messages {
		messages[i] = events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
			MessageAttributes: map[string]events.SQSMessageAttribute{}, EventSource: "aws:sqs", EventSourceARN: q.urls[id].ARN,
		}
		for name, v := range m.MessageAttributes {
			messages[i].MessageAttributes[name] = events.SQSMessageAttribute{StringValue: v.StringValue, DataType: *v.DataType}
		}
	}
	return messages
}

// Await receives until there are messages, at most for a minute.
func (q *Queues) Await(t testing.TB, id string) []events.SQSMessage {
	t.Helper()
	const patience = time.Minute
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if messages := q.Receive(t, id); len(messages) > 0 {
			return messages
		}
	}
	t.Fatalf("%s: no message within %s", id, patience)
	return nil
}

// Release ends the visibility timeout of every message of a queue. With another
// server than ours the test is skipped.
func (q *Queues) Release(t testing.TB, id string) {
	t.Helper()
	if q.elsewhere {
		t.Skip("needs our queue server")
	}
	if _, err := q.server.Release(q.URL(id)); err != nil {
		t.Fatal(err)
	}
}

// Delete deletes messages that a function has handled. AWS takes the handle of
// a message that is gone or was received again, which ElasticMQ refuses.
func (q *Queues) Delete(t testing.TB, id string, messages ...events.SQSMessage) {
	t.Helper()
	for _, m := range messages {
		_, err := q.Client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{
			QueueUrl: aws.String(q.urls[id].URL), ReceiptHandle: &m.ReceiptHandle,
		})
		if outdated := (*types.ReceiptHandleIsInvalid)(nil); q.elsewhere && errors.As(err, &outdated) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
