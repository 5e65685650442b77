package queueserver

import (
	"encoding/base64"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const maxTaskRate = 500 // messages per second

// taskHandle is the content of a handle.
type taskHandle struct {
	TaskID    string `json:"taskId"`
	SourceARN string `json:"sourceArn"`
}

func (s *Server) handleOf(t *task) (string, error) {
	b, err := json.Marshal(taskHandle{t.UUID, s.arn(t.Source)})
	return base64.StdEncoding.EncodeToString(b), err
}

type startTaskInput struct {
	SourceARN      string `json:"SourceArn"`
	DestinationARN string `json:"DestinationArn"`
	Rate           *int64 `json:"MaxNumberOfMessagesPerSecond"`
}

type taskHandleOutput struct {
	TaskHandle string
}

func (s *Server) startMessageMoveTask(_ call, in *startTaskInput) (out taskHandleOutput, err error) {
	err = s.update(func(c *change) error {
		source, err := c.checkTask(in)
		if err != nil {
			return err
		}
		t := task{
			ID: c.lastSeq + 1, UUID: uuid.NewString(), Source: source.name, Destination: in.DestinationARN,
			Status: taskRunning, Started: c.now, LastSeq: c.lastSeq, ToMove: int64(source.ready),
		}
		if in.Rate != nil {
			t.Rate = *in.Rate
		}
		if out.TaskHandle, err = s.handleOf(&t); err != nil {
			return err
		}
		if err := c.write(&taskPut{t}); err != nil {
			return err
		}
		s.run(t.ID, t.Rate, source.inPhase(phaseReady, t.LastSeq))
		return nil
	})
	return out, err
}

// checkTask checks a request for a task and returns its source.
func (c *change) checkTask(in *startTaskInput) (*queue, error) {
	if in.SourceARN == "" {
		return nil, errMissing("SourceArn")
	}
	if in.Rate != nil && (*in.Rate < 1 || *in.Rate > maxTaskRate) {
		return nil, errValue(*in.Rate, "MaxNumberOfMessagesPerSecond", "Must be between 1 and 500, if provided.")
	}
	source := c.byARN(in.SourceARN)
	if source == nil {
		return nil, errNoARN("SourceArn")
	}
	if err := c.refresh(source); err != nil {
		return nil, err
	}
	if len(c.sourcesOf(source)) == 0 {
		return nil, errParameter("Source queue must be configured as a Dead Letter Queue.")
	}
	if in.DestinationARN != "" && c.byARN(in.DestinationARN) == nil {
		return nil, errNoARN("DestinationArn")
	}
	if in.DestinationARN == in.SourceARN {
		return nil, errParameter("Source queue arn and destination queue arn cannot be the same.")
	}
	for _, t := range c.tasksOf(source.name) {
		if t.Status == taskRunning {
			return nil, errParameter("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
		}
	}
	return source, nil
}

type cancelTaskOutput struct {
	Moved int64 `json:"ApproximateNumberOfMessagesMoved"`
}

func (s *Server) cancelMessageMoveTask(_ call, in *taskHandleOutput) (out cancelTaskOutput, err error) {
	var handle taskHandle
	b, err := base64.StdEncoding.DecodeString(in.TaskHandle)
	if err == nil {
		err = json.Unmarshal(b, &handle)
	}
	if err != nil || handle.TaskID == "" {
		return out, errParameter("Value for parameter TaskHandle is invalid.")
	}
	err = s.update(func(c *change) error {
		source := c.byARN(handle.SourceARN)
		if source == nil {
			return errNoARN("SourceArn")
		}
		for _, t := range c.tasksOf(source.name) {
			if t.UUID != handle.TaskID {
				continue
			}
			if t.Status != taskRunning {
				return modelled("UnsupportedOperation", "Only a running task can be cancelled; this one is %s.", t.Status)
			}
			out.Moved = t.Moved
			return c.end(t, taskCancelled, "")
		}
		return errNoResource("Task does not exist.")
	})
	return out, err
}

type listTasksInput struct {
	SourceARN  string `json:"SourceArn"`
	MaxResults *int
}

type listTasksOutput struct {
	Results []taskOutput
}

type taskOutput struct {
	TaskHandle     string `json:",omitzero"` // of a running task only
	Status         string
	SourceARN      string `json:"SourceArn"`
	DestinationARN string `json:"DestinationArn,omitzero"`
	Rate           int64  `json:"MaxNumberOfMessagesPerSecond,omitzero"`
	Moved          int64  `json:"ApproximateNumberOfMessagesMoved"`
	ToMove         int64  `json:"ApproximateNumberOfMessagesToMove"`
	FailureReason  string `json:",omitzero"`
	Started        int64  `json:"StartedTimestamp"`
}

func (s *Server) listMessageMoveTasks(_ call, in *listTasksInput) (out listTasksOutput, err error) {
	limit := 1
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	if limit < 1 || limit > maxTasks {
		return out, errValue(limit, "MaxResults", "Must be between 1 and 10, if provided.")
	}
	err = s.update(func(c *change) error {
		source := c.byARN(in.SourceARN)
		if source == nil {
			return errNoARN("SourceArn")
		}
		of := c.tasksOf(source.name)
		for _, t := range of[:min(limit, len(of))] {
			o := taskOutput{
				Status: t.Status, SourceARN: in.SourceARN, DestinationARN: t.Destination, Rate: t.Rate,
				Moved: t.Moved, ToMove: t.ToMove, FailureReason: t.Failure, Started: t.Started,
			}
			if t.Status == taskRunning {
				if o.TaskHandle, err = s.handleOf(t); err != nil {
					return err
				}
			}
			out.Results = append(out.Results, o)
		}
		return nil
	})
	return out, err
}
