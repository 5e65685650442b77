package queueserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

func TestQueueURLHasTheHostOfTheRequest(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("orders")
	if !strings.HasPrefix(queue, "http://127.0.0.1:") || !strings.HasSuffix(queue, "/000000000000/orders") {
		t.Errorf("queue URL: got %s", queue)
	}
	out, err := h.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	if err != nil || out.Attributes["QueueArn"] != "arn:aws:sqs:us-east-1:000000000000:orders" {
		t.Errorf("QueueArn: got %v, %v", out.Attributes["QueueArn"], err)
	}
	found, err := h.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("orders")})
	if err != nil || *found.QueueUrl != queue {
		t.Errorf("GetQueueUrl: %v, want %s", err, queue)
	}
	_, err = h.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("order")})
	if !is[*types.QueueDoesNotExist](err) {
		t.Errorf("GetQueueUrl of an unknown queue: %v", err)
	}
	other := h.queue("other")
	for prefix, want := range map[string][]string{"": {queue, other}, "ot": {other}} {
		listed, err := h.ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: &prefix})
		if err != nil || !slices.Equal(listed.QueueUrls, want) {
			t.Errorf("ListQueues of %q: got %v, %v; want %v", prefix, listed.QueueUrls, err, want)
		}
	}
}

func TestQueueHasAmazonsDefaults(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	out, err := h.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	if out.Attributes["CreatedTimestamp"] == "" || out.Attributes["CreatedTimestamp"] != out.Attributes["LastModifiedTimestamp"] {
		t.Errorf("timestamps: %v", out.Attributes)
	}
	delete(out.Attributes, "CreatedTimestamp")
	delete(out.Attributes, "LastModifiedTimestamp")
	want := map[string]string{
		"QueueArn": arn("q"), "VisibilityTimeout": "30", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600",
		"DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0",
		"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
	}
	if diff := cmp.Diff(want, out.Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestAttributesAndParametersAreChecked(t *testing.T) {
	h := overWire(t, nil)
	for _, test := range []struct{ name, value, code string }{
		{"VisibilityTimeout", "43200", ""},
		{"VisibilityTimeout", "43201", "InvalidAttributeValue"},
		{"VisibilityTimeout", "-1", "InvalidAttributeValue"},
		{"VisibilityTimeout", "soon", "InvalidAttributeValue"},
		{"DelaySeconds", "901", "InvalidAttributeValue"},
		{"MaximumMessageSize", "1048577", "InvalidAttributeValue"},
		{"MessageRetentionPeriod", "59", "InvalidAttributeValue"},
		{"ReceiveMessageWaitTimeSeconds", "21", "InvalidAttributeValue"},
		{"QueueArn", "x", "InvalidAttributeName"},
		{"FifoQueue", "true", "InvalidAttributeName"},
	} {
		queue := h.queue("q")
		_, err := h.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &queue, Attributes: map[string]string{test.name: test.value}})
		wantCode(t, err, test.code)
	}
	_, err := h.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(h.queue("q")), AttributeNames: []types.QueueAttributeName{"NoSuchThing"},
	})
	wantCode(t, err, "InvalidAttributeName")
	for _, in := range []sqs.ReceiveMessageInput{{MaxNumberOfMessages: 11}, {MaxNumberOfMessages: -1}, {WaitTimeSeconds: 21}, {VisibilityTimeout: 43201}} {
		in.QueueUrl = aws.String(h.queue("q"))
		_, err := h.ReceiveMessage(t.Context(), &in)
		wantCode(t, err, "InvalidParameterValue")
	}
}

func TestRedrivePolicyIsTakenAwayByAnEmptyValue(t *testing.T) {
	h := overWire(t, nil)
	source, dead := h.withDeadLetters(1)
	if _, err := h.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &source, Attributes: map[string]string{"RedrivePolicy": ""}}); err != nil {
		t.Fatal(err)
	}
	h.send(source, "", "m")
	h.fail(source, 3)
	h.wantCounts(source, "1/0/0")
	h.wantCounts(dead, "0/0/0")
}

func TestCreateQueueCanBeRepeated(t *testing.T) {
	h := overWire(t, nil)
	policy := `RedrivePolicy={"deadLetterTargetArn":"` + arn("dead") + `","maxReceiveCount":5}`
	h.queue("dead")
	h.queue("q", "VisibilityTimeout=2", policy)
	for _, attributes := range [][]string{
		nil,
		{"VisibilityTimeout=2"},
		{"DelaySeconds=0"},
		{policy},
	} {
		h.queue("q", attributes...)
	}
	_, err := h.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q"), Attributes: map[string]string{"VisibilityTimeout": "3"}})
	if !is[*types.QueueNameExists](err) {
		t.Errorf("another visibility timeout: got %v, want QueueNameExists", err)
	}
	for _, name := range []string{"", "a b", "a/b", "orders.fifo", strings.Repeat("q", 81)} {
		_, err := h.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
		wantCode(t, err, "InvalidParameterValue")
	}
}

// Other SDKs and clients without one see the errors in the form of the protocol.
func TestErrorsInTheProtocolsForm(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	for _, test := range []struct{ name, target, body, kind string }{
		{"unknown queue", "AmazonSQS.SendMessage", `{"QueueUrl":"http://h/000000000000/nope","MessageBody":"b"}`, "QueueDoesNotExist"},
		{"no queue", "AmazonSQS.SendMessage", `{"MessageBody":"b"}`, "MissingParameter"},
		{"broken JSON", "AmazonSQS.ListQueues", `{`, "MalformedInput"},
		{"unknown operation", "AmazonSQS.Nothing", `{}`, "InvalidAction"},
		{"query protocol", "", `Action=ListQueues`, "InvalidAction"},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(test.body))
			req.Header.Set("X-Amz-Target", test.target)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, req)
			resp := w.Result()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Content-Type") != "application/x-amz-json-1.0" ||
				!strings.Contains(string(body), `"__type":"com.amazonaws.sqs#`+test.kind+`"`) {
				t.Errorf("%s %s: got %d, %s; want 400, %s", test.target, test.body, resp.StatusCode, body, test.kind)
			}
		})
	}
}
