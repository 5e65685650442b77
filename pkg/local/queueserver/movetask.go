package queueserver

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// The states of a move task.
const (
	taskRunning   = "RUNNING"
	taskCompleted = "COMPLETED"
	taskCancelled = "CANCELLED"
	taskFailed    = "FAILED"
)

const (
	maxTaskRate = 500 // messages per second
	maxTasks    = 10  // kept for a source
	// taskSlice is how many messages a task without a rate moves while requests wait.
	taskSlice = 200
)

// task moves the messages that were visible in a dead-letter queue when it was started to another queue, or each back to
// the queue it came from.
type task struct {
	id          uint64 // from the same sequence as the messages, so that none comes twice
	uuid        string
	source      string // the queue's name
	destination string // an ARN; empty: each message's source
	rate        int64  // messages per second, 0 for as fast as possible
	status      string
	failure     string
	started     int64
	lastSeq     uint64 // messages that arrived later are not the task's
	toMove      int64
	moved       int64
}

// taskPut makes a task or changes its status.
type taskPut struct {
	task task
}

func (r *taskPut) encode(b []byte) []byte {
	t := &r.task
	b = append(b, kindTaskPut)
	b = binary.AppendUvarint(b, t.id)
	b = binary.AppendUvarint(b, t.lastSeq)
	for _, s := range [...]string{t.uuid, t.source, t.destination, t.status, t.failure} {
		b = appendString(b, s)
	}
	for _, n := range [...]int64{t.rate, t.started, t.toMove, t.moved} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func decodeTaskPut(d *decoder) *taskPut {
	return &taskPut{task{
		id: d.uint(), lastSeq: d.uint(),
		uuid: d.string(), source: d.string(), destination: d.string(), status: d.string(), failure: d.string(),
		rate: d.int(), started: d.int(), toMove: d.int(), moved: d.int(),
	}}
}

func (r *taskPut) apply(s *state) error {
	t := r.task
	s.tasks[t.id] = &t
	s.lastSeq = max(s.lastSeq, t.id)
	if of := s.tasksOf(t.source); len(of) > maxTasks {
		delete(s.tasks, of[len(of)-1].id)
	}
	return nil
}

// tasksOf returns the tasks of a source, the newest first.
func (s *state) tasksOf(source string) []*task {
	newest := func(a, b *task) int { return cmp.Compare(b.id, a.id) }
	of := slices.SortedFunc(maps.Values(s.tasks), newest)
	return slices.DeleteFunc(of, func(t *task) bool { return t.source != source })
}

// taskHandle is what a handle encodes.
type taskHandle struct {
	TaskID    string `json:"taskId"`
	SourceARN string `json:"sourceArn"`
}

func (s *Server) handleOf(t *task) (string, error) {
	b, err := json.Marshal(taskHandle{t.uuid, s.arn(t.source)})
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
			id: c.lastSeq + 1, uuid: uuid.NewString(), source: source.name, destination: in.DestinationARN,
			status: taskRunning, started: c.now, lastSeq: c.lastSeq, toMove: int64(source.ready),
		}
		if in.Rate != nil {
			t.rate = *in.Rate
		}
		if out.TaskHandle, err = s.handleOf(&t); err != nil {
			return err
		}
		if err := c.write(&taskPut{t}); err != nil {
			return err
		}
		s.run(t.id, t.rate, source.visibleUpTo(t.lastSeq))
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
		if t.status == taskRunning {
			return nil, errParameter("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
		}
	}
	return source, nil
}

// visibleUpTo returns the sequence numbers of the visible messages that arrived not after last, the oldest first.
func (q *queue) visibleUpTo(last uint64) []uint64 {
	var seqs []uint64
	for seq, m := range q.messages {
		if m.place == placeReady && seq <= last {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// resumeTasks goes on with the tasks that were running when the server last ended.
func (s *Server) resumeTasks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Clock().UnixMilli()
	for _, t := range s.state.tasks {
		if q := s.state.names[t.source]; q != nil && t.status == taskRunning {
			q.show(now)
			s.run(t.id, t.rate, q.visibleUpTo(t.lastSeq))
		}
	}
}

// run moves the messages in the background, at the task's rate.
func (s *Server) run(id uint64, rate int64, seqs []uint64) {
	pause, slice := time.Duration(0), taskSlice
	if rate > 0 {
		pause, slice = time.Second/time.Duration(rate), 1
	}
	s.work.Go(func() {
		for {
			timer := time.NewTimer(pause)
			select {
			case <-s.stop:
				timer.Stop()
				return
			case <-timer.C:
			}
			n := min(slice, len(seqs))
			running := false
			err := s.update(func(c *change) (err error) {
				running, err = c.step(id, seqs[:n], n == len(seqs))
				return err
			})
			if err != nil {
				s.config.Logger.Error("move task stopped", "error", err)
			}
			if seqs = seqs[n:]; !running || err != nil {
				return
			}
		}
	})
}

// step moves the messages that are still visible and reports whether the task goes on.
func (c *change) step(id uint64, seqs []uint64, last bool) (bool, error) {
	t := c.tasks[id]
	if t == nil || t.status != taskRunning {
		return false, nil
	}
	source := c.names[t.source]
	if err := c.refresh(source); err != nil {
		return false, err
	}
	for _, seq := range seqs {
		m := source.messages[seq]
		if m == nil || m.place != placeReady {
			continue
		}
		to, failure := c.destination(t, m)
		if failure != "" {
			return false, c.end(t, taskFailed, failure)
		}
		moved := &messageMoved{from: source.id, seq: seq, to: to.id, arrival: c.lastSeq + 1, id: uuid.NewString(), sent: c.now, task: id}
		if err := c.write(moved); err != nil {
			return false, err
		}
	}
	if last {
		return false, c.end(t, taskCompleted, "")
	}
	return true, nil
}

// destination returns where a message goes, or why it cannot.
func (c *change) destination(t *task, m *message) (to *queue, failure string) {
	arn := t.destination
	if arn == "" {
		arn = m.source
	}
	if arn == "" {
		return nil, "CouldNotDetermineMessageSource"
	}
	if to = c.byARN(arn); to == nil {
		return nil, errNoQueue().code
	}
	return to, ""
}

func (c *change) end(t *task, status, failure string) error {
	ended := *t
	ended.status, ended.failure = status, failure
	return c.write(&taskPut{ended})
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
			if t.uuid != handle.TaskID {
				continue
			}
			if t.status != taskRunning {
				return modelled("UnsupportedOperation", "Only a running task can be cancelled; this one is %s.", t.status)
			}
			out.Moved = t.moved
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
				Status: t.status, SourceARN: in.SourceARN, DestinationARN: t.destination, Rate: t.rate,
				Moved: t.moved, ToMove: t.toMove, FailureReason: t.failure, Started: t.started,
			}
			if t.status == taskRunning {
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
