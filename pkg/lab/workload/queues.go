package workload

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/base/pause"
)

// Queue is what a queue holds.
type Queue struct {
	Name                       string
	Visible, InFlight, Delayed int
	Dead                       bool // no function takes from it: dead letters, or the parking lot
}

// All is the number of its messages, whatever their state.
func (q *Queue) All() int { return q.Visible + q.InFlight + q.Delayed }

// Deliveries tells whether a queue's messages cause attempts.
func (q *Queue) Deliveries() bool { return !q.Dead && strings.Contains(q.Name, "Deliveries") }

// ReadQueues reads every queue of the service, by name.
func ReadQueues(ctx context.Context, client *sqs.Client) ([]Queue, error) {
	listed, err := client.ListQueues(ctx, &sqs.ListQueuesInput{})
	if err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	var found []Queue
	for _, url := range listed.QueueUrls {
		out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			return nil, fmt.Errorf("look up queue %s: %w", url, err)
		}
		q := Queue{Name: path.Base(url), Dead: out.Attributes[string(types.QueueAttributeNameRedrivePolicy)] == ""}
		for name, n := range map[types.QueueAttributeName]*int{
			types.QueueAttributeNameApproximateNumberOfMessages:           &q.Visible,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible: &q.InFlight,
			types.QueueAttributeNameApproximateNumberOfMessagesDelayed:    &q.Delayed,
		} {
			if *n, err = strconv.Atoi(out.Attributes[string(name)]); err != nil {
				return nil, fmt.Errorf("queue %s: %s: %w", url, name, err)
			}
		}
		found = append(found, q)
	}
	slices.SortFunc(found, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// Dispatched waits until no record waits, and the deliveries that wait have not grown
// in number for a second.
func (s *Service) Dispatched(ctx context.Context) error {
	for before := -1; ; {
		queues, err := ReadQueues(ctx, s.Queues)
		if err != nil {
			return err
		}
		records, deliveries := 0, 0
		for i := range queues {
			switch q := &queues[i]; {
			case q.Deliveries():
				deliveries += q.All()
			case q.Name == "RecordsQueue" || q.Name == "ImportsQueue":
				records += q.All()
			}
		}
		if records == 0 && deliveries <= before {
			return nil
		}
		before = deliveries
		if err := pause.For(ctx, time.Second); err != nil {
			return fmt.Errorf("%d records and %d deliveries wait: %w", records, deliveries, err)
		}
	}
}

// Quiet waits until the queues of the functions are empty: all bookkeeping is
// done and nothing can come a second time. Jobs of the index, which run later,
// do not count.
func (s *Service) Quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, standstill)
	defer cancel()
	for {
		queues, err := ReadQueues(ctx, s.Queues)
		if err != nil {
			return err
		}
		busy := slices.DeleteFunc(queues, func(q Queue) bool {
			return q.Dead || strings.HasPrefix(q.Name, "IndexJobs") || q.All() == 0
		})
		if len(busy) == 0 {
			return nil
		}
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("the queues still hold %+v: %w", busy, err)
		}
	}
}
