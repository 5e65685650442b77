package queueserver

import (
	"crypto/md5"
	"encoding/hex"
)

// phase says where a message of a queue waits.
type phase uint8

const (
	phaseNone     phase = iota // in no list: between two phases, or gone
	phaseReady                 // visible, in its group's line
	phaseDelayed               // invisible since its send, never received
	phaseInFlight              // invisible since a receive
)

// content comes from the sender. It never changes, so that a snapshot can be written from it without a lock.
type content struct {
	body       string
	bodyMD5    [md5.Size]byte
	attributes []attribute // sorted by name
	trace      string      // AWSTraceHeader, empty when none was sent
}

func (t *content) hexMD5() string { return hex.EncodeToString(t.bodyMD5[:]) }

// message is one message of one queue. Times are milliseconds since 1970.
type message struct {
	*content
	seq      uint64 // rises with every arrival in any queue; the key within the queue
	id       string
	group    *group
	sent     int64
	visible  int64 // when it becomes visible, meaningful while delayed or in flight
	received int64 // the latest receive, 0 before the first
	first    int64 // the first receive, 0 before it
	count    int   // receives since the send, over redrives
	arrived  int   // count at the arrival in this queue, which redrive subtracts
	source   string

	phase          phase
	prev, next     *message // neighbours in the group's line
	invisibleIndex int      // in the queue's heaps
	ageIndex       int
}

// deadlines is a heap of messages by a time.
func deadlines(at func(*message) int64, index func(*message) *int) indexedHeap[*message] {
	return indexedHeap[*message]{index: index, less: func(a, b *message) bool {
		if x, y := at(a), at(b); x != y {
			return x < y
		}
		return a.seq < b.seq
	}}
}
