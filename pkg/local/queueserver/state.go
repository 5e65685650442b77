package queueserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// state is every queue and move task. It changes only by records.
type state struct {
	queues      map[uint64]*queue
	names       map[string]*queue
	freed       map[string]int64 // deleted queues' names, and when
	tasks       map[uint64]*task
	lastSeq     uint64
	lastQueue   uint64
	maxInFlight int
}

func newState(maxInFlight int) *state {
	return &state{
		queues:      map[uint64]*queue{},
		names:       map[string]*queue{},
		freed:       map[string]int64{},
		tasks:       map[uint64]*task{},
		maxInFlight: maxInFlight,
	}
}

func (s *state) apply(r record) error { return r.apply(s) }

func (s *state) queue(id uint64) (*queue, error) {
	if q := s.queues[id]; q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("no queue %d", id)
}

func (s *state) message(queue, seq uint64) (*queue, *message, error) {
	q, err := s.queue(queue)
	if err != nil {
		return nil, nil, err
	}
	m := q.messages[seq]
	if m == nil {
		return nil, nil, fmt.Errorf("no message %d in queue %q", seq, q.name)
	}
	return q, m, nil
}

// sortedNames returns the names of the queues in order.
func (s *state) sortedNames() []string {
	return slices.Sorted(maps.Keys(s.names))
}

// snapshot returns the records that recreate the state. They share the messages' contents, which never change, and copy
// everything else. Names that are free by now are left out.
func (s *state) snapshot(now int64) []record {
	var records []record
	for name, at := range s.freed {
		if now < at+purgeInterval {
			records = append(records, &nameFreed{name: name, at: at})
		}
	}
	for _, q := range s.queues {
		records = append(records, &queuePut{
			queue: q.id, name: q.name, created: q.created, modified: q.modified, purged: q.purged,
			attributes: q.attributes, tags: q.tags,
		})
		for _, m := range q.inOrder() {
			records = append(records, &messagePut{
				queue: q.id, group: m.group.name, message: *m,
				inFlight: m.phase == phaseInFlight, delayed: m.phase == phaseDelayed,
			})
		}
	}
	for _, t := range s.tasks {
		records = append(records, &taskPut{task: *t})
	}
	return append(records, &snapshotEnd{records: uint64(len(records)), lastSeq: s.lastSeq, lastQueue: s.lastQueue})
}

// inOrder returns the messages so that adding them one by one gives the groups, and the messages of each, their order
// again.
func (q *queue) inOrder() []*message {
	all := make([]*message, 0, len(q.messages))
	byOrder := func(a, b *group) int { return cmp.Compare(a.order, b.order) }
	for _, g := range slices.SortedFunc(maps.Values(q.groups), byOrder) {
		for m := g.head; m != nil; m = m.next {
			all = append(all, m)
		}
	}
	return append(all, q.invisible.items...)
}
