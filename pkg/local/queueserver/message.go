package queueserver

import (
	"math/bits"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// message is one message of one queue, with its exported fields as the journal has it. Times are milliseconds since
// 1970.
type message struct {
	ID, Queue  string
	Body       string
	Group      string // "" when none was sent
	Attributes map[string]types.MessageAttributeValue
	Sent       int64
	Source     string // ARN of the queue that redrive took it from
	Arrived    int    // its receives before it entered this queue, which redrive does not count
	State      messageState

	phase    phase
	group    *group
	order    uint64 // of its arrival in the queue, or of its return
	index    int    // in the heap of its phase
	ageIndex int    // in the queue's heap by age
}

// messageState is what receives change.
type messageState struct {
	Visible  int64 // when it becomes visible
	Received int64 // the latest receive, 0 before the first
	First    int64 // the first receive, 0 before it
	Count    int   // receives since the send, over redrives
}

// phase says where a message of a queue waits.
type phase uint8

const (
	phaseReady    phase = iota // visible, in its group's line
	phaseDelayed               // invisible since it entered the queue
	phaseInFlight              // invisible since a receive
)

func (m *message) phaseAt(now int64) phase {
	switch {
	case m.State.Visible <= now:
		return phaseReady
	case m.State.Count > m.Arrived:
		return phaseInFlight
	}
	return phaseDelayed
}

// dueBefore orders invisible messages by when they become visible.
func (m *message) dueBefore(other *message) bool {
	if m.State.Visible != other.State.Visible {
		return m.State.Visible < other.State.Visible
	}
	return m.order < other.order
}

// group is the messages of one MessageGroupId; those without one share the group with the empty name. It lives while it
// has a message.
type group struct {
	name     string
	ready    sorted[*message]
	members  int // messages in any phase
	inFlight int
	order    uint64 // rises each time the group goes behind the others
	index    int    // in the queue's heap of groups, -1 when no message is ready
}

func newGroup(name string) *group {
	return &group{name: name, index: -1, ready: sorted[*message]{
		less:  func(a, b *message) bool { return a.order < b.order },
		index: func(m *message) *int { return &m.index },
	}}
}

// servedBefore orders the groups that have a ready message: first by fewer messages in flight, then by the smaller
// backlog, to the power of two, then by the longer wait. So a group with a long backlog or slow messages holds at most
// an equal share of the consumers, and a quiet group's message waits neither for the backlog nor until every group that
// has one was served.
func (g *group) servedBefore(other *group) bool {
	if g.inFlight != other.inFlight {
		return g.inFlight < other.inFlight
	}
	if a, b := bits.Len(uint(g.ready.Len())), bits.Len(uint(other.ready.Len())); a != b {
		return a < b
	}
	return g.order < other.order
}
