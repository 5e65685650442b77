package queueserver

import "fmt"

// messagePut enters a message: a send writes it with its first state, a snapshot with its present one.
type messagePut struct {
	queue             uint64
	group             string
	message           message // without its phase and lists, which follow from the state
	inFlight, delayed bool
}

func (r *messagePut) fields(c *codec) {
	m := &r.message
	c.uints(&r.queue, &m.seq)
	c.strings(&m.id, &r.group)
	c.ints(&m.sent, &m.visible, &m.received, &m.first)
	c.count(&m.count)
	c.count(&m.arrived)
	c.strings(&m.source)
	c.bool(&r.inFlight)
	c.bool(&r.delayed)
	if c.reading {
		m.content = new(content)
	}
	m.content.fields(c)
}

func (t *content) fields(c *codec) {
	c.strings(&t.body)
	c.bytes(t.bodyMD5[:])
	c.strings(&t.trace)
	if n := c.length(len(t.attributes)); c.reading && n > 0 {
		t.attributes = make([]attribute, n)
	}
	for i := range t.attributes {
		a := &t.attributes[i]
		c.strings(&a.name, &a.dataType, &a.value)
		c.bool(&a.binary)
	}
}

func (r *messagePut) apply(s *state) error {
	q, err := s.queue(r.queue)
	if err != nil {
		return err
	}
	if q.messages[r.message.seq] != nil {
		return fmt.Errorf("a second message %d in queue %q", r.message.seq, q.name)
	}
	s.lastSeq = max(s.lastSeq, r.message.seq)
	in := phaseReady
	switch {
	case r.inFlight:
		in = phaseInFlight
	case r.delayed:
		in = phaseDelayed
	}
	m := r.message
	q.add(&m, r.group, in)
	return nil
}

// messageReceived counts a receive of a message and makes it invisible.
type messageReceived struct {
	queue, seq  uint64
	at, visible int64
}

func (r *messageReceived) fields(c *codec) {
	c.uints(&r.queue, &r.seq)
	c.ints(&r.at, &r.visible)
}

func (r *messageReceived) apply(s *state) error {
	q, m, err := s.message(r.queue, r.seq)
	if err != nil {
		return err
	}
	if m.first == 0 {
		m.first = r.at
	}
	m.count++
	m.received = r.at
	q.changeVisibility(m, r.visible)
	return nil
}

// visibilityChanged sets when a received message becomes visible again; a time that has passed makes it so at once.
type visibilityChanged struct {
	queue, seq uint64
	visible    int64
}

func (r *visibilityChanged) fields(c *codec) {
	c.uints(&r.queue, &r.seq)
	c.ints(&r.visible)
}

func (r *visibilityChanged) apply(s *state) error {
	q, m, err := s.message(r.queue, r.seq)
	if err != nil {
		return err
	}
	q.changeVisibility(m, r.visible)
	return nil
}

// messageDeleted removes a message: its consumer deleted it, or its retention period ended.
type messageDeleted struct {
	queue, seq uint64
}

func (r *messageDeleted) fields(c *codec) {
	c.uints(&r.queue, &r.seq)
}

func (r *messageDeleted) apply(s *state) error {
	q, m, err := s.message(r.queue, r.seq)
	if err != nil {
		return err
	}
	q.remove(m)
	return nil
}

// messageMoved takes a message to another queue, where it is ready at once. A redrive keeps its id, the time of its
// send and its receives; a move task (task is not 0) makes it a new message with the same content.
type messageMoved struct {
	from, seq   uint64
	to, arrival uint64 // the queue and the sequence number there
	source      string // the ARN that redrive names as its source, empty for a move task
	id          string // the new id, empty for a redrive
	sent        int64  // the new time of send, for a move task
	task        uint64
}

func (r *messageMoved) fields(c *codec) {
	c.uints(&r.from, &r.seq, &r.to, &r.arrival, &r.task)
	c.strings(&r.source, &r.id)
	c.ints(&r.sent)
}

func (r *messageMoved) apply(s *state) error {
	from, m, err := s.message(r.from, r.seq)
	if err != nil {
		return err
	}
	to, err := s.queue(r.to)
	if err != nil {
		return err
	}
	groupName := m.group.name
	from.remove(m)
	m.seq, m.source = r.arrival, r.source
	if r.task != 0 {
		m.id, m.sent = r.id, r.sent
		m.count, m.received, m.first = 0, 0, 0
		if t := s.tasks[r.task]; t != nil {
			t.moved++
		}
	}
	m.arrived, m.visible = m.count, 0
	s.lastSeq = max(s.lastSeq, m.seq)
	to.add(m, groupName, phaseReady)
	return nil
}
