package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"
)

// ParkQueueName is the name of the park in the template, and so its whole name
// beside the local runner.
const ParkQueueName = "ParkQueue"

// QueueAttributes returns all attributes of a queue.
func QueueAttributes(ctx context.Context, client *sqs.Client, queueURL string) (map[string]string, error) {
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &queueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, fmt.Errorf("look up queue %s: %w", queueURL, err)
	}
	return out.Attributes, nil
}

// QueueARN returns the ARN of a queue.
func QueueARN(ctx context.Context, client *sqs.Client, queueURL string) (string, error) {
	attributes, err := QueueAttributes(ctx, client, queueURL)
	return attributes[string(types.QueueAttributeNameQueueArn)], err
}

// DeadLetterARN returns the ARN of a queue's dead letter queue, "" when the
// queue has no redrive policy.
func DeadLetterARN(ctx context.Context, client *sqs.Client, queueURL string) (string, error) {
	attributes, err := QueueAttributes(ctx, client, queueURL)
	if err != nil {
		return "", err
	}
	return redriveTarget(queueURL, attributes)
}

func redriveTarget(queueURL string, attributes map[string]string) (string, error) {
	policy := attributes[string(types.QueueAttributeNameRedrivePolicy)]
	if policy == "" {
		return "", nil
	}
	var redrive struct {
		Target string `json:"deadLetterTargetArn"`
	}
	if err := json.Unmarshal([]byte(policy), &redrive); err != nil {
		return "", fmt.Errorf("read the redrive policy of %s: %w", queueURL, err)
	}
	return redrive.Target, nil
}

// QueueURL returns the URL of the named queue of the client's account.
func QueueURL(ctx context.Context, client *sqs.Client, name string) (string, error) {
	return findQueue(ctx, client, &sqs.GetQueueUrlInput{QueueName: &name})
}

// QueueURLOfARN returns the URL of the queue with an ARN such as
// arn:aws:sqs:eu-central-1:123456789012:name.
func QueueURLOfARN(ctx context.Context, client *sqs.Client, arn string) (string, error) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 {
		return "", fmt.Errorf("%q is not the ARN of a queue", arn)
	}
	return findQueue(ctx, client, &sqs.GetQueueUrlInput{QueueName: &parts[5], QueueOwnerAWSAccountId: &parts[4]})
}

func findQueue(ctx context.Context, client *sqs.Client, in *sqs.GetQueueUrlInput) (string, error) {
	out, err := client.GetQueueUrl(ctx, in)
	if err != nil {
		return "", fmt.Errorf("find the queue %s: %w", *in.QueueName, err)
	}
	return aws.ToString(out.QueueUrl), nil
}

// QueuesWithPrefix returns the URLs of all queues whose names begin with the
// prefix, of which there must be one.
func QueuesWithPrefix(ctx context.Context, client *sqs.Client, prefix string) (urls []string, err error) {
	in := &sqs.ListQueuesInput{MaxResults: aws.Int32(1000)}
	if prefix != "" {
		in.QueueNamePrefix = &prefix
	}
	for pages := sqs.NewListQueuesPaginator(client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the queues: %w", err)
		}
		urls = append(urls, page.QueueUrls...)
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("found no queues whose names begin with %q", prefix)
	}
	return urls, nil
}
