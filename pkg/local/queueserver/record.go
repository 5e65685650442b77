package queueserver

import "fmt"

// A record is one change of the state. What an operation decides it writes as records, and both the running server and
// a reopened one get their state from applying them, so that the two cannot differ.
type record interface {
	kind() byte
	// fields writes or reads the fields.
	fields(c *codec)
	// apply changes the state. An error means that the record does not fit it: the journal is damaged.
	apply(s *state) error
}

// newRecords makes an empty record of each kind. A kind's number, the first byte of its records, keeps its meaning once
// it was used.
var newRecords = [...]func() record{
	1:  func() record { return new(queuePut) },
	2:  func() record { return new(queueRemoved) },
	3:  func() record { return new(queuePurged) },
	4:  func() record { return new(messagePut) },
	5:  func() record { return new(messageReceived) },
	6:  func() record { return new(visibilityChanged) },
	7:  func() record { return new(messageDeleted) },
	8:  func() record { return new(messageMoved) },
	9:  func() record { return new(taskPut) },
	10: func() record { return new(snapshotEnd) },
	11: func() record { return new(nameFreed) },
}

func (*queuePut) kind() byte          { return 1 }
func (*queueRemoved) kind() byte      { return 2 }
func (*queuePurged) kind() byte       { return 3 }
func (*messagePut) kind() byte        { return 4 }
func (*messageReceived) kind() byte   { return 5 }
func (*visibilityChanged) kind() byte { return 6 }
func (*messageDeleted) kind() byte    { return 7 }
func (*messageMoved) kind() byte      { return 8 }
func (*taskPut) kind() byte           { return 9 }
func (*snapshotEnd) kind() byte       { return 10 }
func (*nameFreed) kind() byte         { return 11 }

// appendRecord appends a record's kind and its fields.
func appendRecord(b []byte, r record) []byte {
	c := codec{b: append(b, r.kind())}
	r.fields(&c)
	return c.b
}

// readRecord refuses bytes that are left over.
func readRecord(b []byte) (record, error) {
	if len(b) == 0 {
		return nil, errMalformed
	}
	if int(b[0]) >= len(newRecords) || newRecords[b[0]] == nil {
		return nil, fmt.Errorf("%w: unknown kind %d", errMalformed, b[0])
	}
	r := newRecords[b[0]]()
	c := codec{reading: true, b: b[1:]}
	r.fields(&c)
	if c.err == nil && len(c.b) > 0 {
		c.err = errMalformed
	}
	return r, c.err
}

// queuePut makes a queue, or gives an existing one new attributes and tags.
type queuePut struct {
	queue                     uint64
	name                      string
	created, modified, purged int64
	attributes, tags          map[string]string
}

func (r *queuePut) fields(c *codec) {
	c.uints(&r.queue)
	c.strings(&r.name)
	c.ints(&r.created, &r.modified, &r.purged)
	c.stringMap(&r.attributes)
	c.stringMap(&r.tags)
}

func (r *queuePut) apply(s *state) error {
	set, err := settingsOf(r.attributes)
	if err != nil {
		return fmt.Errorf("attributes of queue %q: %w", r.name, err)
	}
	q := s.queues[r.queue]
	if q == nil {
		if s.names[r.name] != nil {
			return fmt.Errorf("a second queue %q", r.name)
		}
		q = newQueue(r.queue, s.maxInFlight)
		q.name, q.created = r.name, r.created
		s.queues[q.id], s.names[q.name] = q, q
		s.lastQueue = max(s.lastQueue, q.id)
		delete(s.freed, q.name)
	}
	q.modified, q.purged = r.modified, r.purged
	q.attributes, q.tags, q.settings = r.attributes, r.tags, set
	return nil
}

// queueRemoved deletes a queue with everything in it and every move task that it was the source of.
type queueRemoved struct {
	queue uint64
	at    int64
}

func (r *queueRemoved) fields(c *codec) {
	c.uints(&r.queue)
	c.ints(&r.at)
}

func (r *queueRemoved) apply(s *state) error {
	q, err := s.queue(r.queue)
	if err != nil {
		return err
	}
	delete(s.queues, q.id)
	delete(s.names, q.name)
	s.freed[q.name] = r.at
	for id, t := range s.tasks {
		if t.source == q.name {
			delete(s.tasks, id)
		}
	}
	q.wake()
	return nil
}

// nameFreed keeps in a snapshot when a queue's name became free.
type nameFreed struct {
	name string
	at   int64
}

func (r *nameFreed) fields(c *codec) {
	c.strings(&r.name)
	c.ints(&r.at)
}

func (r *nameFreed) apply(s *state) error {
	s.freed[r.name] = r.at
	return nil
}

// queuePurged deletes every message of a queue.
type queuePurged struct {
	queue uint64
	at    int64
}

func (r *queuePurged) fields(c *codec) {
	c.uints(&r.queue)
	c.ints(&r.at)
}

func (r *queuePurged) apply(s *state) error {
	q, err := s.queue(r.queue)
	if err != nil {
		return err
	}
	q.purged = r.at
	q.clear()
	return nil
}

// snapshotEnd closes a snapshot: one without it was not finished. It holds the counters, which must not run backwards
// when the messages with the highest numbers are gone.
type snapshotEnd struct {
	records, lastSeq, lastQueue uint64
}

func (r *snapshotEnd) fields(c *codec) {
	c.uints(&r.records, &r.lastSeq, &r.lastQueue)
}

func (r *snapshotEnd) apply(s *state) error {
	s.lastSeq = max(s.lastSeq, r.lastSeq)
	s.lastQueue = max(s.lastQueue, r.lastQueue)
	return nil
}
