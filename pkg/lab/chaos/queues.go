package chaos

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queueState is what a queue holds.
type queueState struct {
	name, url                  string
	visible, inFlight, delayed int
	dead                       bool // no function takes from it: dead letters, or the park
}

func (q *queueState) all() int { return q.visible + q.inFlight + q.delayed }

// readQueues reads every queue of the service.
func readQueues(ctx context.Context, client *sqs.Client) ([]queueState, error) {
	listed, err := client.ListQueues(ctx, &sqs.ListQueuesInput{})
	if err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	var found []queueState
	for _, url := range listed.QueueUrls {
		out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			return nil, fmt.Errorf("look up queue %s: %w", url, err)
		}
		q := queueState{name: path.Base(url), url: url}
		for name, n := range map[types.QueueAttributeName]*int{
			types.QueueAttributeNameApproximateNumberOfMessages:           &q.visible,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible: &q.inFlight,
			types.QueueAttributeNameApproximateNumberOfMessagesDelayed:    &q.delayed,
		} {
			if *n, err = strconv.Atoi(out.Attributes[string(name)]); err != nil {
				return nil, fmt.Errorf("queue %s: %s: %w", url, name, err)
			}
		}
		q.dead = out.Attributes[string(types.QueueAttributeNameRedrivePolicy)] == ""
		found = append(found, q)
	}
	slices.SortFunc(found, func(a, b queueState) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// carries tells whether messages of a queue bring attempts.
func (q *queueState) carries() bool { return !q.dead && strings.Contains(q.name, "Deliveries") }

// hurry has what a killed process had received come again after seconds
// instead of minutes. A start of the service sets it back.
func hurry(ctx context.Context, client *sqs.Client) error {
	const deliveries, others = 30, 10 // seconds; an attempt and its bookkeeping take less than the first
	queues, err := readQueues(ctx, client)
	if err != nil {
		return err
	}
	for _, q := range queues {
		seconds := others
		if q.carries() {
			seconds = deliveries
		}
		if q.dead {
			continue
		}
		_, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
			QueueUrl: &q.url, Attributes: map[string]string{string(types.QueueAttributeNameVisibilityTimeout): strconv.Itoa(seconds)},
		})
		if err != nil {
			return fmt.Errorf("shorten the visibility of %s: %w", q.name, err)
		}
	}
	return nil
}
