package queueserver

import "math/bits"

// group is the messages of one MessageGroupId; those without one share the group with the empty name. It lives while it
// has a message.
type group struct {
	name       string
	head, tail *message // the ready messages in the order of their arrival or return
	members    int      // messages in any phase
	ready      int
	inFlight   int
	order      uint64 // rises each time the group goes behind the others
	index      int    // in the queue's heap of groups, -1 when no message is ready
}

func (g *group) push(m *message) {
	m.prev, m.next = g.tail, nil
	if g.tail == nil {
		g.head = m
	} else {
		g.tail.next = m
	}
	g.tail = m
	g.ready++
}

func (g *group) remove(m *message) {
	if m.prev == nil {
		g.head = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		g.tail = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.prev, m.next = nil, nil
	g.ready--
}

// servedBefore orders the groups that have a ready message: first by fewer messages in flight, then by the smaller
// backlog, to the power of two, then by the longer wait. So a group with a long backlog or slow messages holds at most
// an equal share of the consumers, and a quiet group's message waits neither for the backlog nor until every group that
// has one was served.
func (g *group) servedBefore(other *group) bool {
	if g.inFlight != other.inFlight {
		return g.inFlight < other.inFlight
	}
	if a, b := bits.Len(uint(g.ready)), bits.Len(uint(other.ready)); a != b {
		return a < b
	}
	return g.order < other.order
}
