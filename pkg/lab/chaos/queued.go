package chaos

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/lab/workload"
)

// queuePrefix begins the names of the endpoints' queues, which lie on the
// service's queue server.
const queuePrefix = "webhooks-"

// makeQueue makes the queue of an endpoint and returns its ARN.
func (r *run) makeQueue(ctx context.Context, t *tenant, e *endpoint) (arn string, err error) {
	client, url := r.queue(queuePrefix + t.ID.String())
	name := queuePrefix + t.ID.String()
	if _, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name}); err != nil {
		return "", fmt.Errorf("make the queue of an endpoint: %w", err)
	}
	const arnName = types.QueueAttributeNameQueueArn
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{arnName}})
	if err != nil {
		return "", fmt.Errorf("look up the queue of an endpoint: %w", err)
	}
	e.queue = name
	return out.Attributes[string(arnName)], nil
}

// emptyQueues takes what the endpoints' queues hold, as their receivers do.
func (r *run) emptyQueues(ctx context.Context) error {
	for _, e := range r.receivers.endpoints {
		if e.queue == "" {
			continue
		}
		client, url := r.queue(e.queue)
		for {
			got, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
				QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
				MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp},
			})
			if err != nil {
				return fmt.Errorf("receive from the queue of an endpoint: %w", err)
			}
			if len(got.Messages) == 0 {
				break
			}
			for _, m := range got.Messages {
				if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
					return fmt.Errorf("delete from the queue of an endpoint: %w", err)
				}
				r.receivers.queued(e, &m)
			}
		}
	}
	return nil
}

// queued notes a message as the request that the service made with it.
func (r *receivers) queued(e *endpoint, m *types.Message) {
	header := http.Header{}
	for name, v := range m.MessageAttributes {
		header.Set(name, *v.StringValue)
	}
	sent, _ := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	at := time.UnixMilli(sent)
	// A message may lie there for longer than a signature's time is good.
	q := e.read(header, []byte(*m.Body), at, e.verify.VerifyIgnoringTimestamp)
	q.status, q.answered = http.StatusOK, at
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, q)
}

// ofEndpoint reports whether a queue is that of an endpoint.
func ofEndpoint(q workload.Queue) bool { return strings.HasPrefix(q.Name, queuePrefix) }
