package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// task is one message on its way. One goroutine at a time works on it.
type task struct {
	message  *events.SQSMessage
	lane     webhook.Lane // that the message came in
	ref      webhook.DeliveryRef
	delivery webhook.DeliveryInput
	twin     *task // the same message received twice: its end is this one's

	outcome  webhook.Outcome   // of the attempt
	disabled bool              // the endpoint is DISABLED by its answer
	row      *webhook.Delivery // as it is after the attempt, or another's of the same number; nil: expired
	settled  bool              // row is what the table holds
	counted  bool              // by the attempt of this task

	wait time.Duration // until the retry that the message stays for
	err  error         // why the message stays in the queue; errLater: for its retry
}

// stays reports whether the message is to come again.
func (t *task) stays() bool {
	if t.twin != nil {
		return t.twin.stays()
	}
	return t.err != nil
}

// failed reports whether the message could not be worked on.
func (t *task) failed() bool { return t.err != nil && !errors.Is(t.err, errLater) }

// guard does something for tasks; a panic in it leaves their messages to the
// queue and the other tasks alone.
func guard(tasks []*task, do func()) {
	err := recovered(func() error { do(); return nil })
	if err == nil {
		return
	}
	for _, t := range tasks {
		t.err = err
	}
}

// recovered turns a panic into an error.
func recovered(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do()
}

// deal returns the tasks to be worked on: those that were read and whose
// message may bring its row's attempt, one for each row, the one whose turn
// comes first. A further message of a row is done, since the other one stays,
// has another sent in its place, or brings the row to its end.
func deal(tasks []*task, now value.Time) []*task {
	type place struct {
		*task
		wait time.Duration
	}
	byRow := make(map[value.ID]place, len(tasks))
	for _, t := range tasks {
		row := t.delivery.Delivery
		if t.err != nil || row == nil || !row.Pending() {
			continue
		}
		turn, wait := turnOf(row, t, now)
		if turn == drop {
			continue
		}
		if first, known := byRow[row.ID]; !known || wait < first.wait {
			byRow[row.ID] = place{t, wait}
		}
	}
	open := make([]*task, 0, len(byRow))
	for _, t := range tasks {
		switch first := byRow[t.ref.DeliveryID]; {
		case first.task == nil || t.err != nil:
		case first.task == t:
			open = append(open, t)
		case first.message.MessageId == t.message.MessageId:
			t.twin = first.task
		}
	}
	return open
}
