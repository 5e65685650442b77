package queueserver_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheClientOfTheProcessReceivesWhatTheWireDoes(t *testing.T) {
	h := overWire(t, nil)
	url := h.queue("q", "VisibilityTimeout=0")
	_, err := h.SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: aws.String("body"), MessageGroupId: aws.String("group"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"text":  {DataType: aws.String("String"), StringValue: aws.String("value")},
			"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 255}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := h.server.Client()
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}
	wire, err := h.ReceiveMessage(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	here, err := client.ReceiveMessage(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(here.Messages) != 1 || here.Messages[0].Attributes["ApproximateReceiveCount"] != "2" {
		t.Fatalf("the second receive: got %+v, want the message, received twice", here.Messages)
	}
	wire.Messages[0].Attributes["ApproximateReceiveCount"] = "2"
	options := cmp.Options{
		cmpopts.IgnoreUnexported(types.Message{}, types.MessageAttributeValue{}), cmpopts.IgnoreFields(types.Message{}, "ReceiptHandle"), cmpopts.EquateEmpty(),
	}
	if diff := cmp.Diff(wire.Messages, here.Messages, options); diff != "" {
		t.Errorf("received over the wire (-) and in the process (+):\n%s", diff)
	}
	deleted, err := client.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("right"), ReceiptHandle: here.Messages[0].ReceiptHandle},
		{Id: aws.String("wrong"), ReceiptHandle: aws.String("nonsense")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(deleted.Successful) != 1 || *deleted.Successful[0].Id != "right" || len(deleted.Failed) != 1 || *deleted.Failed[0].Id != "wrong" || *deleted.Failed[0].Code == "" {
		t.Errorf("a right and a wrong receipt: got %+v", deleted)
	}
	if left, err := client.ReceiveMessage(t.Context(), in); err != nil || len(left.Messages) != 0 {
		t.Errorf("after the deletion: got %+v, %v, want nothing", left.Messages, err)
	}
	other := "http://queues/000000000000/none"
	if _, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &other}); err == nil {
		t.Error("a queue that does not exist: got no error")
	}
}
