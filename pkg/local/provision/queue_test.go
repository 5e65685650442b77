package provision_test

import (
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/local/provision"
	"github.com/commerce-integration/service/pkg/local/queueserver"
	"github.com/commerce-integration/service/pkg/local/template"
)

func TestExistingQueueIsUpdatedAndKeepsItsMessages(t *testing.T) {
	server, err := queueserver.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		front.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	client := sqs.New(sqs.Options{
		BaseEndpoint: &front.URL, Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	queues := map[string]template.Queue{
		"DLQ":   {LogicalID: "DLQ"},
		"Queue": {LogicalID: "Queue", Attributes: map[string]string{"VisibilityTimeout": "60"}, DeadLetterQueue: "DLQ", MaxReceiveCount: 50},
	}
	first, err := provision.Queues(t.Context(), client, queues)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(first["Queue"].URL), MessageBody: aws.String("kept")}); err != nil {
		t.Fatal(err)
	}
	attributes := map[string]string{"VisibilityTimeout": "120", "MessageRetentionPeriod": "7200", "MaximumMessageSize": "2048"}
	queues["Queue"] = template.Queue{LogicalID: "Queue", Attributes: attributes, DeadLetterQueue: "DLQ", MaxReceiveCount: 40}
	for range 2 {
		again, err := provision.Queues(t.Context(), client, queues)
		if err != nil {
			t.Fatal(err)
		}
		if again["Queue"] != first["Queue"] || again["DLQ"] != first["DLQ"] {
			t.Errorf("queues: got %v, want %v", again, first)
		}
	}
	out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(first["Queue"].URL), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"VisibilityTimeout": "120", "MessageRetentionPeriod": "7200", "MaximumMessageSize": "2048", "ApproximateNumberOfMessages": "1",
		"RedrivePolicy": `{"deadLetterTargetArn":"` + first["DLQ"].ARN + `","maxReceiveCount":"40"}`,
	} {
		if got := out.Attributes[name]; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
