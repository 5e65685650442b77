package queueserver

import "fmt"

// messagePut enters a message: a send writes it with its first state, a snapshot with its present one.
type messagePut struct {
	Queue             uint64
	Group             string
	Message           message // without its phase and lists, which follow from the state
	InFlight, Delayed bool
}

func (r *messagePut) apply(s *state) error {
	q, err := s.queue(r.Queue)
	if err != nil {
		return err
	}
	if q.messages[r.Message.Seq] != nil {
		return fmt.Errorf("a second message %d in queue %q", r.Message.Seq, q.name)
	}
	s.lastSeq = max(s.lastSeq, r.Message.Seq)
	in := phaseReady
	switch {
	case r.InFlight:
		in = phaseInFlight
	case r.Delayed:
		in = phaseDelayed
	}
	m := r.Message
	q.add(&m, r.Group, in)
	return nil
}

// messageReceived counts a receive of a message and makes it invisible.
type messageReceived struct {
	Queue, Seq  uint64
	At, Visible int64
}

func (r *messageReceived) apply(s *state) error {
	q, m, err := s.message(r.Queue, r.Seq)
	if err != nil {
		return err
	}
	if m.First == 0 {
		m.First = r.At
	}
	m.Count++
	m.Received = r.At
	q.changeVisibility(m, r.Visible)
	return nil
}

// visibilityChanged sets when a received message becomes visible again; a time that has passed makes it so at once.
type visibilityChanged struct {
	Queue, Seq uint64
	Visible    int64
}

func (r *visibilityChanged) apply(s *state) error {
	q, m, err := s.message(r.Queue, r.Seq)
	if err != nil {
		return err
	}
	q.changeVisibility(m, r.Visible)
	return nil
}

// messageDeleted removes a message: its consumer deleted it, or its retention period ended.
type messageDeleted struct {
	Queue, Seq uint64
}

func (r *messageDeleted) apply(s *state) error {
	q, m, err := s.message(r.Queue, r.Seq)
	if err != nil {
		return err
	}
	q.remove(m)
	return nil
}

// messageMoved takes a message to another queue, where it is ready at once. A redrive keeps its id, the time of its
// send and its receives; a move task (task is not 0) makes it a new message with the same content.
type messageMoved struct {
	From, Seq   uint64
	To, Arrival uint64 // the queue and the sequence number there
	Source      string // the ARN that redrive names as its source, empty for a move task
	ID          string // the new id, empty for a redrive
	Sent        int64  // the new time of send, for a move task
	Task        uint64
}

func (r *messageMoved) apply(s *state) error {
	from, m, err := s.message(r.From, r.Seq)
	if err != nil {
		return err
	}
	to, err := s.queue(r.To)
	if err != nil {
		return err
	}
	groupName := m.group.name
	from.remove(m)
	m.Seq, m.Source = r.Arrival, r.Source
	if r.Task != 0 {
		m.ID, m.Sent = r.ID, r.Sent
		m.Count, m.Received, m.First = 0, 0, 0
		if t := s.tasks[r.Task]; t != nil {
			t.Moved++
		}
	}
	m.Arrived, m.Visible = m.Count, 0
	s.lastSeq = max(s.lastSeq, m.Seq)
	to.add(m, groupName, phaseReady)
	return nil
}
