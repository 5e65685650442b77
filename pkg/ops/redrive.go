package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/base/pause"
)

const (
	taskPoll      = 500 * time.Millisecond
	maxTaskPolls  = 60 // until SQS lists a new task
	cancelTimeout = 10 * time.Second
)

// Redrive is a running SQS task that moves the messages of a dead letter queue.
type Redrive struct {
	client       *sqs.Client
	from, handle string
	previous     int64 // when the queue's task before this one started
}

// StartRedrive moves all messages between queues, given by their ARNs. It always
// names the destination: SQS does not know the origin of the messages that the
// service itself put into the dead letter queue.
func StartRedrive(ctx context.Context, client *sqs.Client, from, to string) (*Redrive, error) {
	r := &Redrive{client: client, from: from}
	in := &sqs.StartMessageMoveTaskInput{SourceArn: &from, DestinationArn: &to}
	last, err := r.latestTask(ctx)
	if last != nil {
		r.previous = last.StartedTimestamp
	}
	if err == nil {
		var task *sqs.StartMessageMoveTaskOutput
		if task, err = client.StartMessageMoveTask(ctx, in); err == nil {
			r.handle = aws.ToString(task.TaskHandle)
			return r, nil
		}
	}
	return nil, fmt.Errorf("move messages from %s to %s: %w", from, to, err)
}

// latestTask returns the queue's latest task, nil when it has none.
func (r *Redrive) latestTask(ctx context.Context) (*types.ListMessageMoveTasksResultEntry, error) {
	out, err := r.client.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &r.from, MaxResults: aws.Int32(1)})
	if err != nil || len(out.Results) == 0 {
		return nil, err
	}
	return &out.Results[0], nil
}

// Wait waits for the end of the task and returns how many messages it moved.
// An interrupt cancels the task.
func (r *Redrive) Wait(ctx context.Context) (moved int64, err error) {
	for unlisted := 0; unlisted < maxTaskPolls; {
		task, err := r.latestTask(ctx)
		switch {
		case errors.Is(err, context.Canceled):
			return r.cancel(context.WithoutCancel(ctx), moved)
		case err != nil:
			return moved, fmt.Errorf("follow the move from %s: %w", r.from, err)
		case task == nil || task.StartedTimestamp == r.previous:
			unlisted++
		default:
			moved = task.ApproximateNumberOfMessagesMoved
			switch status := aws.ToString(task.Status); status {
			case "COMPLETED":
				return moved, nil
			case "FAILED", "CANCELLED":
				return moved, fmt.Errorf("the move ended as %s: %s", status, aws.ToString(task.FailureReason))
			}
		}
		if pause.For(ctx, taskPoll) != nil {
			return r.cancel(context.WithoutCancel(ctx), moved)
		}
	}
	return moved, fmt.Errorf("follow the move from %s: SQS does not list the task", r.from)
}

func (r *Redrive) cancel(ctx context.Context, moved int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	out, err := r.client.CancelMessageMoveTask(ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: &r.handle})
	if err != nil {
		return moved, fmt.Errorf("interrupted, but the move could not be stopped: %w", err)
	}
	return out.ApproximateNumberOfMessagesMoved, errors.New("interrupted; the rest stays in the dead letter queue")
}
