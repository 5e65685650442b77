package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/commerce-integration/service/pkg/local/queueserver"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const testOrganization = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"

// queues is a queue server with the queues of the local runner, and a data
// directory that points at it.
type queues struct {
	server *queueserver.Server
	client *sqs.Client
	data   string
	file   runner.Info
	dlqs   map[string]string // queue name to URL
}

func newQueues(t testing.TB) *queues {
	t.Helper()
	server, err := queueserver.Open(t.TempDir(), &queueserver.Config{Logger: slog.New(slog.DiscardHandler)})
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
	client, err := newSQSClient(t.Context(), front.URL)
	if err != nil {
		t.Fatal(err)
	}
	q := &queues{server: server, client: client, data: t.TempDir(), dlqs: map[string]string{}}
	q.file = runner.Info{
		OrganizationID: testOrganization, SQSEndpoint: front.URL,
		RecordsQueueURL: q.create(t, "Records"), DeliveriesQueueURL: q.create(t, "Deliveries"),
		IndexJobsQueueURL: q.create(t, "IndexJobs"),
	}
	q.file.SlowDeliveriesQueueURL = q.redriving(t, "SlowDeliveriesQueue", q.dlqs["Deliveries"])
	if err := runner.WriteInfo(q.data, &q.file); err != nil {
		t.Fatal(err)
	}
	return q
}

// create makes NameQueue with its NameDLQ and returns the queue's URL.
func (q *queues) create(t testing.TB, name string) string {
	t.Helper()
	ctx := context.Background()
	dlq, err := q.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name + "DLQ")})
	if err != nil {
		t.Fatal(err)
	}
	q.dlqs[name] = *dlq.QueueUrl
	return q.redriving(t, name+"Queue", *dlq.QueueUrl)
}

// redriving makes a queue with the dead letter queue and returns its URL.
func (q *queues) redriving(t testing.TB, name, dlq string) string {
	t.Helper()
	ctx := context.Background()
	attributes, err := ops.QueueAttributes(ctx, q.client, dlq)
	if err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":50}`, attributes["QueueArn"])
	queue, err := q.client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: &name, Attributes: map[string]string{"RedrivePolicy": policy},
	})
	if err != nil {
		t.Fatal(err)
	}
	return *queue.QueueUrl
}

// drain takes all messages of the queue.
func (q *queues) drain(ctx context.Context, queueURL string) ([]types.Message, error) {
	var all []types.Message
	for {
		out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &queueURL, MaxNumberOfMessages: 10,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return nil, err
		}
		if len(out.Messages) == 0 {
			return all, nil
		}
		all = append(all, out.Messages...)
		for _, m := range out.Messages {
			if _, err := q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queueURL, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return nil, err
			}
		}
	}
}

// sentRecord is a record as an envelope in the queue holds it.
type sentRecord struct {
	Kind    string         `json:"kind"`
	Op      string         `json:"op"`
	Record  jsontext.Value `json:"record"`
	SiteIDs []string       `json:"siteIds"`
	Version *int64         `json:"version"`
	Silent  bool           `json:"silent"`
}

// sent takes all records out of the records queue.
func (q *queues) sent(ctx context.Context) ([]sentRecord, error) {
	messages, err := q.drain(ctx, q.file.RecordsQueueURL)
	if err != nil {
		return nil, err
	}
	var records []sentRecord
	for _, m := range messages {
		var envelope struct {
			OrganizationID string       `json:"organizationId"`
			Records        []sentRecord `json:"records"`
		}
		if err := json.Unmarshal([]byte(*m.Body), &envelope, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("read message %s: %w", *m.Body, err)
		}
		if envelope.OrganizationID != testOrganization || m.Attributes["MessageGroupId"] != testOrganization {
			return nil, fmt.Errorf("message of %s in group %s", envelope.OrganizationID, m.Attributes["MessageGroupId"])
		}
		records = append(records, envelope.Records...)
	}
	return records, nil
}

// runCommand runs a command line as the program does.
func runCommand(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	root := newRootCommand()
	var out, errOut bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errOut)
	root.SetIn(strings.NewReader(""))
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(&errOut, "commerce: %v\n", err)
	}
	return out.String(), errOut.String(), err
}
