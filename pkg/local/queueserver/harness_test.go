package queueserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
)

// open opens a server that is closed with the test.
func open(t testing.TB, dir string, config *Config) *Server {
	t.Helper()
	s, err := Open(dir, config)
	if err != nil {
		t.Fatalf("Open(%s): %v", dir, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// harness is the SDK's client of one server, with the calls that tests make most.
type harness struct {
	testing.TB
	*sqs.Client
	server *Server
}

// overWire serves a new server on a loopback port.
func overWire(t testing.TB, config *Config) *harness {
	t.Helper()
	s := open(t, t.TempDir(), config)
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return &harness{t, newClient(web.URL, sdkhttp.New(&http.Transport{})), s}
}

// inBubble connects the SDK to a server without a socket, so that a test can run in a bubble of synctest, where time
// passes only when everything waits for it.
func inBubble(t testing.TB, dir string, config *Config) *harness {
	t.Helper()
	s := open(t, dir, config)
	return &harness{t, newClient("http://queues.test", direct{s.Handler()}), s}
}

// direct is an HTTP client that calls a handler.
type direct struct{ handler http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = r.URL.Host
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// newClient makes a client that tries every call once: a test must see each error.
func newClient(endpoint string, client aws.HTTPClient) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: &endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:   client,
		Retryer:      aws.NopRetryer{},
	})
}

// queue makes a queue from attributes given as name=value and returns its URL.
func (h *harness) queue(name string, attributes ...string) string {
	h.Helper()
	given := map[string]string{}
	for _, a := range attributes {
		k, v, _ := strings.Cut(a, "=")
		given[k] = v
	}
	out, err := h.CreateQueue(h.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: given})
	if err != nil {
		h.Fatalf("CreateQueue(%s, %v): %v", name, given, err)
	}
	return *out.QueueUrl
}

// withDeadLetters makes a queue and its dead-letter queue.
func (h *harness) withDeadLetters(maxReceives int, attributes ...string) (source, dead string) {
	h.Helper()
	dead = h.queue("dead")
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, arn("dead"), maxReceives)
	return h.queue("source", append(attributes, "RedrivePolicy="+policy)...), dead
}

func arn(name string) string { return "arn:aws:sqs:us-east-1:000000000000:" + name }

// send sends bodies in batches, with a group unless it is empty.
func (h *harness) send(queue, group string, bodies ...string) {
	h.Helper()
	for start := 0; start < len(bodies); start += 10 {
		var entries []types.SendMessageBatchRequestEntry
		for i, body := range bodies[start:min(start+10, len(bodies))] {
			e := types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(body)}
			if group != "" {
				e.MessageGroupId = &group
			}
			entries = append(entries, e)
		}
		out, err := h.SendMessageBatch(h.Context(), &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: entries})
		if err != nil {
			h.Fatalf("SendMessageBatch: %v", err)
		}
		if len(out.Failed) > 0 {
			h.Fatalf("SendMessageBatch: %s", *out.Failed[0].Message)
		}
	}
}

// receive asks for up to n messages with everything known of them.
func (h *harness) receive(queue string, n, wait int32) []types.Message {
	h.Helper()
	out, err := h.ReceiveMessage(h.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: n, WaitTimeSeconds: wait,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		h.Fatalf("ReceiveMessage: %v", err)
	}
	return out.Messages
}

// drain receives until nothing comes, without deleting.
func (h *harness) drain(queue string) []types.Message {
	h.Helper()
	var all []types.Message
	for {
		some := h.receive(queue, 10, 0)
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

func (h *harness) delete(queue string, m types.Message) {
	h.Helper()
	if _, err := h.DeleteMessage(h.Context(), &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
		h.Fatalf("DeleteMessage: %v", err)
	}
}

// changeVisibility sets a received message's visibility timeout in seconds.
func (h *harness) changeVisibility(queue string, m types.Message, seconds int32) error {
	_, err := h.ChangeMessageVisibility(h.Context(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds,
	})
	return err
}

// wantCounts compares the visible, the in-flight and the delayed messages of a queue, as "v/f/d".
func (h *harness) wantCounts(queue, want string) {
	h.Helper()
	out, err := h.GetQueueAttributes(h.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{"All"},
	})
	if err != nil {
		h.Fatalf("GetQueueAttributes: %v", err)
	}
	a := out.Attributes
	got := a["ApproximateNumberOfMessages"] + "/" + a["ApproximateNumberOfMessagesNotVisible"] + "/" + a["ApproximateNumberOfMessagesDelayed"]
	if got != want {
		h.Errorf("visible/in flight/delayed of %s: got %s, want %s", queue, got, want)
	}
}

// bodies returns the messages' bodies.
func bodies(messages []types.Message) []string {
	var all []string
	for _, m := range messages {
		all = append(all, *m.Body)
	}
	return all
}

// numbered returns n bodies with a prefix.
func numbered(prefix string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i))
	}
	return all
}
