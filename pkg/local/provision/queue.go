package provision

import (
	"context"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/local/template"
)

// A Queue exists on the queue server.
type Queue struct{ URL, ARN string }

// Queues makes the queues under their logical ids. Existing queues get the declared attributes and keep their messages.
func Queues(ctx context.Context, client *sqs.Client, queues map[string]template.Queue) (map[string]Queue, error) {
	made := make(map[string]Queue, len(queues))
	// Dead letter queues come first, because others redrive to them.
	for _, redrives := range []bool{false, true} {
		for id, q := range queues {
			if (q.DeadLetterQueue != "") != redrives {
				continue
			}
			var err error
			if made[id], err = createQueue(ctx, client, q, made[q.DeadLetterQueue]); err != nil {
				return nil, fmt.Errorf("make the queue %s: %w", id, err)
			}
		}
	}
	return made, nil
}

func createQueue(ctx context.Context, client *sqs.Client, q template.Queue, deadLetters Queue) (Queue, error) {
	attributes := map[string]string{}
	maps.Copy(attributes, q.Attributes)
	if q.DeadLetterQueue != "" {
		attributes["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, deadLetters.ARN, q.MaxReceiveCount)
	}
	created, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &q.LogicalID}) // or the one that exists
	if err != nil {
		return Queue{}, err
	}
	if _, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: created.QueueUrl, Attributes: attributes}); err != nil {
		return Queue{}, err
	}
	got, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: created.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return Queue{}, err
	}
	return Queue{URL: *created.QueueUrl, ARN: got.Attributes["QueueArn"]}, nil
}
