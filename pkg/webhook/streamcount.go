package webhook

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
)

// StreamShard is the number of the counter shard that package counter adds to.
const StreamShard = MaxCounterShards

const (
	// CountedEvery is how often it is noted how far the stream is counted.
	CountedEvery = time.Minute
	// CountedFor is how far behind the stream may be counted for workers to leave
	// attempts to it.
	CountedFor = 5 * time.Minute
)

// StreamCount is the counter shard that the table's stream is counted in, and
// how far it is counted.
type StreamCount struct {
	StoredCounterShard
	Position StreamPosition
}

// StreamPosition says how far a stream is counted: of each partition of
// deliveries, the sequence number of the last change. The numbers of a
// partition's changes rise; those of another stream say nothing.
type StreamPosition struct {
	Stream string         `json:"stream"`
	Last   map[int]string `json:"last"`
}

// StreamAttempt is a change of a delivery by an attempt that the worker has left
// to the stream to count, with its place in the stream.
type StreamAttempt struct {
	DeliveryChange
	Stream    string
	Partition int
	Sequence  string
}

// Passed reports whether the attempt is counted already.
func (p *StreamPosition) Passed(a *StreamAttempt) bool {
	return p.Stream == a.Stream && compareSequences(a.Sequence, p.Last[a.Partition]) <= 0
}

// pass notes that the attempt is counted.
func (p *StreamPosition) pass(a *StreamAttempt) {
	if p.Stream != a.Stream || p.Last == nil {
		p.Stream, p.Last = a.Stream, map[int]string{}
	}
	p.Last[a.Partition] = a.Sequence
}

// compareSequences orders sequence numbers, which are decimal numbers of up to
// 40 digits; "" is before all of them.
func compareSequences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// Count returns the write after those of the attempts that are not counted yet,
// which are in the order of the stream, and the position after them; nil when
// all are counted. An attempt counts in the hour and on the day in which it was
// recorded. Attempts of an hour other than the first's are left out: the
// position stays before them, and the next call counts them.
func (c *StreamCount) Count(attempts []StreamAttempt) (w *CounterShardWrite, after StreamPosition) {
	after = StreamPosition{Stream: c.Position.Stream, Last: maps.Clone(c.Position.Last)}
	var counted []Attempt
	var events EventDay
	var now value.Time
	for i := range attempts {
		a := &attempts[i]
		if after.Passed(a) {
			continue
		}
		if len(counted) > 0 && StatsHour.Start(a.Next.UpdatedAt) != StatsHour.Start(now) {
			break
		}
		after.pass(a)
		counted = append(counted, a.Next.Attempts[len(a.Next.Attempts)-1])
		events.Count(a.Previous, a.Next)
		now = max(now, a.Next.UpdatedAt)
	}
	if len(counted) == 0 {
		return nil, after
	}
	first := attempts[0].Next
	w = &CounterShardWrite{
		OrganizationID: first.OrganizationID, ApplicationID: first.ApplicationID, EndpointID: first.EndpointID,
		Number: StreamShard, Revision: c.Revision,
	}
	w.Next, w.Finished = c.Shard.Add(counted, Health{}, now)
	w.FinishedDay = w.Next.CountEvents(events, now)
	return w, after
}
