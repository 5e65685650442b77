package queueserver

import "container/heap"

// queue is one queue's messages and settings. It has no clock and no lock: callers hold the server's lock.
type queue struct {
	id         uint64
	name       string
	created    int64 // milliseconds, as all times here
	modified   int64
	purged     int64
	attributes map[string]string // those that were set; the defaults are in settings
	tags       map[string]string
	settings   settings
	contents
	maxInFlight int

	waiting bool          // a long poll holds wakeup
	wakeup  chan struct{} // closed when a message may have become receivable
}

// contents is the messages of a queue, in all the orders in which it needs them.
type contents struct {
	messages  map[uint64]*message
	invisible indexedHeap[*message] // delayed and in flight, by the time at which they become visible
	age       indexedHeap[*message] // all, by the time of their send
	groups    map[string]*group
	line      indexedHeap[*group] // the groups with a ready message, the next to be served first
	lastOrder uint64

	ready, delayed, inFlight int
}

func newQueue(id uint64, maxInFlight int) *queue {
	return &queue{id: id, maxInFlight: maxInFlight, wakeup: make(chan struct{}), contents: noContents()}
}

func noContents() contents {
	return contents{
		messages: map[uint64]*message{},
		groups:   map[string]*group{},
		invisible: deadlines(func(m *message) int64 { return m.Visible },
			func(m *message) *int { return &m.invisibleIndex }),
		age:  deadlines(func(m *message) int64 { return m.Sent }, func(m *message) *int { return &m.ageIndex }),
		line: indexedHeap[*group]{less: (*group).servedBefore, index: func(g *group) *int { return &g.index }},
	}
}

// clear removes every message.
func (q *queue) clear() { q.contents = noContents() }

// wake makes every long poll of the queue try again.
func (q *queue) wake() {
	if q.waiting {
		close(q.wakeup)
		q.wakeup = make(chan struct{})
		q.waiting = false
	}
}

// add takes a message into the queue. Its group begins with its first message.
func (q *queue) add(m *message, groupName string, to phase) {
	m.group = q.groups[groupName]
	if m.group == nil {
		m.group = &group{name: groupName, index: -1}
		q.groups[groupName] = m.group
	}
	m.group.members++
	q.messages[m.Seq] = m
	heap.Push(&q.age, m)
	q.enter(m, to)
}

// remove takes a message out of the queue.
func (q *queue) remove(m *message) {
	q.leave(m)
	heap.Remove(&q.age, m.ageIndex)
	delete(q.messages, m.Seq)
	q.reorder(m.group)
	if m.group.members--; m.group.members == 0 {
		delete(q.groups, m.group.name)
	}
}

// enter begins a phase of a message that is in none.
func (q *queue) enter(m *message, to phase) {
	m.phase = to
	switch to {
	case phaseReady:
		q.ready++
		m.group.push(m)
		q.wake()
	case phaseDelayed:
		q.delayed++
	case phaseInFlight:
		q.inFlight++
		m.group.inFlight++
	}
	if to != phaseReady {
		heap.Push(&q.invisible, m)
		// A long poll sleeps until the earliest of these times as it was when it began, so it has to look again when
		// there is an earlier one.
		if q.invisible.first() == m {
			q.wake()
		}
	}
	q.reorder(m.group)
}

// leave ends the phase of a message. The caller reorders its group.
func (q *queue) leave(m *message) {
	switch m.phase {
	case phaseReady:
		q.ready--
		m.group.remove(m)
	case phaseDelayed:
		q.delayed--
		heap.Remove(&q.invisible, m.invisibleIndex)
	case phaseInFlight:
		if q.inFlight == q.maxInFlight {
			q.wake()
		}
		q.inFlight--
		m.group.inFlight--
		heap.Remove(&q.invisible, m.invisibleIndex)
	}
	m.phase = phaseNone
}

// changeVisibility puts a message in flight until a time.
func (q *queue) changeVisibility(m *message, until int64) {
	q.leave(m)
	m.Visible = until
	q.enter(m, phaseInFlight)
}

// reorder puts a group into the line, moves it within the line or takes it out, after its counts changed.
func (q *queue) reorder(g *group) {
	switch {
	case g.ready > 0 && g.index >= 0:
		heap.Fix(&q.line, g.index)
	case g.ready > 0:
		q.lastOrder++
		g.order = q.lastOrder
		heap.Push(&q.line, g)
	case g.index >= 0:
		heap.Remove(&q.line, g.index)
	}
}

// next returns the message to be received next, nil when none is ready, and sends its group behind the others. The
// message stays in its phase: the caller moves it.
func (q *queue) next() *message {
	g := q.line.first()
	if g == nil {
		return nil
	}
	q.lastOrder++
	g.order = q.lastOrder
	return g.head
}

// showDue makes every message visible whose time has come. It is not recorded: it follows from the deadlines.
func (q *queue) showDue(now int64) {
	for m := q.invisible.first(); m != nil && m.Visible <= now; m = q.invisible.first() {
		q.leave(m)
		q.enter(m, phaseReady)
	}
}

// expired returns a message that is older than the retention period, nil when there is none.
func (q *queue) expired(now int64) *message {
	if oldest := q.age.first(); oldest != nil && oldest.Sent <= now-q.settings.retention {
		return oldest
	}
	return nil
}
