package queueserver

import (
	"encoding/binary"
	"fmt"
)

// A record is one change of the state. What an operation decides it writes as records, and both the running server and a
// reopened one get their state from applying them, so that the two cannot differ.
type record interface {
	// encode appends the kind and the fields.
	encode(b []byte) []byte
	// apply changes the state. An error means that the record does not fit it: the journal is damaged.
	apply(*state) error
}

// The kinds of record, the first byte of each. A number, once used, keeps its meaning.
const (
	kindQueuePut          = 1
	kindQueueRemoved      = 2
	kindQueuePurged       = 3
	kindMessagePut        = 4
	kindMessageReceived   = 5
	kindVisibilityChanged = 6
	kindMessageDeleted    = 7
	kindMessageMoved      = 8
	kindTaskPut           = 9
	kindSnapshotEnd       = 10
	kindNameFreed         = 11
)

func decodeRecord(b []byte) (record, error) {
	if len(b) == 0 {
		return nil, errMalformed
	}
	d := &decoder{rest: b[1:]}
	var r record
	switch b[0] {
	case kindQueuePut:
		r = decodeQueuePut(d)
	case kindQueueRemoved:
		r = &queueRemoved{queue: d.uint(), at: d.int()}
	case kindQueuePurged:
		r = &queuePurged{queue: d.uint(), at: d.int()}
	case kindMessagePut:
		r = decodeMessagePut(d)
	case kindMessageReceived:
		r = &messageReceived{queue: d.uint(), seq: d.uint(), at: d.int(), visible: d.int()}
	case kindVisibilityChanged:
		r = &visibilityChanged{queue: d.uint(), seq: d.uint(), visible: d.int()}
	case kindMessageDeleted:
		r = &messageDeleted{queue: d.uint(), seq: d.uint()}
	case kindMessageMoved:
		r = decodeMessageMoved(d)
	case kindTaskPut:
		r = decodeTaskPut(d)
	case kindSnapshotEnd:
		r = &snapshotEnd{records: d.uint(), lastSeq: d.uint(), lastQueue: d.uint()}
	case kindNameFreed:
		r = &nameFreed{name: d.string(), at: d.int()}
	default:
		return nil, fmt.Errorf("%w: unknown kind %d", errMalformed, b[0])
	}
	return r, d.finish()
}

// queuePut makes a queue, or gives an existing one new attributes and tags.
type queuePut struct {
	queue                     uint64
	name                      string
	created, modified, purged int64
	attributes, tags          map[string]string
}

func (r *queuePut) encode(b []byte) []byte {
	b = append(b, kindQueuePut)
	b = binary.AppendUvarint(b, r.queue)
	b = appendString(b, r.name)
	b = binary.AppendVarint(b, r.created)
	b = binary.AppendVarint(b, r.modified)
	b = binary.AppendVarint(b, r.purged)
	b = appendMap(b, r.attributes)
	return appendMap(b, r.tags)
}

func decodeQueuePut(d *decoder) *queuePut {
	return &queuePut{
		queue: d.uint(), name: d.string(),
		created: d.int(), modified: d.int(), purged: d.int(),
		attributes: d.stringMap(), tags: d.stringMap(),
	}
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

func (r *queueRemoved) encode(b []byte) []byte {
	b = append(b, kindQueueRemoved)
	b = binary.AppendUvarint(b, r.queue)
	return binary.AppendVarint(b, r.at)
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

// nameFreed carries over a snapshot when a queue's name became free.
type nameFreed struct {
	name string
	at   int64
}

func (r *nameFreed) encode(b []byte) []byte {
	b = append(b, kindNameFreed)
	b = appendString(b, r.name)
	return binary.AppendVarint(b, r.at)
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

func (r *queuePurged) encode(b []byte) []byte {
	b = append(b, kindQueuePurged)
	b = binary.AppendUvarint(b, r.queue)
	return binary.AppendVarint(b, r.at)
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

// snapshotEnd closes a snapshot: one without it was not finished. It carries the counters, which must not run backwards
// when the messages that had the highest numbers are gone.
type snapshotEnd struct {
	records, lastSeq, lastQueue uint64
}

func (r *snapshotEnd) encode(b []byte) []byte {
	b = append(b, kindSnapshotEnd)
	b = binary.AppendUvarint(b, r.records)
	b = binary.AppendUvarint(b, r.lastSeq)
	return binary.AppendUvarint(b, r.lastQueue)
}

func (r *snapshotEnd) apply(s *state) error {
	s.lastSeq = max(s.lastSeq, r.lastSeq)
	s.lastQueue = max(s.lastQueue, r.lastQueue)
	return nil
}
