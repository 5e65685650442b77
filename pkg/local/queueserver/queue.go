package queueserver

import "container/heap"

// queue is one queue's messages and settings. It has no clock and no lock: callers hold the server's lock.
type queue struct {
	queueLine
	settings settings

	messages  map[string]*message
	invisible sorted[*message] // delayed and in flight, by the time at which they become visible
	age       sorted[*message] // all, by the time of their send
	groups    map[string]*group
	line      sorted[*group] // the groups with a ready message, the next to be served first
	count     [3]int         // messages by their phase
	lastOrder uint64

	waiting bool          // a long poll holds wakeup
	wakeup  chan struct{} // closed when a message may have become receivable
}

// queueLine is a queue as the journal has it.
type queueLine struct {
	Name              string
	Created, Modified int64
	Attributes        map[string]string // those that were set; the defaults are in settings
}

func newQueue(of queueLine, set settings) *queue {
	return &queue{
		queueLine: of, settings: set,
		messages: map[string]*message{}, groups: map[string]*group{}, wakeup: make(chan struct{}),
		invisible: sorted[*message]{less: (*message).dueBefore, index: func(m *message) *int { return &m.index }},
		age: sorted[*message]{
			less:  func(a, b *message) bool { return a.Sent < b.Sent },
			index: func(m *message) *int { return &m.ageIndex },
		},
		line: sorted[*group]{less: (*group).servedBefore, index: func(g *group) *int { return &g.index }},
	}
}

// wake makes every long poll of the queue try again.
func (q *queue) wake() {
	if q.waiting {
		close(q.wakeup)
		q.wakeup = make(chan struct{})
		q.waiting = false
	}
}

// add takes a message into the queue. Its group begins with its first message.
func (q *queue) add(m *message, now int64) {
	m.Queue = q.Name
	m.group = q.groups[m.Group]
	if m.group == nil {
		m.group = newGroup(m.Group)
		q.groups[m.Group] = m.group
	}
	m.group.members++
	q.messages[m.ID] = m
	q.enter(m, now)
	q.age.push(m)
}

// remove takes a message out of the queue.
func (q *queue) remove(m *message) {
	q.leave(m)
	q.age.remove(m)
	delete(q.messages, m.ID)
	q.reorder(m.group)
	if m.group.members--; m.group.members == 0 {
		delete(q.groups, m.group.name)
	}
}

// enter begins the phase of a message that is in none.
func (q *queue) enter(m *message, now int64) {
	m.phase = m.phaseAt(now)
	q.lastOrder++
	m.order = q.lastOrder
	q.count[m.phase]++
	switch m.phase {
	case phaseReady:
		m.group.ready.push(m)
		q.wake()
	case phaseInFlight:
		m.group.inFlight++
	}
	if m.phase != phaseReady {
		q.invisible.push(m)
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
	if m.phase == phaseInFlight {
		m.group.inFlight--
	}
	q.count[m.phase]--
	if m.phase == phaseReady {
		m.group.ready.remove(m)
	} else {
		q.invisible.remove(m)
	}
}

// set gives a message another state.
func (q *queue) set(m *message, to messageState, now int64) {
	q.leave(m)
	m.State = to
	q.enter(m, now)
}

// reorder puts a group into the line, moves it within the line or takes it out, after its counts changed.
func (q *queue) reorder(g *group) {
	ready := g.ready.Len() > 0
	switch {
	case ready && g.index >= 0:
		heap.Fix(&q.line, g.index)
	case ready:
		q.lastOrder++
		g.order = q.lastOrder
		q.line.push(g)
	case g.index >= 0:
		q.line.remove(g)
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
	return g.ready.first()
}

// showDue makes every message visible whose time has come. It is not recorded: it follows from the deadlines.
func (q *queue) showDue(now int64) {
	for m := q.invisible.first(); m != nil && m.State.Visible <= now; m = q.invisible.first() {
		q.set(m, m.State, now)
	}
}

// expired returns a message that is older than the retention period, nil when there is none.
func (q *queue) expired(now int64) *message {
	if oldest := q.age.first(); oldest != nil && oldest.Sent <= now-q.settings.retention {
		return oldest
	}
	return nil
}
