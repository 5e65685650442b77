package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/testkit/queuetest"
)

const testOrganization = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"

// queues are the queues of the local runner, without functions, and a data folder
// that points at them.
type queues struct {
	*queuetest.Queues
	data string
	file runner.Info
}

func newQueues(t testing.TB) *queues {
	t.Helper()
	q := &queues{Queues: queuetest.Start(t), data: t.TempDir()}
	q.file = runner.Info{
		OrganizationID: testOrganization, SQSEndpoint: *q.Client.Options().BaseEndpoint,
		RecordsQueueURL: q.URL("RecordsQueue"), DeliveriesQueueURL: q.URL("DeliveriesQueue"),
		SlowDeliveriesQueueURL: q.URL("SlowDeliveriesQueue"), IndexJobsQueueURL: q.URL("IndexJobsQueue"),
	}
	if err := runner.WriteInfo(q.data, &q.file); err != nil {
		t.Fatal(err)
	}
	return q
}

// drain takes all messages of the queue.
func (q *queues) drain(ctx context.Context, queueURL string) ([]types.Message, error) {
	var all []types.Message
	for {
		out, err := q.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
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
			if _, err := q.Client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queueURL, ReceiptHandle: m.ReceiptHandle}); err != nil {
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
