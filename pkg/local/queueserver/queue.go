package queueserver

import "container/heap"

// queue is one queue's messages and settings. It knows no clock and no lock: whoever calls holds the server's.
type queue struct {
	id         uint64
	name       string
	created    int64 // milliseconds, as all times here
	modified   int64
	purged     int64
	attributes map[string]string // those that were set; the defaults are in settings
	tags       map[string]string
	settings   settings

	messages map[uint64]*message
	hidden   deadlines // delayed and in flight, by the time at which they become visible
	age      deadlines // all, by the time of their send
	groups   map[string]*group
	turns    turns
	lastTurn uint64

	ready, delayed, inFlight int
	maxInFlight              int

	waiting bool          // a long poll holds wakeup
	wakeup  chan struct{} // closed when a message may have become receivable
}

func newQueue(id uint64, maxInFlight int) *queue {
	return &queue{
		id:          id,
		maxInFlight: maxInFlight,
		messages:    map[uint64]*message{},
		hidden:      hiddenDeadlines(),
		age:         ageDeadlines(),
		groups:      map[string]*group{},
		wakeup:      make(chan struct{}),
	}
}

// wake lets every long poll of the queue look again.
func (q *queue) wake() {
	if q.waiting {
		close(q.wakeup)
		q.wakeup = make(chan struct{})
		q.waiting = false
	}
}

// groupOf returns the group of that name, making it on its first message.
func (q *queue) groupOf(name string) *group {
	g := q.groups[name]
	if g == nil {
		g = &group{name: name, slot: -1}
		q.groups[name] = g
	}
	return g
}

// add takes a message into the queue, at the given place.
func (q *queue) add(m *message, groupName string, at place) {
	m.group = q.groupOf(groupName)
	m.group.members++
	q.messages[m.seq] = m
	heap.Push(&q.age, m)
	q.put(m, at)
}

// remove takes a message out of the queue.
func (q *queue) remove(m *message) {
	q.take(m)
	heap.Remove(&q.age, m.ageSlot)
	delete(q.messages, m.seq)
	q.settle(m.group)
	if m.group.members--; m.group.members == 0 {
		delete(q.groups, m.group.name)
	}
}

// move changes where a message of the queue waits.
func (q *queue) move(m *message, to place) {
	q.take(m)
	q.put(m, to)
}

// put enters a message that is in no list into the list of its place.
func (q *queue) put(m *message, at place) {
	m.place = at
	switch at {
	case placeReady:
		q.ready++
		m.group.push(m)
		q.wake()
	case placeDelayed:
		q.delayed++
		q.hide(m)
	case placeFlying:
		q.inFlight++
		m.group.inFlight++
		q.hide(m)
	}
	q.settle(m.group)
}

// hide keeps a message out of sight until its time. A long poll sleeps until the earliest of these times as it was when it
// began, so it has to look again when there is an earlier one.
func (q *queue) hide(m *message) {
	heap.Push(&q.hidden, m)
	if q.hidden.min() == m {
		q.wake()
	}
}

// take removes a message from the list of its place.
func (q *queue) take(m *message) {
	switch m.place {
	case placeReady:
		q.ready--
		m.group.remove(m)
	case placeDelayed:
		q.delayed--
		heap.Remove(&q.hidden, m.hiddenSlot)
	case placeFlying:
		if q.inFlight == q.maxInFlight {
			q.wake()
		}
		q.inFlight--
		m.group.inFlight--
		heap.Remove(&q.hidden, m.hiddenSlot)
	}
	m.place = placeNone
}

// settle puts a group into the line, moves it within the line or takes it out, after its counts changed.
func (q *queue) settle(g *group) {
	switch {
	case g.ready > 0 && g.slot >= 0:
		heap.Fix(&q.turns, g.slot)
	case g.ready > 0:
		q.lastTurn++
		g.turn = q.lastTurn
		heap.Push(&q.turns, g)
	case g.slot >= 0:
		heap.Remove(&q.turns, g.slot)
	}
}

// next returns the message whose turn it is, nil when none is ready. It stays where it is: the caller moves it.
func (q *queue) next() *message {
	if len(q.turns) == 0 {
		return nil
	}
	g := q.turns[0]
	q.lastTurn++
	g.turn = q.lastTurn
	return g.head
}

// show makes every message visible whose time has come. It is not recorded: it follows from the deadlines.
func (q *queue) show(now int64) {
	for m := q.hidden.min(); m != nil && m.visible <= now; m = q.hidden.min() {
		q.move(m, placeReady)
	}
}

// expired returns a message that is older than the retention period, nil when there is none.
func (q *queue) expired(now int64) *message {
	if oldest := q.age.min(); oldest != nil && oldest.sent <= now-q.settings.retention {
		return oldest
	}
	return nil
}

// oldest returns how long ago the oldest message was sent that is not deleted; false when there is none.
func (q *queue) oldest(now int64) (age int64, found bool) {
	m := q.age.min()
	if m == nil {
		return 0, false
	}
	return now - m.sent, true
}

// clear removes every message.
func (q *queue) clear() {
	fresh := newQueue(q.id, q.maxInFlight)
	q.messages, q.hidden, q.age, q.groups = fresh.messages, fresh.hidden, fresh.age, fresh.groups
	q.turns = nil
	q.ready, q.delayed, q.inFlight = 0, 0, 0
}
