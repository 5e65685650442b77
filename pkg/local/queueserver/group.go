package queueserver

import "math/bits"

// group is the messages of one MessageGroupId; those without one share the group with the empty name. It lives while it
// has a message.
type group struct {
	name       string
	head, tail *message // the ready messages in the order of their arrival or return
	members    int      // messages, wherever they wait
	ready      int
	inFlight   int
	turn       uint64 // rises each time the group takes its place behind the others
	slot       int    // position in the queue's line of groups, -1 when no message is ready
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

// backlog is how many binary digits the number of its ready messages has.
func (g *group) backlog() int { return bits.Len(uint(g.ready)) }

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

// turns is the groups with a ready message, in the order in which they are served: those with fewer messages in flight
// first, among equals those with a smaller backlog, to the power of two, and among these the one that has waited longest
// for its turn. A group with a long backlog or slow messages so holds at most an equal share of the consumers, and a quiet
// group's message waits neither for the backlog nor for a turn of each group that has one.
type turns []*group

func (t turns) Len() int { return len(t) }

func (t turns) Less(i, j int) bool {
	if t[i].inFlight != t[j].inFlight {
		return t[i].inFlight < t[j].inFlight
	}
	if a, b := t[i].backlog(), t[j].backlog(); a != b {
		return a < b
	}
	return t[i].turn < t[j].turn
}

func (t turns) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].slot, t[j].slot = i, j
}

func (t *turns) Push(x any) {
	g := x.(*group) //nolint:forcetypeassert // container/heap hands on what was pushed
	g.slot = len(*t)
	*t = append(*t, g)
}

func (t *turns) Pop() any {
	last := len(*t) - 1
	g := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	g.slot = -1
	return g
}
