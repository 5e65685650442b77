package provision

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/local/template"
)

// A Queue exists on the queue server.
type Queue struct{ URL, ARN string }

// Queues makes the queues under their logical ids, dead letter queues before those that redrive to them. Existing queues
// get the declared attributes and keep their messages.
func Queues(ctx context.Context, client *sqs.Client, queues map[string]template.Queue) (map[string]Queue, error) {
	made := make(map[string]Queue, len(queues))
	var provision func(id string) error
	provision = func(id string) error {
		if _, done := made[id]; done {
			return nil
		}
		q, ok := queues[id]
		if !ok {
			return fmt.Errorf("the template has no queue %s", id)
		}
		if q.DeadLetterQueue != "" {
			if err := provision(q.DeadLetterQueue); err != nil {
				return err
			}
		}
		var err error
		made[id], err = createQueue(ctx, client, q, made[q.DeadLetterQueue])
		return err
	}
	for id := range queues {
		if err := provision(id); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func createQueue(ctx context.Context, client *sqs.Client, q template.Queue, deadLetters Queue) (Queue, error) {
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
	attributes := map[string]string{
		"VisibilityTimeout":             seconds(q.VisibilityTimeout),
		"MessageRetentionPeriod":        seconds(q.Retention),
		"DelaySeconds":                  seconds(q.Delay),
		"ReceiveMessageWaitTimeSeconds": seconds(q.ReceiveWait),
		"MaximumMessageSize":            strconv.Itoa(q.MaxMessageSize),
	}
	if q.DeadLetterQueue != "" {
		policy, err := json.Marshal(map[string]string{
			"deadLetterTargetArn": deadLetters.ARN, "maxReceiveCount": strconv.Itoa(q.MaxReceiveCount),
		}, json.Deterministic(true))
		if err != nil {
			return Queue{}, fmt.Errorf("redrive policy of %s: %w", q.LogicalID, err)
		}
		attributes["RedrivePolicy"] = string(policy)
	}
	url, err := ensureQueue(ctx, client, q.LogicalID, attributes)
	if err != nil {
		return Queue{}, err
	}
	got, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return Queue{}, fmt.Errorf("read the queue %s: %w", q.LogicalID, err)
	}
	return Queue{URL: url, ARN: got.Attributes["QueueArn"]}, nil
}

// ensureQueue makes a queue, or sets the attributes of an existing one: the template may have changed since.
func ensureQueue(ctx context.Context, client *sqs.Client, name string, attributes map[string]string) (url string, err error) {
	created, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err == nil {
		return aws.ToString(created.QueueUrl), nil
	}
	if exists := (*types.QueueNameExists)(nil); !errors.As(err, &exists) {
		return "", fmt.Errorf("create the queue %s: %w", name, err)
	}
	found, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return "", fmt.Errorf("find the queue %s: %w", name, err)
	}
	_, err = client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: found.QueueUrl, Attributes: attributes})
	if err != nil {
		return "", fmt.Errorf("change the queue %s: %w", name, err)
	}
	return aws.ToString(found.QueueUrl), nil
}
