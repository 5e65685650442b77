package eventsource

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/local/queueserver"
)

// A queue is a real one with a visibility timeout of ten minutes, so that what comes again was made visible.
type queue struct {
	client *sqs.Client
	url    string
	arn    string
}

func newQueue(t testing.TB) *queue {
	t.Helper()
	server, err := queueserver.Open(t.TempDir(), &queueserver.Config{Region: region})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("closing the queue server: %v", err)
		}
		web.Close()
	})
	client := sqs.New(sqs.Options{
		HTTPClient: awshttp.NewBuildableClient(), Region: region, BaseEndpoint: aws.String(web.URL),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("work"), Attributes: map[string]string{"VisibilityTimeout": "600"}})
	if err != nil {
		t.Fatal(err)
	}
	return &queue{client: client, url: aws.ToString(made.QueueUrl), arn: "arn:aws:sqs:" + region + ":000000000000:work"}
}

func (q *queue) send(t testing.TB, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if _, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.url), MessageBody: aws.String(body)}); err != nil {
			t.Fatalf("sending %q: %v", body, err)
		}
	}
}

// counts returns how many messages are visible and how many in flight.
func (q *queue) counts(t testing.TB) (visible, inFlight int) {
	t.Helper()
	out, err := q.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(q.url), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		t.Fatal(err)
	}
	number := func(name string) int {
		n, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			t.Fatalf("%s = %q", name, out.Attributes[name])
		}
		return n
	}
	return number("ApproximateNumberOfMessages"), number("ApproximateNumberOfMessagesNotVisible")
}

func (q *queue) holds(t testing.TB, visible, inFlight int) func() bool {
	return func() bool {
		v, f := q.counts(t)
		return v == visible && f == inFlight
	}
}

// A worker stands in for a function of a queue.
type worker struct {
	work func(ctx context.Context, call int, messages []events.SQSMessage) (string, error)

	mu      sync.Mutex
	batches [][]string // the bodies of each call
	raw     [][]byte
}

func (w *worker) function() Function {
	return Function{Name: "worker", Timeout: 10 * time.Second, Invoke: func(ctx context.Context, payload []byte) ([]byte, error) {
		var event events.SQSEvent
		if err := json.Unmarshal(payload, &event); err != nil {
			return nil, err
		}
		var bodies []string
		for _, one := range event.Records {
			bodies = append(bodies, one.Body)
		}
		w.mu.Lock()
		w.batches, w.raw = append(w.batches, bodies), append(w.raw, payload)
		call := len(w.batches)
		w.mu.Unlock()
		if w.work == nil {
			return nil, nil
		}
		answer, err := w.work(ctx, call, event.Records)
		return []byte(answer), err
	}}
}

func (w *worker) seen() [][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.batches)
}

func poll(t testing.TB, q *queue, w *worker, cfg QueueConfig) (stop func()) {
	t.Helper()
	cfg.QueueURL, cfg.QueueARN = q.url, q.arn
	source, err := NewQueue(q.client, w.function(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { source.Run(ctx); close(ended) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

func TestMessagesArriveAsLambdaGivesThemAndAreDeleted(t *testing.T) {
	q := newQueue(t)
	sent, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: aws.String(q.url), MessageBody: aws.String(`{"a":"é<&>"}`), MessageGroupId: aws.String("endpoint-1"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"reason": {DataType: aws.String("String"), StringValue: aws.String("late")},
			"bytes":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{}
	poll(t, q, w, QueueConfig{Host: Host{Region: region}})
	waitUntil(t, "the deletion", q.holds(t, 0, 0))
	waitUntil(t, "the call", func() bool { return len(w.seen()) == 1 })

	var got struct{ Records []map[string]any }
	if err := json.Unmarshal(w.raw[0], &got); err != nil || len(got.Records) != 1 {
		t.Fatalf("the event is %s (%v), want one record", w.raw[0], err)
	}
	one := got.Records[0]
	attributes, _ := one["attributes"].(map[string]any)
	for name, want := range map[string]string{"ApproximateReceiveCount": "1", "MessageGroupId": "endpoint-1"} {
		if attributes[name] != want {
			t.Errorf("attributes[%s] = %v, want %s", name, attributes[name], want)
		}
	}
	for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp", "SenderId"} {
		if text, _ := attributes[name].(string); text == "" {
			t.Errorf("attributes[%s] = %v, want a string", name, attributes[name])
		}
	}
	if handle, _ := one["receiptHandle"].(string); handle == "" {
		t.Errorf("receiptHandle = %v, want a string", one["receiptHandle"])
	}
	delete(one, "attributes")
	delete(one, "receiptHandle")
	want := map[string]any{
		"messageId": aws.ToString(sent.MessageId), "body": `{"a":"é<&>"}`, "md5OfBody": aws.ToString(sent.MD5OfMessageBody),
		"md5OfMessageAttributes": aws.ToString(sent.MD5OfMessageAttributes),
		"messageAttributes": map[string]any{
			"reason": map[string]any{"dataType": "String", "stringValue": "late", "stringListValues": []any{}, "binaryListValues": []any{}},
			"bytes":  map[string]any{"dataType": "Binary", "binaryValue": "AP8=", "stringListValues": []any{}, "binaryListValues": []any{}},
		},
		"eventSource": "aws:sqs", "eventSourceARN": q.arn, "awsRegion": region,
	}
	if diff := cmp.Diff(want, one); diff != "" {
		t.Errorf("message differs from Lambda's (-want +got):\n%s", diff)
	}
}

func TestWhatIsDeletedAfterAnAnswer(t *testing.T) {
	failing := func(ids ...string) string {
		var items []string
		for _, id := range ids {
			items = append(items, fmt.Sprintf(`{"itemIdentifier":%q}`, id))
		}
		return `{"batchItemFailures":[` + strings.Join(items, ",") + `]}`
	}
	tests := []struct {
		name    string
		partial bool
		answer  func(messages []events.SQSMessage) (string, error)
		left    int // of three messages
	}{
		{"no answer", true, func([]events.SQSMessage) (string, error) { return "", nil }, 0},
		{"null", true, func([]events.SQSMessage) (string, error) { return "null", nil }, 0},
		{"no list", true, func([]events.SQSMessage) (string, error) { return "{}", nil }, 0},
		{"null list", true, func([]events.SQSMessage) (string, error) { return `{"batchItemFailures":null}`, nil }, 0},
		{"no failure", true, func([]events.SQSMessage) (string, error) { return failing(), nil }, 0},
		{"one failure", true, func(m []events.SQSMessage) (string, error) { return failing(m[1].MessageId), nil }, 1},
		{"all fail", true, func(m []events.SQSMessage) (string, error) {
			return failing(m[0].MessageId, m[1].MessageId, m[2].MessageId), nil
		}, 3},
		{"unknown id", true, func(m []events.SQSMessage) (string, error) { return failing(m[0].MessageId, "other"), nil }, 3},
		{"empty id", true, func([]events.SQSMessage) (string, error) { return failing(""), nil }, 3},
		{"null id", true, func([]events.SQSMessage) (string, error) {
			return `{"batchItemFailures":[{"itemIdentifier":null}]}`, nil
		}, 3},
		{"wrong key", true, func(m []events.SQSMessage) (string, error) {
			return `{"batchItemFailures":[{"messageId":"` + m[0].MessageId + `"}]}`, nil
		}, 3},
		{"no JSON", true, func([]events.SQSMessage) (string, error) { return "ok", nil }, 3},
		{"function error", true, func([]events.SQSMessage) (string, error) { return "", errors.New("out of memory") }, 3},
		{"failures not asked for", false, func(m []events.SQSMessage) (string, error) { return failing(m[0].MessageId), nil }, 0},
		{"function error, failures not asked for", false, func([]events.SQSMessage) (string, error) { return "", errors.New("x") }, 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			q.send(t, "a", "b", "c")
			w := &worker{work: func(_ context.Context, _ int, m []events.SQSMessage) (string, error) { return test.answer(m) }}
			stop := poll(t, q, w, QueueConfig{ReportBatchItemFailures: test.partial})
			waitUntil(t, "the call", func() bool { return len(w.seen()) == 1 })
			stop()
			if visible, inFlight := q.counts(t); visible != 0 || inFlight != test.left {
				t.Errorf("the queue holds %d visible messages and %d in flight, want 0 and %d", visible, inFlight, test.left)
			}
		})
	}
}

func TestAFailedMessageKeepsTheVisibilityItsHandlerSet(t *testing.T) {
	q := newQueue(t)
	q.send(t, "later")
	w := &worker{work: func(ctx context.Context, call int, messages []events.SQSMessage) (string, error) {
		if call > 1 {
			return "", nil
		}
		_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
			QueueUrl: aws.String(q.url), ReceiptHandle: aws.String(messages[0].ReceiptHandle), VisibilityTimeout: 0,
		})
		return `{"batchItemFailures":[{"itemIdentifier":"` + messages[0].MessageId + `"}]}`, err
	}}
	poll(t, q, w, QueueConfig{ReportBatchItemFailures: true})
	waitUntil(t, "the second call", func() bool { return len(w.seen()) == 2 })
	waitUntil(t, "the deletion", q.holds(t, 0, 0))
}

func TestConcurrencyIsBoundedAndNoMessageWaitsOutsideTheQueue(t *testing.T) {
	q := newQueue(t)
	for i := range 9 {
		q.send(t, strconv.Itoa(i))
	}
	var now, most atomic.Int32
	leave := make(chan struct{})
	w := &worker{work: func(context.Context, int, []events.SQSMessage) (string, error) {
		most.Store(max(most.Load(), now.Add(1)))
		<-leave
		now.Add(-1)
		return "", nil
	}}
	poll(t, q, w, QueueConfig{BatchSize: 2, MaximumConcurrency: 3})
	waitUntil(t, "three calls at a time", func() bool { return now.Load() == 3 })
	if visible, inFlight := q.counts(t); visible != 3 || inFlight != 6 {
		t.Errorf("the queue holds %d visible messages and %d in flight, want 3 and 6", visible, inFlight)
	}
	close(leave)
	waitUntil(t, "the end", q.holds(t, 0, 0))
	if most.Load() != 3 {
		t.Errorf("%d invocations at a time, want 3", most.Load())
	}
}

func TestABatchThatNoEventCanHoldIsSplit(t *testing.T) {
	q := newQueue(t)
	large := strings.Repeat("x", 1<<20-100)
	for range 8 {
		q.send(t, large)
	}
	w := &worker{}
	poll(t, q, w, QueueConfig{})
	waitUntil(t, "the end", q.holds(t, 0, 0))
	if got := w.seen(); len(got) != 2 || len(got[0]) != 5 || len(got[1]) != 3 {
		t.Errorf("%d calls, want two with 5 and 3 messages", len(got))
	}
	for i, payload := range w.raw {
		if len(payload) > maxPayload {
			t.Errorf("event %d has %d bytes, want at most %d", i, len(payload), maxPayload)
		}
	}
}

func TestATimeoutFailsTheBatch(t *testing.T) {
	q := newQueue(t)
	q.send(t, "slow")
	w := &worker{work: func(ctx context.Context, _ int, _ []events.SQSMessage) (string, error) {
		<-ctx.Done()
		return `{"batchItemFailures":[]}`, nil
	}}
	function := w.function()
	function.Timeout = 20 * time.Millisecond
	source, err := NewQueue(q.client, function, QueueConfig{QueueURL: q.url, ReportBatchItemFailures: true})
	if err != nil {
		t.Fatal(err)
	}
	received, err := source.receive(t.Context())
	if err != nil || len(received) != 1 {
		t.Fatalf("receive = %d messages, %v; want one", len(received), err)
	}
	source.process(t.Context(), received)
	if visible, inFlight := q.counts(t); visible != 0 || inFlight != 1 {
		t.Errorf("the queue holds %d visible messages and %d in flight, want 0 and 1", visible, inFlight)
	}
}

func TestAMessageInProgressIsFinishedAndDeleted(t *testing.T) {
	q := newQueue(t)
	q.send(t, "a")
	entered, leave := make(chan struct{}), make(chan struct{})
	w := &worker{work: func(ctx context.Context, _ int, _ []events.SQSMessage) (string, error) {
		close(entered)
		<-leave
		return "", ctx.Err()
	}}
	stop := poll(t, q, w, QueueConfig{})
	<-entered
	ended := make(chan struct{})
	go func() { stop(); close(ended) }()
	close(leave)
	<-ended
	if visible, inFlight := q.counts(t); visible != 0 || inFlight != 0 {
		t.Errorf("the queue holds %d visible messages and %d in flight, want none", visible, inFlight)
	}
}

func TestADeletionThatFailsIsTriedAgain(t *testing.T) {
	q := newQueue(t)
	q.send(t, "a", "b")
	w := &worker{}
	client := &reluctant{QueueClient: q.client, refusals: 2}
	source, err := NewQueue(client, w.function(), QueueConfig{QueueURL: q.url, Host: Host{Wait: (&noWait{}).wait}})
	if err != nil {
		t.Fatal(err)
	}
	received, err := source.receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	source.process(t.Context(), received)
	if visible, inFlight := q.counts(t); visible+inFlight != 0 {
		t.Errorf("the queue holds %d visible messages and %d in flight, want none", visible, inFlight)
	}
}

// reluctant refuses the first deletions: one whole request, then one entry of a request.
type reluctant struct {
	QueueClient
	refusals int
}

func (c *reluctant) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	c.refusals--
	switch c.refusals {
	case 1:
		return nil, errors.New("connection reset")
	case 0:
		refused := in.Entries[0]
		out, err := c.QueueClient.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: in.QueueUrl, Entries: in.Entries[1:]}, o...)
		if err == nil {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: refused.Id, Code: aws.String("InternalError")})
		}
		return out, err
	}
	return c.QueueClient.DeleteMessageBatch(ctx, in, o...)
}

func TestUnusableQueueConfigurationsAreRefused(t *testing.T) {
	for name, cfg := range map[string]QueueConfig{
		"no queue":            {},
		"batch size":          {QueueURL: "q", BatchSize: 11},
		"negative batch size": {QueueURL: "q", BatchSize: -1},
	} {
		if _, err := NewQueue(nil, (&worker{}).function(), cfg); err == nil {
			t.Errorf("%s: NewQueue accepts %+v", name, cfg)
		}
	}
}
