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

// content comes from the sender. It never changes.
type content struct {
	Body       string
	BodyMD5    [md5.Size]byte
	Attributes []attribute // sorted by name
	Trace      string      // AWSTraceHeader, empty when none was sent
}

func (t *content) hexMD5() string { return hex.EncodeToString(t.BodyMD5[:]) }

// message is one message of one queue. Times are milliseconds since 1970.
type message struct {
	Content  *content
	Seq      uint64 // rises with every arrival in any queue; the key within the queue
	ID       string
	group    *group
	Sent     int64
	Visible  int64 // when it becomes visible, meaningful while delayed or in flight
	Received int64 // the latest receive, 0 before the first
	First    int64 // the first receive, 0 before it
	Count    int   // receives since the send, over redrives
	Arrived  int   // count at the arrival in this queue, which redrive subtracts
	Source   string

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
		return a.Seq < b.Seq
	}}
}
