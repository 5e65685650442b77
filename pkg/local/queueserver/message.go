package queueserver

import "crypto/md5"

// place says where a message waits.
type place uint8

const (
	placeNone    place = iota // not in any list: being moved, or already gone
	placeReady                // visible, in its group's line
	placeDelayed              // hidden since its send, never received
	placeFlying               // hidden by a receive
)

// content is what the sender gave. It never changes, so that a snapshot can be written from it without a lock.
type content struct {
	body       string
	bodyMD5    [md5.Size]byte
	attributes []attribute // sorted by name
	trace      string      // AWSTraceHeader, empty when none was sent
}

// message is one message of one queue. Times are milliseconds since 1970.
type message struct {
	*content
	seq      uint64 // rises with every arrival in any queue; the key within the queue
	id       string
	group    *group
	sent     int64
	visible  int64 // when it becomes visible, meaningful while hidden
	received int64 // the latest receive, 0 before the first
	first    int64 // the first receive, 0 before it
	count    int   // receives since the send, over redrives
	arrived  int   // count at the arrival in this queue: what redrive subtracts
	source   string

	place      place
	prev, next *message // neighbours in the group's line
	hiddenSlot int
	ageSlot    int
}

// deadlines is a heap of messages by a time, with the position kept in the message so that any of them can leave.
type deadlines struct {
	messages []*message
	at       func(*message) int64
	slot     func(*message) *int
}

func hiddenDeadlines() deadlines {
	return deadlines{
		at:   func(m *message) int64 { return m.visible },
		slot: func(m *message) *int { return &m.hiddenSlot },
	}
}

func ageDeadlines() deadlines {
	return deadlines{
		at:   func(m *message) int64 { return m.sent },
		slot: func(m *message) *int { return &m.ageSlot },
	}
}

// min returns the message with the earliest time, nil when there is none.
func (d *deadlines) min() *message {
	if len(d.messages) == 0 {
		return nil
	}
	return d.messages[0]
}

func (d *deadlines) Len() int { return len(d.messages) }

func (d *deadlines) Less(i, j int) bool {
	a, b := d.messages[i], d.messages[j]
	if x, y := d.at(a), d.at(b); x != y {
		return x < y
	}
	return a.seq < b.seq
}

func (d *deadlines) Swap(i, j int) {
	d.messages[i], d.messages[j] = d.messages[j], d.messages[i]
	*d.slot(d.messages[i]), *d.slot(d.messages[j]) = i, j
}

func (d *deadlines) Push(x any) {
	m := x.(*message) //nolint:forcetypeassert // container/heap hands on what was pushed
	*d.slot(m) = len(d.messages)
	d.messages = append(d.messages, m)
}

func (d *deadlines) Pop() any {
	last := len(d.messages) - 1
	m := d.messages[last]
	d.messages[last] = nil
	d.messages = d.messages[:last]
	return m
}
