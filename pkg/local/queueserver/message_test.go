package queueserver

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func text(v string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &v}
}

func TestMessageArrivesAsSent(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	body := "hello é \"x\" <&> \U0001F600\n"
	attributes := map[string]types.MessageAttributeValue{
		"text":   text("é"),
		"number": {DataType: aws.String("Number"), StringValue: aws.String("-12.5e3")},
		"bytes":  {DataType: aws.String("Binary.gzip"), BinaryValue: []byte{0, 1, 255}},
	}
	sent, err := h.SendMessage(h.Context(), &sqs.SendMessageInput{
		QueueUrl: &queue, MessageBody: &body, MessageAttributes: attributes, MessageGroupId: aws.String("tenant-1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := h.receive(queue, 1, 0)[0]
	if *got.Body != body || *got.MessageId != *sent.MessageId {
		t.Errorf("got %q (%s), want %q (%s)", *got.Body, *got.MessageId, body, *sent.MessageId)
	}
	if diff := cmp.Diff(attributes, got.MessageAttributes, cmpopts.IgnoreUnexported(types.MessageAttributeValue{})); diff != "" {
		t.Errorf("attributes (-sent +received):\n%s", diff)
	}
	sum := md5.Sum([]byte(body))
	if want := hex.EncodeToString(sum[:]); *got.MD5OfBody != want || *sent.MD5OfMessageBody != want {
		t.Errorf("MD5 of the body: sent %s, received %s, want %s", *sent.MD5OfMessageBody, *got.MD5OfBody, want)
	}
	for name, want := range map[string]string{
		"ApproximateReceiveCount": "1", "SenderId": "000000000000", "MessageGroupId": "tenant-1",
	} {
		if got.Attributes[name] != want {
			t.Errorf("system attribute %s: got %q, want %q", name, got.Attributes[name], want)
		}
	}
}

func TestReceiverGetsTheAttributesItAsksFor(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q", "VisibilityTimeout=0")
	if _, err := h.SendMessage(h.Context(), &sqs.SendMessageInput{
		QueueUrl: &queue, MessageBody: aws.String("msg"), MessageAttributes: map[string]types.MessageAttributeValue{"Hello": text("There"), "Help.Me": text("Me")},
	}); err != nil {
		t.Fatal(err)
	}
	for ask, want := range map[string]string{"": "", "All": "Hello Help.Me", "Hello Foo": "Hello", "Foo": ""} {
		out, err := h.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MessageAttributeNames: strings.Fields(ask)})
		if err != nil {
			t.Fatal(err)
		}
		m := out.Messages[0]
		if names := strings.Join(slices.Sorted(maps.Keys(m.MessageAttributes)), " "); names != want || len(m.Attributes) != 0 {
			t.Errorf("asked for %q: got %q and system attributes %v; want %q and none", ask, names, m.Attributes, want)
		}
	}
}

func TestSendRefusesWhatAmazonRefuses(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	small := h.queue("small", "MaximumMessageSize=1024")
	manyAttributes := map[string]types.MessageAttributeValue{}
	for _, n := range numbered("a", 11) {
		manyAttributes[n] = text("v")
	}
	mib := strings.Repeat("x", 1<<20)
	for _, test := range []struct {
		name string
		in   sqs.SendMessageInput
		code string
	}{
		{"no body", sqs.SendMessageInput{MessageBody: aws.String("")}, "MissingParameter"},
		{"control character", sqs.SendMessageInput{MessageBody: aws.String("a\x01b")}, "InvalidMessageContents"},
		{"U+FFFE", sqs.SendMessageInput{MessageBody: aws.String("a\uFFFEb")}, "InvalidMessageContents"},
		{"1 MiB and a byte", sqs.SendMessageInput{MessageBody: aws.String(mib + "x")}, "InvalidParameterValue"},
		{"1 MiB with its attributes and more", sqs.SendMessageInput{
			MessageBody:       aws.String(mib[:1<<20-7]),
			MessageAttributes: map[string]types.MessageAttributeValue{"a": text("v")},
		}, "InvalidParameterValue"},
		{"far over the limit", sqs.SendMessageInput{MessageBody: aws.String(strings.Repeat(mib, 9))}, "InvalidParameterValue"},
		{"over the queue's own limit", sqs.SendMessageInput{QueueUrl: &small, MessageBody: aws.String(mib[:1025])}, "InvalidParameterValue"},
		{"delay of 901 s", sqs.SendMessageInput{DelaySeconds: 901}, "InvalidParameterValue"},
		{"negative delay", sqs.SendMessageInput{DelaySeconds: -1}, "InvalidParameterValue"},
		{"group with a space", sqs.SendMessageInput{MessageGroupId: aws.String("a b")}, "InvalidParameterValue"},
		{"group of 129", sqs.SendMessageInput{MessageGroupId: aws.String(strings.Repeat("g", 129))}, "InvalidParameterValue"},
		{"11 attributes", sqs.SendMessageInput{MessageAttributes: manyAttributes}, "InvalidParameterValue"},
		{"empty attribute", sqs.SendMessageInput{MessageAttributes: map[string]types.MessageAttributeValue{"a": text("")}}, "InvalidParameterValue"},
		{"attribute of no known type", sqs.SendMessageInput{MessageAttributes: map[string]types.MessageAttributeValue{
			"a": {DataType: aws.String("Text"), StringValue: aws.String("v")},
		}}, "InvalidParameterValue"},
		{"unknown queue", sqs.SendMessageInput{QueueUrl: aws.String(queue + "x")}, "QueueDoesNotExist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.in.MessageBody == nil {
				test.in.MessageBody = aws.String("body")
			}
			if test.in.QueueUrl == nil {
				test.in.QueueUrl = &queue
			}
			_, err := h.SendMessage(t.Context(), &test.in)
			wantCode(t, err, test.code)
		})
	}
	h.wantCounts(queue, "0/0/0")
	// Each of these characters takes six bytes as JSON and one in the message's size.
	h.send(queue, "", strings.Repeat("\t", 1<<20))
	h.wantCounts(queue, "1/0/0")
}

// wantCode compares an error's code, "" for none.
func wantCode(t interface {
	Helper()
	Errorf(string, ...any)
}, err error, want string,
) {
	t.Helper()
	if err == nil && want == "" {
		return
	}
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != want {
		t.Errorf("got error %v, want code %s", err, want)
	}
}

func TestBatchIsRefusedAsAWhole(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	entry := func(id, body string) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body}
	}
	var eleven []types.SendMessageBatchRequestEntry
	for _, id := range numbered("id", 11) {
		eleven = append(eleven, entry(id, "b"))
	}
	half := strings.Repeat("x", 1<<19)
	for _, test := range []struct {
		name    string
		entries []types.SendMessageBatchRequestEntry
		is      func(error) bool
	}{
		{"empty", []types.SendMessageBatchRequestEntry{}, is[*types.EmptyBatchRequest]},
		{"eleven", eleven, is[*types.TooManyEntriesInBatchRequest]},
		{"repeated id", []types.SendMessageBatchRequestEntry{entry("a", "b"), entry("a", "b")}, is[*types.BatchEntryIdsNotDistinct]},
		{"1 MiB and a byte in all", []types.SendMessageBatchRequestEntry{entry("a", half), entry("b", half+"x")}, is[*types.BatchRequestTooLong]},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := h.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: test.entries})
			if !test.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	h.wantCounts(queue, "0/0/0")
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func TestBatchEntriesFailAlone(t *testing.T) {
	h := overWire(t, nil)
	queue := h.queue("q")
	out, err := h.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: []types.SendMessageBatchRequestEntry{
		{Id: aws.String("good"), MessageBody: aws.String("b")},
		{Id: aws.String("bad"), MessageBody: aws.String("\x02")},
	}})
	if err != nil || len(out.Successful) != 1 || len(out.Failed) != 1 || *out.Failed[0].Id != "bad" || !out.Failed[0].SenderFault {
		t.Fatalf("SendMessageBatch: %v %+v", err, out)
	}
	m := h.receive(queue, 1, 0)[0]
	shown, err := h.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &queue, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
		{Id: aws.String("bad"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 43201},
		{Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0},
	}})
	if err != nil || len(shown.Successful) != 1 || len(shown.Failed) != 1 || *shown.Failed[0].Code != "InvalidParameterValue" {
		t.Fatalf("ChangeMessageVisibilityBatch: %v %+v", err, shown)
	}
	h.wantCounts(queue, "1/0/0")
	deleted, err := h.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &queue, Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("bad"), ReceiptHandle: aws.String("rubbish")},
		{Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle},
	}})
	if err != nil || len(deleted.Successful) != 1 || len(deleted.Failed) != 1 || *deleted.Failed[0].Code != "ReceiptHandleIsInvalid" {
		t.Fatalf("DeleteMessageBatch: %v %+v", err, deleted)
	}
	h.wantCounts(queue, "0/0/0")
}
