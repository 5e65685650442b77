package eventsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/local/queueserver"
)

// A queue is a real one, in a bubble of its own time, with a visibility timeout of ten minutes.
type queue struct {
	*testing.T
	*sqs.Client
	url string
}

// direct is an HTTP client that calls a handler.
type direct struct{ handler http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

func withQueue(t *testing.T, test func(q *queue)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		server, err := queueserver.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Errorf("closing the queue server: %v", err)
			}
		})
		client := sqs.New(sqs.Options{
			HTTPClient: direct{server.Handler()}, Region: region, BaseEndpoint: aws.String("http://queues.test"),
			Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		})
		made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("work"), Attributes: map[string]string{"VisibilityTimeout": "600"}})
		if err != nil {
			t.Fatal(err)
		}
		test(&queue{t, client, *made.QueueUrl})
	})
}

func (q *queue) send(bodies ...string) {
	q.Helper()
	for _, body := range bodies {
		if _, err := q.SendMessage(q.Context(), &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body}); err != nil {
			q.Fatalf("sending %q: %v", body, err)
		}
	}
}

// holds compares how many messages are visible and how many in flight.
func (q *queue) holds(want string) {
	q.Helper()
	out, err := q.GetQueueAttributes(q.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		q.Fatal(err)
	}
	if got := out.Attributes["ApproximateNumberOfMessages"] + "/" + out.Attributes["ApproximateNumberOfMessagesNotVisible"]; got != want {
		q.Errorf("the queue holds %s messages, visible and in flight; want %s", got, want)
	}
}

// A worker stands in for a function of a queue.
type worker struct {
	work func(ctx context.Context, call int, messages []events.SQSMessage) (string, error)

	mu      sync.Mutex
	batches []int // sizes
	raw     [][]byte
}

func (w *worker) invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var event events.SQSEvent
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.batches, w.raw = append(w.batches, len(event.Records)), append(w.raw, payload)
	call := len(w.batches)
	w.mu.Unlock()
	if w.work == nil {
		return nil, nil
	}
	answer, err := w.work(ctx, call, event.Records)
	return []byte(answer), err
}

// poll runs a source until the returned function is called, which waits for its end, and waits until it has nothing to do.
func (q *queue) poll(client QueueClient, w *worker, cfg QueueConfig) (stop func()) {
	q.Helper()
	cfg.QueueURL, cfg.QueueARN, cfg.Region = q.url, "arn:work", region
	source := NewQueue(client, Function{Name: "worker", Timeout: 10 * time.Second, Invoke: w.invoke}, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { source.Run(ctx); close(ended) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	q.Cleanup(stop)
	synctest.Wait()
	return stop
}

func TestMessagesArriveAsLambdaGivesThemAndAreDeleted(t *testing.T) {
	withQueue(t, func(q *queue) {
		sent, err := q.SendMessage(q.Context(), &sqs.SendMessageInput{
			QueueUrl: &q.url, MessageBody: aws.String(`{"a":"é<&>"}`), MessageGroupId: aws.String("endpoint-1"),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"reason": {DataType: aws.String("String"), StringValue: aws.String("late")},
				"bytes":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
			},
		})
		if err != nil {
			q.Fatal(err)
		}
		w := &worker{}
		q.poll(q, w, QueueConfig{})
		q.holds("0/0")
		var got struct{ Records []map[string]any }
		if err := json.Unmarshal(w.raw[0], &got); err != nil || len(got.Records) != 1 {
			q.Fatalf("the event is %s (%v), want one record", w.raw[0], err)
		}
		one := got.Records[0]
		if handle, _ := one["receiptHandle"].(string); handle == "" {
			q.Errorf("receiptHandle = %v, want a string", one["receiptHandle"])
		}
		delete(one, "receiptHandle")
		now := fmt.Sprint(time.Now().UnixMilli())
		want := map[string]any{
			"messageId": *sent.MessageId, "body": `{"a":"é<&>"}`, "md5OfBody": *sent.MD5OfMessageBody,
			"md5OfMessageAttributes": aws.ToString(sent.MD5OfMessageAttributes),
			"attributes": map[string]any{
				"ApproximateReceiveCount": "1", "MessageGroupId": "endpoint-1", "SenderId": "000000000000",
				"SentTimestamp": now, "ApproximateFirstReceiveTimestamp": now,
			},
			"messageAttributes": map[string]any{
				"reason": map[string]any{"dataType": "String", "stringValue": "late", "stringListValues": []any{}, "binaryListValues": []any{}},
				"bytes":  map[string]any{"dataType": "Binary", "binaryValue": "AP8=", "stringListValues": []any{}, "binaryListValues": []any{}},
			},
			"eventSource": "aws:sqs", "eventSourceARN": "arn:work", "awsRegion": region,
		}
		if diff := cmp.Diff(want, one); diff != "" {
			q.Errorf("message differs from Lambda's (-want +got):\n%s", diff)
		}
	})
}

func TestWhatIsDeletedAfterAnAnswer(t *testing.T) {
	const partial = true
	for name, test := range map[string]struct {
		partial bool
		answer  string // <0> to <2> are the ids of the messages
		err     error
		left    string // of three messages
	}{
		"no answer":          {partial, "", nil, "0/0"},
		"null":               {partial, "null", nil, "0/0"},
		"no list":            {partial, "{}", nil, "0/0"},
		"null list":          {partial, `{"batchItemFailures":null}`, nil, "0/0"},
		"no failure":         {partial, `{"batchItemFailures":[]}`, nil, "0/0"},
		"one failure":        {partial, `{"batchItemFailures":[{"itemIdentifier":"<1>"}]}`, nil, "0/1"},
		"all fail":           {partial, `{"batchItemFailures":[{"itemIdentifier":"<0>"},{"itemIdentifier":"<1>"},{"itemIdentifier":"<2>"}]}`, nil, "0/3"},
		"unknown id":         {partial, `{"batchItemFailures":[{"itemIdentifier":"<0>"},{"itemIdentifier":"other"}]}`, nil, "0/3"},
		"empty id":           {partial, `{"batchItemFailures":[{"itemIdentifier":""}]}`, nil, "0/3"},
		"null id":            {partial, `{"batchItemFailures":[{"itemIdentifier":null}]}`, nil, "0/3"},
		"wrong key":          {partial, `{"batchItemFailures":[{"messageId":"<0>"}]}`, nil, "0/3"},
		"no JSON":            {partial, "ok", nil, "0/3"},
		"function error":     {partial, "", errors.New("out of memory"), "0/3"},
		"failures not asked": {!partial, `{"batchItemFailures":[{"itemIdentifier":"<0>"}]}`, nil, "0/0"},
		"an error not asked": {!partial, "", errors.New("x"), "0/3"},
	} {
		t.Run(name, func(t *testing.T) {
			withQueue(t, func(q *queue) {
				q.send("a", "b", "c")
				w := &worker{work: func(_ context.Context, _ int, m []events.SQSMessage) (string, error) {
					ids := strings.NewReplacer("<0>", m[0].MessageId, "<1>", m[1].MessageId, "<2>", m[2].MessageId)
					return ids.Replace(test.answer), test.err
				}}
				q.poll(q, w, QueueConfig{ReportBatchItemFailures: test.partial})
				q.holds(test.left)
			})
		})
	}
}

func TestAFailedMessageKeepsTheVisibilityItsHandlerSet(t *testing.T) {
	withQueue(t, func(q *queue) {
		q.send("later")
		w := &worker{work: func(ctx context.Context, call int, messages []events.SQSMessage) (string, error) {
			if call > 1 {
				return "", nil
			}
			_, err := q.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
				QueueUrl: &q.url, ReceiptHandle: &messages[0].ReceiptHandle, VisibilityTimeout: 0,
			})
			return `{"batchItemFailures":[{"itemIdentifier":"` + messages[0].MessageId + `"}]}`, err
		}}
		q.poll(q, w, QueueConfig{ReportBatchItemFailures: true})
		if q.holds("0/0"); len(w.batches) != 2 {
			q.Errorf("%d calls, want a second one at once", len(w.batches))
		}
	})
}

func TestConcurrencyIsBoundedAndNoMessageWaitsOutsideTheQueue(t *testing.T) {
	withQueue(t, func(q *queue) {
		q.send(numbered(0, 9)...)
		leave := make(chan struct{})
		w := &worker{work: func(context.Context, int, []events.SQSMessage) (string, error) { <-leave; return "", nil }}
		q.poll(q, w, QueueConfig{BatchSize: 2, MaximumConcurrency: 3})
		if q.holds("3/6"); len(w.batches) != 3 {
			q.Errorf("%d calls at a time, want 3", len(w.batches))
		}
		close(leave)
		synctest.Wait()
		q.holds("0/0")
	})
}

func TestABatchThatNoEventCanHoldIsSplit(t *testing.T) {
	withQueue(t, func(q *queue) {
		q.send(slices.Repeat([]string{strings.Repeat("x", 1<<20-100)}, 8)...)
		w := &worker{}
		q.poll(q, w, QueueConfig{})
		if q.holds("0/0"); !slices.Equal(w.batches, []int{5, 3}) {
			q.Errorf("calls with %v messages, want 5 and 3", w.batches)
		}
		for i, payload := range w.raw {
			if len(payload) > maxPayload {
				q.Errorf("event %d has %d bytes, want at most %d", i, len(payload), maxPayload)
			}
		}
	})
}

func TestATimeoutFailsTheBatch(t *testing.T) {
	withQueue(t, func(q *queue) {
		q.send("slow")
		q.poll(q, &worker{work: func(ctx context.Context, _ int, _ []events.SQSMessage) (string, error) {
			<-ctx.Done()
			return `{"batchItemFailures":[]}`, nil
		}}, QueueConfig{ReportBatchItemFailures: true})
		pass(time.Minute)
		q.holds("0/1")
	})
}

func TestAMessageInProgressIsFinishedAndDeleted(t *testing.T) {
	withQueue(t, func(q *queue) {
		q.send("a")
		leave := make(chan struct{})
		stop := q.poll(q, &worker{work: func(ctx context.Context, _ int, _ []events.SQSMessage) (string, error) {
			<-leave
			return "", ctx.Err()
		}}, QueueConfig{})
		time.AfterFunc(time.Second, func() { close(leave) })
		stop()
		q.holds("0/0")
	})
}

func TestAFailedRequestIsTriedAgain(t *testing.T) {
	withQueue(t, func(q *queue) {
		q.send("a", "b")
		q.poll(&reluctant{QueueClient: q}, &worker{}, QueueConfig{})
		pass(time.Second)
		q.holds("0/0")
	})
}

// reluctant refuses the first receive, a whole deletion, and one entry of the next.
type reluctant struct {
	QueueClient
	receives, deletions int
}

func (c *reluctant) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if c.receives++; c.receives == 1 {
		return nil, errors.New("connection reset")
	}
	return c.QueueClient.ReceiveMessage(ctx, in, o...)
}

func (c *reluctant) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	switch c.deletions++; c.deletions {
	case 1:
		return nil, errors.New("connection reset")
	case 2:
		refused := in.Entries[0]
		out, err := c.QueueClient.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: in.QueueUrl, Entries: in.Entries[1:]}, o...)
		if err == nil {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: refused.Id, Code: aws.String("InternalError")})
		}
		return out, err
	}
	return c.QueueClient.DeleteMessageBatch(ctx, in, o...)
}
