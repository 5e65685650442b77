package queueserver

import (
	"cmp"
	"maps"
	"slices"
	"time"

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
	maxTasks = 10 // kept for a source
	// taskSlice is how many messages a task without a rate moves while requests wait.
	taskSlice = 200
)

// task moves the messages that were visible in a dead-letter queue when it was started to another queue, or each back
// to the queue it came from.
type task struct {
	ID          uint64 // from the same sequence as the messages, so that none comes twice
	UUID        string
	Source      string // the queue's name
	Destination string // an ARN; empty: each message's source
	Rate        int64  // messages per second, 0 for as fast as possible
	Status      string
	Failure     string
	Started     int64
	LastSeq     uint64 // messages that arrived later are not the task's
	ToMove      int64
	Moved       int64
}

// taskPut makes a task or changes its status.
type taskPut struct {
	Task task
}

func (r *taskPut) apply(s *state) error {
	t := r.Task
	s.tasks[t.ID] = &t
	s.lastSeq = max(s.lastSeq, t.ID)
	if of := s.tasksOf(t.Source); len(of) > maxTasks {
		delete(s.tasks, of[len(of)-1].ID)
	}
	return nil
}

// tasksOf returns the tasks of a source, the newest first.
func (s *state) tasksOf(source string) []*task {
	newest := func(a, b *task) int { return cmp.Compare(b.ID, a.ID) }
	of := slices.SortedFunc(maps.Values(s.tasks), newest)
	return slices.DeleteFunc(of, func(t *task) bool { return t.Source != source })
}

// inPhase returns the sequence numbers of the messages in a phase that arrived not after last, the oldest first.
func (q *queue) inPhase(in phase, last uint64) []uint64 {
	var seqs []uint64
	for seq, m := range q.messages {
		if m.phase == in && seq <= last {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// resumeTasks continues the tasks that were running when the server last ended.
func (s *Server) resumeTasks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Clock().UnixMilli()
	for _, t := range s.state.tasks {
		if q := s.state.names[t.Source]; q != nil && t.Status == taskRunning {
			q.showDue(now)
			s.run(t.ID, t.Rate, q.inPhase(phaseReady, t.LastSeq))
		}
	}
}

// run moves the messages in the background, at the task's rate.
func (s *Server) run(id uint64, rate int64, seqs []uint64) {
	pause, slice := time.Duration(0), taskSlice
	if rate > 0 {
		pause, slice = time.Second/time.Duration(rate), 1
	}
	s.tasks.Go(func() {
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
			if err != nil && !s.closing() {
				s.config.Logger.Error("move task stopped", "error", err)
			}
			if seqs = seqs[n:]; !running || err != nil {
				return
			}
		}
	})
}

// step moves the messages that are still visible and reports whether the task continues.
func (c *change) step(id uint64, seqs []uint64, last bool) (bool, error) {
	t := c.tasks[id]
	if t == nil || t.Status != taskRunning {
		return false, nil
	}
	source := c.names[t.Source]
	if err := c.refresh(source); err != nil {
		return false, err
	}
	for _, seq := range seqs {
		m := source.messages[seq]
		if m == nil || m.phase != phaseReady {
			continue
		}
		to, failure := c.destination(t, m)
		if failure != "" {
			return false, c.end(t, taskFailed, failure)
		}
		moved := &messageMoved{From: source.id, Seq: seq, To: to.id, Arrival: c.lastSeq + 1, ID: uuid.NewString(), Sent: c.now, Task: id}
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
	arn := t.Destination
	if arn == "" {
		arn = m.Source
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
	ended.Status, ended.Failure = status, failure
	return c.write(&taskPut{ended})
}
