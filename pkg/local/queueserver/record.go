package queueserver

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
)

// A record is one change of the state. What an operation decides it writes as records, and both the running server and
// a reopened one get their state from applying them, so that the two cannot differ.
type record interface {
	// apply changes the state. An error means that the record does not fit it: the journal is damaged.
	apply(s *state) error
}

// kinds has a record of each kind. A kind's name and those of its fields, by which the journal knows them, keep their
// meaning once they were used.
var kinds = []record{
	&queuePut{}, &queueRemoved{}, &queuePurged{}, &nameFreed{}, &sequences{}, &taskPut{},
	&messagePut{}, &messageReceived{}, &visibilityChanged{}, &messageDeleted{}, &messageMoved{},
}

func kindOf(r record) string { return reflect.TypeOf(r).Elem().Name() }

// appendRecord appends a record's kind, a space and its fields as JSON.
func appendRecord(b []byte, r record) []byte {
	fields, err := json.Marshal(r, json.OmitZeroStructFields(true), json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", r, err)) // no text of ours can fail to encode
	}
	return append(append(append(b, kindOf(r)...), ' '), fields...)
}

// errMalformed is the error of reading a record; the journal adds its position.
var errMalformed = errors.New("malformed record")

func readRecord(b []byte) (record, error) {
	name, fields, _ := bytes.Cut(b, []byte(" "))
	for _, kind := range kinds {
		if kindOf(kind) != string(name) {
			continue
		}
		r := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(record) //nolint:forcetypeassert // of a record's type
		if err := json.Unmarshal(fields, r, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		return r, nil
	}
	return nil, fmt.Errorf("%w: unknown kind %q", errMalformed, name)
}

// queuePut makes a queue, or gives an existing one new attributes and tags.
type queuePut struct {
	Queue                     uint64
	Name                      string
	Created, Modified, Purged int64
	Attributes, Tags          map[string]string
}

func (r *queuePut) apply(s *state) error {
	set, err := settingsOf(r.Attributes)
	if err != nil {
		return fmt.Errorf("attributes of queue %q: %w", r.Name, err)
	}
	q := s.queues[r.Queue]
	if q == nil {
		if s.names[r.Name] != nil {
			return fmt.Errorf("a second queue %q", r.Name)
		}
		q = newQueue(r.Queue, s.maxInFlight)
		q.name, q.created = r.Name, r.Created
		s.queues[q.id], s.names[q.name] = q, q
		s.lastQueue = max(s.lastQueue, q.id)
		delete(s.freed, q.name)
	}
	q.modified, q.purged = r.Modified, r.Purged
	q.attributes, q.tags, q.settings = r.Attributes, r.Tags, set
	return nil
}

// queueRemoved deletes a queue with everything in it and every move task that it was the source of.
type queueRemoved struct {
	Queue uint64
	At    int64
}

func (r *queueRemoved) apply(s *state) error {
	q, err := s.queue(r.Queue)
	if err != nil {
		return err
	}
	delete(s.queues, q.id)
	delete(s.names, q.name)
	s.freed[q.name] = r.At
	for id, t := range s.tasks {
		if t.Source == q.name {
			delete(s.tasks, id)
		}
	}
	q.wake()
	return nil
}

// nameFreed keeps in a snapshot when a queue's name became free.
type nameFreed struct {
	Name string
	At   int64
}

func (r *nameFreed) apply(s *state) error {
	s.freed[r.Name] = r.At
	return nil
}

// queuePurged deletes every message of a queue.
type queuePurged struct {
	Queue uint64
	At    int64
}

func (r *queuePurged) apply(s *state) error {
	q, err := s.queue(r.Queue)
	if err != nil {
		return err
	}
	q.purged = r.At
	q.clear()
	return nil
}

// sequences keeps in a snapshot the counters, which must not run backwards when the messages with the highest numbers are
// gone.
type sequences struct {
	LastSeq, LastQueue uint64
}

func (r *sequences) apply(s *state) error {
	s.lastSeq = max(s.lastSeq, r.LastSeq)
	s.lastQueue = max(s.lastQueue, r.LastQueue)
	return nil
}
