package queueserver

import (
	"encoding/binary"
	"fmt"
)

// messagePut enters a message: a send writes it with its first state, a snapshot with its present one.
type messagePut struct {
	queue          uint64
	group          string
	message        message // without its places in lists, which follow from the state
	flying, hidden bool
}

func (r *messagePut) encode(b []byte) []byte {
	m := &r.message
	b = append(b, kindMessagePut)
	b = binary.AppendUvarint(b, r.queue)
	b = binary.AppendUvarint(b, m.seq)
	b = appendString(b, m.id)
	b = appendString(b, r.group)
	for _, t := range [...]int64{m.sent, m.visible, m.received, m.first} {
		b = binary.AppendVarint(b, t)
	}
	b = binary.AppendUvarint(b, uint64(m.count))
	b = binary.AppendUvarint(b, uint64(m.arrived))
	b = appendString(b, m.source)
	b = appendBool(b, r.flying)
	b = appendBool(b, r.hidden)
	return appendContent(b, m.content)
}

func appendContent(b []byte, c *content) []byte {
	b = appendString(b, c.body)
	b = append(b, c.bodyMD5[:]...)
	b = appendString(b, c.trace)
	b = binary.AppendUvarint(b, uint64(len(c.attributes)))
	for _, a := range c.attributes {
		b = appendString(b, a.name)
		b = appendString(b, a.dataType)
		b = appendString(b, a.value)
		b = appendBool(b, a.binary)
	}
	return b
}

func decodeMessagePut(d *decoder) *messagePut {
	r := &messagePut{queue: d.uint()}
	m := &r.message
	m.seq, m.id, r.group = d.uint(), d.string(), d.string()
	m.sent, m.visible, m.received, m.first = d.int(), d.int(), d.int(), d.int()
	m.count, m.arrived, m.source = int(d.uint()), int(d.uint()), d.string()
	r.flying, r.hidden = d.bool(), d.bool()
	m.content = decodeContent(d)
	return r
}

func decodeContent(d *decoder) *content {
	c := &content{body: d.string()}
	copy(c.bodyMD5[:], d.bytes(len(c.bodyMD5)))
	c.trace = d.string()
	if n := d.length(); n > 0 {
		c.attributes = make([]attribute, n)
		for i := range c.attributes {
			c.attributes[i] = attribute{name: d.string(), dataType: d.string(), value: d.string(), binary: d.bool()}
		}
	}
	return c
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
	at := placeReady
	switch {
	case r.flying:
		at = placeFlying
	case r.hidden:
		at = placeDelayed
	}
	m := r.message
	q.add(&m, r.group, at)
	return nil
}

// messageReceived counts a receive of a message and hides it.
type messageReceived struct {
	queue, seq  uint64
	at, visible int64
}

func (r *messageReceived) encode(b []byte) []byte {
	b = append(b, kindMessageReceived)
	b = binary.AppendUvarint(b, r.queue)
	b = binary.AppendUvarint(b, r.seq)
	b = binary.AppendVarint(b, r.at)
	return binary.AppendVarint(b, r.visible)
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
	q.take(m)
	m.visible = r.visible
	q.put(m, placeFlying)
	return nil
}

// visibilityChanged sets when a received message becomes visible again; a time that has passed makes it so at once.
type visibilityChanged struct {
	queue, seq uint64
	visible    int64
}

func (r *visibilityChanged) encode(b []byte) []byte {
	b = append(b, kindVisibilityChanged)
	b = binary.AppendUvarint(b, r.queue)
	b = binary.AppendUvarint(b, r.seq)
	return binary.AppendVarint(b, r.visible)
}

func (r *visibilityChanged) apply(s *state) error {
	q, m, err := s.message(r.queue, r.seq)
	if err != nil {
		return err
	}
	q.take(m)
	m.visible = r.visible
	q.put(m, placeFlying)
	return nil
}

// messageDeleted removes a message: its consumer deleted it, or its retention period ended.
type messageDeleted struct {
	queue, seq uint64
}

func (r *messageDeleted) encode(b []byte) []byte {
	b = append(b, kindMessageDeleted)
	b = binary.AppendUvarint(b, r.queue)
	return binary.AppendUvarint(b, r.seq)
}

func (r *messageDeleted) apply(s *state) error {
	q, m, err := s.message(r.queue, r.seq)
	if err != nil {
		return err
	}
	q.remove(m)
	return nil
}

// messageMoved takes a message to another queue, where it is ready at once. A redrive keeps its id, the time of its send
// and its receives; a move task (task is not 0) makes it a new message with the same content.
type messageMoved struct {
	from, seq   uint64
	to, arrival uint64 // the queue and the sequence number there
	source      string // the ARN that redrive names as its source, empty for a move task
	id          string // the new id, empty for a redrive
	sent        int64  // the new time of send, for a move task
	task        uint64
}

func (r *messageMoved) encode(b []byte) []byte {
	b = append(b, kindMessageMoved)
	for _, n := range [...]uint64{r.from, r.seq, r.to, r.arrival, r.task} {
		b = binary.AppendUvarint(b, n)
	}
	b = appendString(b, r.source)
	b = appendString(b, r.id)
	return binary.AppendVarint(b, r.sent)
}

func decodeMessageMoved(d *decoder) *messageMoved {
	return &messageMoved{
		from: d.uint(), seq: d.uint(), to: d.uint(), arrival: d.uint(), task: d.uint(),
		source: d.string(), id: d.string(), sent: d.int(),
	}
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
	to.add(m, groupName, placeReady)
	return nil
}
