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

// snapshot returns the records that recreate the state. Names that are free by now are left out.
func (s *state) snapshot(now int64) []record {
	records := []record{&sequences{LastSeq: s.lastSeq, LastQueue: s.lastQueue}}
	for name, at := range s.freed {
		if now < at+purgeInterval {
			records = append(records, &nameFreed{Name: name, At: at})
		}
	}
	for _, q := range s.queues {
		records = append(records, &queuePut{
			Queue: q.id, Name: q.name, Created: q.created, Modified: q.modified, Purged: q.purged,
			Attributes: q.attributes, Tags: q.tags,
		})
		for _, m := range q.inOrder() {
			records = append(records, &messagePut{
				Queue: q.id, Group: m.group.name, Message: *m,
				InFlight: m.phase == phaseInFlight, Delayed: m.phase == phaseDelayed,
			})
		}
	}
	for _, t := range s.tasks {
		records = append(records, &taskPut{Task: *t})
	}
	return records
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
