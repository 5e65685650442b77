package queueserver

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

// The states of a move task.
const (
	taskRunning   = "RUNNING"
	taskCompleted = "COMPLETED"
	taskCancelled = "CANCELLED"
)

const (
	// taskSlice is how many messages a task moves while requests wait.
	taskSlice = 200
	// taskPause lets requests through between two slices.
	taskPause = 5 * time.Millisecond
)

// task moves the messages that were visible in a dead-letter queue when it was started to another queue.
type task struct {
	handle       string
	from, to     *queue
	status       string
	started      int64
	messages     []*message // not yet looked at
	toMove, done int64
}

// inPhase returns the messages in a phase in the order of their arrival.
func (q *queue) inPhase(in phase) []*message {
	var all []*message
	for _, m := range q.messages {
		if m.phase == in {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *message) int { return cmp.Compare(a.order, b.order) })
	return all
}

func (s *Server) startMessageMoveTask(_ *http.Request, in *sqs.StartMessageMoveTaskInput) (*sqs.StartMessageMoveTaskOutput, error) {
	out := &sqs.StartMessageMoveTaskOutput{}
	return out, s.update(func(c change) error {
		from, to, err := c.checkTask(aws.ToString(in.SourceArn), aws.ToString(in.DestinationArn))
		if err != nil {
			return err
		}
		c.refresh(from)
		t := &task{handle: uuid.NewString(), from: from, to: to, status: taskRunning, started: c.now, messages: from.inPhase(phaseReady)}
		t.toMove = int64(len(t.messages))
		if last := c.tasks[from.Name]; last != nil { // clients know a task by its time
			t.started = max(t.started, last.started+1)
		}
		c.tasks[from.Name] = t
		out.TaskHandle = &t.handle
		c.running.Go(func() { c.run(t) })
		return nil
	})
}

// checkTask returns the queues of a task that may be started.
func (c change) checkTask(sourceARN, destinationARN string) (from, to *queue, err error) {
	from, to = c.byARN(sourceARN), c.byARN(destinationARN)
	switch {
	case from == nil:
		return nil, nil, errNoARN("SourceArn")
	case destinationARN == "":
		return nil, nil, missing("DestinationArn")
	case to == nil:
		return nil, nil, errNoARN("DestinationArn")
	case from == to:
		return nil, nil, invalid("Source queue arn and destination queue arn cannot be the same.")
	case !c.isDeadLetterQueue(sourceARN):
		return nil, nil, invalid("Source queue must be configured as a Dead Letter Queue.")
	case c.tasks[from.Name] != nil && c.tasks[from.Name].status == taskRunning:
		return nil, nil, invalid("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	}
	return from, to, nil
}

func (c change) isDeadLetterQueue(arn string) bool {
	for _, q := range c.queues {
		if p := q.settings.redrive; p != nil && p.target == arn {
			return true
		}
	}
	return false
}

// run moves the messages in the background, until the server stops.
func (s *Server) run(t *task) {
	for running := true; running && s.sleep(context.Background(), taskPause, nil); {
		err := s.update(func(c change) error {
			c.step(t, min(taskSlice, len(t.messages)))
			running = t.status == taskRunning
			return nil
		})
		if err != nil {
			s.config.Logger.Error("move task stopped", "error", err)
			return
		}
	}
}

// step moves the next n messages as new ones, as far as they are still visible.
func (c change) step(t *task, n int) {
	if t.status != taskRunning {
		return
	}
	c.refresh(t.from)
	for _, m := range t.messages[:n] {
		if t.from.messages[m.ID] != m || m.phase != phaseReady {
			continue
		}
		became := message{ID: uuid.NewString(), Body: m.Body, Group: m.Group, Attributes: m.Attributes, Sent: c.now}
		c.move(t.from, t.to, m, became)
		t.done++
	}
	if t.messages = t.messages[n:]; len(t.messages) == 0 {
		t.status = taskCompleted
	}
}

func (s *Server) cancelMessageMoveTask(_ *http.Request, in *sqs.CancelMessageMoveTaskInput) (*sqs.CancelMessageMoveTaskOutput, error) {
	out := &sqs.CancelMessageMoveTaskOutput{}
	return out, s.update(func(c change) error {
		for _, t := range c.tasks {
			if t.handle == aws.ToString(in.TaskHandle) && t.status == taskRunning {
				t.status = taskCancelled
				out.ApproximateNumberOfMessagesMoved = t.done
				return nil
			}
		}
		return &types.ResourceNotFoundException{Message: aws.String("No such task is running.")}
	})
}

// listMessageMoveTasks returns the latest task of the source since the start of the server, if there is one.
func (s *Server) listMessageMoveTasks(_ *http.Request, in *sqs.ListMessageMoveTasksInput) (*sqs.ListMessageMoveTasksOutput, error) {
	out := &sqs.ListMessageMoveTasksOutput{}
	return out, s.update(func(c change) error {
		source := c.byARN(aws.ToString(in.SourceArn))
		if source == nil {
			return errNoARN("SourceArn")
		}
		t := c.tasks[source.Name]
		if t == nil {
			return nil
		}
		entry := types.ListMessageMoveTasksResultEntry{
			Status: aws.String(t.status), SourceArn: in.SourceArn, DestinationArn: aws.String(arnPrefix + t.to.Name), StartedTimestamp: t.started,
			ApproximateNumberOfMessagesMoved: t.done, ApproximateNumberOfMessagesToMove: &t.toMove,
		}
		out.Results = append(out.Results, entry)
		return nil
	})
}
