package workload

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
)

// Queue is what a queue holds.
type Queue struct {
	Name, URL string
	Messages  int  // whatever their state
	Dead      bool // no function takes from it: dead letters, or the parking lot
}

// ReadQueues reads every queue of the service.
func (s *Service) ReadQueues(ctx context.Context) ([]Queue, error) {
	listed, err := s.Queues.ListQueues(ctx, &sqs.ListQueuesInput{})
	if err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	var found []Queue
	for _, url := range listed.QueueUrls {
		out, err := s.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			return nil, fmt.Errorf("look up queue %s: %w", url, err)
		}
		q := Queue{Name: path.Base(url), URL: url, Dead: out.Attributes[string(types.QueueAttributeNameRedrivePolicy)] == ""}
		for name, text := range out.Attributes {
			if n, err := strconv.Atoi(text); err == nil && strings.HasPrefix(name, "ApproximateNumberOfMessages") {
				q.Messages += n
			}
		}
		found = append(found, q)
	}
	return found, nil
}

// Quiet waits until the queues of the functions are empty: all outcomes are written, and nothing can come a second
// time. Jobs of the index, which run later, do not count.
func (s *Service) Quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, standstill)
	defer cancel()
	for {
		queues, err := s.ReadQueues(ctx)
		if err != nil {
			return err
		}
		busy := 0
		for _, q := range queues {
			if !q.Dead && !strings.HasPrefix(q.Name, "IndexJobs") {
				busy += q.Messages
			}
		}
		if busy == 0 {
			return nil
		}
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("the queues still hold %d messages: %w", busy, err)
		}
	}
}

// Message is a message of the records queue.
type Message struct {
	Organization value.ID
	Records      []map[string]any // changes
	Delay        int32            // seconds
}

// Send sends up to ten messages.
func (s *Service) Send(ctx context.Context, messages ...Message) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		body, err := json.Marshal(map[string]any{"organizationId": m.Organization, "records": m.Records})
		if err != nil {
			return fmt.Errorf("encode a message: %w", err)
		}
		id, group, text := strconv.Itoa(i), m.Organization.String(), string(body)
		entries[i] = types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &text, MessageGroupId: &group, DelaySeconds: m.Delay}
	}
	out, err := s.Queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &s.Info.RecordsQueueURL, Entries: entries})
	if err != nil {
		return fmt.Errorf("send %d messages: %w", len(messages), err)
	}
	if len(out.Failed) > 0 {
		return fmt.Errorf("send %d messages: %d were refused", len(messages), len(out.Failed))
	}
	return nil
}
