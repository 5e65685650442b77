package queueserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/local/queueserver"
)

func TestQueueURLHasTheHostOfTheRequest(t *testing.T) {
	h := overWire(t, &queueserver.Config{Region: "eu-central-1", AccountID: "123456789012"})
	queue := h.queue("orders")
	if !strings.HasPrefix(queue, "http://127.0.0.1:") || !strings.HasSuffix(queue, "/123456789012/orders") {
		t.Errorf("queue URL: got %s", queue)
	}
	out, err := h.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	if err != nil || out.Attributes["QueueArn"] != "arn:aws:sqs:eu-central-1:123456789012:orders" {
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
		"DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0", "SqsManagedSseEnabled": "true",
		"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0", "ApproximateNumberOfMessagesDelayed": "0",
	}
	if diff := cmp.Diff(want, out.Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestQueueAttributesAreChecked(t *testing.T) {
	h := overWire(t, nil)
	for _, test := range []struct{ name, value, code string }{
		{"VisibilityTimeout", "43200", ""},
		{"VisibilityTimeout", "43201", "InvalidAttributeValue"},
		{"VisibilityTimeout", "-1", "InvalidAttributeValue"},
		{"VisibilityTimeout", "soon", "InvalidAttributeValue"},
		{"DelaySeconds", "900", ""},
		{"DelaySeconds", "901", "InvalidAttributeValue"},
		{"MaximumMessageSize", "1024", ""},
		{"MaximumMessageSize", "1023", "InvalidAttributeValue"},
		{"MaximumMessageSize", "1048577", "InvalidAttributeValue"},
		{"MessageRetentionPeriod", "59", "InvalidAttributeValue"},
		{"MessageRetentionPeriod", "1209601", "InvalidAttributeValue"},
		{"ReceiveMessageWaitTimeSeconds", "21", "InvalidAttributeValue"},
		{"SqsManagedSseEnabled", "yes", "InvalidAttributeValue"},
		{"Policy", "{", "InvalidAttributeValue"},
		{"Policy", "{}", ""},
		{"KmsMasterKeyId", "alias/aws/sqs", ""},
		{"RedriveAllowPolicy", `{"redrivePermission":"byQueue"}`, "InvalidParameterValue"},
		{"RedriveAllowPolicy", `{"redrivePermission":"some"}`, "InvalidParameterValue"},
		{"QueueArn", "x", "InvalidAttributeName"},
		{"NoSuchThing", "x", "InvalidAttributeName"},
		{"FifoQueue", "true", "AWS.SimpleQueueService.UnsupportedOperation"},
	} {
		queue := h.queue("q")
		_, err := h.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &queue, Attributes: map[string]string{test.name: test.value}})
		if test.code == "" && err != nil {
			t.Errorf("%s=%s: %v", test.name, test.value, err)
		}
		if test.code != "" {
			wantCode(t, err, test.code)
		}
	}
	_, err := h.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(h.queue("q")), AttributeNames: []types.QueueAttributeName{"NoSuchThing"},
	})
	if !is[*types.InvalidAttributeName](err) {
		t.Errorf("GetQueueAttributes of an unknown name: %v", err)
	}
}

func TestAttributeIsTakenAwayByAnEmptyValue(t *testing.T) {
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
		{`RedrivePolicy={"maxReceiveCount":"5","deadLetterTargetArn":"` + arn("dead") + `"}`},
	} {
		h.queue("q", attributes...)
	}
	_, err := h.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q"), Attributes: map[string]string{"VisibilityTimeout": "3"}})
	if !is[*types.QueueNameExists](err) {
		t.Errorf("another visibility timeout: got %v, want QueueNameExists", err)
	}
}

func TestQueueNamesAreChecked(t *testing.T) {
	h := overWire(t, nil)
	for name, code := range map[string]string{
		"":                       "MissingParameter",
		"a b":                    "InvalidParameterValue",
		"a/b":                    "InvalidParameterValue",
		strings.Repeat("q", 81):  "InvalidParameterValue",
		"orders.fifo":            "AWS.SimpleQueueService.UnsupportedOperation",
		"Aa0-_" + "orders_queue": "",
	} {
		_, err := h.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
		if code == "" && err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if code != "" {
			wantCode(t, err, code)
		}
	}
}

func TestListQueuesPages(t *testing.T) {
	h := overWire(t, nil)
	for _, name := range append(numbered("a", 5), "b") {
		h.queue(name)
	}
	var got []string
	pages := sqs.NewListQueuesPaginator(h.Client, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("a"), MaxResults: aws.Int32(2)})
	for n := 0; pages.HasMorePages(); n++ {
		page, err := pages.NextPage(t.Context())
		if err != nil || n > 3 {
			t.Fatalf("page %d: %v", n, err)
		}
		for _, url := range page.QueueUrls {
			got = append(got, url[strings.LastIndexByte(url, '/')+1:])
		}
	}
	if diff := cmp.Diff(numbered("a", 5), got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestTagsAreKeptAndRemoved(t *testing.T) {
	h := overWire(t, nil)
	out, err := h.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q"), Tags: map[string]string{"a": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: out.QueueUrl, Tags: map[string]string{"b": "2", "c": ""}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.UntagQueue(t.Context(), &sqs.UntagQueueInput{QueueUrl: out.QueueUrl, TagKeys: []string{"a", "x"}}); err != nil {
		t.Fatal(err)
	}
	tags, err := h.ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: out.QueueUrl})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"b": "2", "c": ""}, tags.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestReceiveParametersAreChecked(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	for _, in := range []sqs.ReceiveMessageInput{
		{MaxNumberOfMessages: 11},
		{MaxNumberOfMessages: -1},
		{WaitTimeSeconds: 21},
		{WaitTimeSeconds: -1},
		{VisibilityTimeout: 43201},
		{VisibilityTimeout: -1},
	} {
		in.QueueUrl = &queue
		_, err := h.ReceiveMessage(t.Context(), &in)
		wantCode(t, err, "InvalidParameterValue")
	}
}

// What the SDK does not show or cannot send.
func TestErrorsOnTheWire(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	endpoint := queue[:strings.Index(queue, "/000000000000/")]
	for _, test := range []struct {
		name, target, body string
		status             int
		header, kind       string
	}{
		{
			"unknown queue", "AmazonSQS.GetQueueUrl", `{"QueueName":"x"}`, 400,
			"AWS.SimpleQueueService.NonExistentQueue;Sender", "com.amazonaws.sqs#QueueDoesNotExist",
		},
		{
			"rubbish handle", "AmazonSQS.DeleteMessage", `{"QueueUrl":"` + queue + `","ReceiptHandle":"AAAA"}`, 404,
			"ReceiptHandleIsInvalid;Sender", "com.amazonaws.sqs#ReceiptHandleIsInvalid",
		},
		{
			"bad parameter", "AmazonSQS.ReceiveMessage", `{"QueueUrl":"` + queue + `","MaxNumberOfMessages":0}`, 400,
			"InvalidParameterValue;Sender", "com.amazon.coral.service#InvalidParameterValueException",
		},
		{
			"no queue URL", "AmazonSQS.ReceiveMessage", `{}`, 400,
			"MissingParameter;Sender", "com.amazon.coral.service#MissingRequiredParameterException",
		},
		{
			"URL that is none", "AmazonSQS.ReceiveMessage", `{"QueueUrl":"http://[/"}`, 404,
			"InvalidAddress;Sender", "com.amazonaws.sqs#InvalidAddress",
		},
		{
			"no visibility timeout", "AmazonSQS.ChangeMessageVisibility", `{"QueueUrl":"` + queue + `","ReceiptHandle":"AAAA"}`, 400,
			"MissingParameter;Sender", "com.amazon.coral.service#MissingRequiredParameterException",
		},
		{
			"broken JSON", "AmazonSQS.ListQueues", `{`, 400,
			"MalformedInput;Sender", "com.amazon.coral.service#SerializationException",
		},
		{
			"unknown operation", "AmazonSQS.Nothing", `{}`, 400,
			"InvalidAction;Sender", "com.amazon.coral.service#UnknownOperationException",
		},
		{
			"query protocol", "", `Action=ListQueues`, 400,
			"AWS.SimpleQueueService.UnsupportedOperation;Sender", "com.amazonaws.sqs#UnsupportedOperation",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if test.target != "" {
				req.Header.Set("X-Amz-Target", test.target)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != test.status || resp.Header.Get("X-Amzn-Query-Error") != test.header ||
				!strings.Contains(string(body), `"__type":"`+test.kind+`"`) || resp.Header.Get("Content-Type") != "application/x-amz-json-1.0" {
				t.Errorf("%s %s: got %d, %q, %s; want %d, %q, %s", test.target, test.body, resp.StatusCode,
					resp.Header.Get("X-Amzn-Query-Error"), body, test.status, test.header, test.kind)
			}
		})
	}
}
