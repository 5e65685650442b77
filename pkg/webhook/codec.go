package webhook

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Tallies and hours at rest begin with a version. All numbers are unsigned
// varints, times are milliseconds since the Unix epoch, and a field that depends
// on a count of zero is left out:
//
//	tally     = version counters run cells hour day positions
//	counters  = successes [lastSuccess] failures [lastFailure length reason]
//	run       = count [start last]
//	cells     = length {start attempts failed slow}
//	hour      = start successes failures length {gap count}
//	day       = start [events delivered failed]
//	positions = length {shard at length sequence}
//
// A gap is the number of empty buckets since the one before. There is one form
// only: bytes that do not read back to the same bytes are refused.
const (
	tallyVersion = 3
	hourVersion  = 1

	maxPositions = 4096 // of the shards of a day
	maxSequence  = 40   // digits of a sequence number

	// maxNumber bounds every number, so that sums of them stay exact.
	maxNumber = 1 << 48
)

var errMalformed = errors.New("malformed")

// codec writes values, or reads them in the same order. Once it is bad, it
// reads zeros.
type codec struct {
	reading bool
	b       []byte // what was written, or is still to be read
	bad     bool
}

func encode[T any](version byte, v *T, code func(*codec, *T)) []byte {
	c := codec{b: append(make([]byte, 0, 256), version)}
	code(&c, v)
	return c.b
}

// decode reads what encode wrote under the version.
func decode[T any](what string, version byte, b []byte, code func(*codec, *T)) (*T, error) {
	c, v := codec{reading: true}, new(T)
	if c.bad = len(b) == 0 || b[0] != version; !c.bad {
		c.b = b[1:]
		code(&c, v)
	}
	if c.bad || !bytes.Equal(encode(version, v, code), b) {
		return nil, fmt.Errorf("%s of %d bytes: %w", what, len(b), errMalformed)
	}
	return v, nil
}

// number codes a number. A negative one, such as a time before 1970, is
// written as zero.
func number[T ~int64 | ~int](c *codec, n *T) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, uint64(max(*n, 0)))
		return
	}
	read, size := binary.Uvarint(c.b)
	if size <= 0 || read > maxNumber {
		c.fail()
		*n = 0
		return
	}
	*n, c.b = T(read), c.b[size:]
}

func (c *codec) fail() { c.bad, c.b = true, nil }

// length codes the number of things to come, each of at least one byte.
func (c *codec) length(n, limit int) int {
	number(c, &n)
	if c.reading && n > min(limit, len(c.b)) {
		c.fail()
		return 0
	}
	return n
}

func (c *codec) time(t **value.Time) {
	if c.reading {
		*t = new(value.Time)
	}
	number(c, *t)
}

func (c *codec) text(t *string, limit int) {
	n := c.length(len(*t), limit)
	if !c.reading {
		c.b = append(c.b, *t...)
		return
	}
	*t, c.b = string(c.b[:n]), c.b[n:]
}

func (c *codec) counters(v *Counters) {
	if number(c, &v.SuccessCount); v.SuccessCount > 0 {
		c.time(&v.LastSuccessAt)
	}
	if number(c, &v.FailureCount); v.FailureCount > 0 {
		c.time(&v.LastFailureAt)
		if c.reading {
			v.LastFailureReason = new(string)
		}
		c.text(v.LastFailureReason, MaxReason)
	}
}

func (c *codec) tally(t *Tally) {
	c.counters(&t.counters)
	if number(c, &t.run.Count); t.run.Count > 0 {
		number(c, &t.run.Start)
		number(c, &t.run.Last)
	}
	if n := c.length(len(t.cells), maxCells); c.reading && n > 0 {
		t.cells = make([]cell, n)
	}
	for i := range t.cells {
		one := &t.cells[i]
		number(c, &one.start)
		number(c, &one.attempts)
		number(c, &one.failed)
		number(c, &one.slow)
	}
	c.hour(&t.hour)
	c.day(&t.day)
	if n := c.length(len(t.positions), maxPositions); c.reading && n > 0 {
		t.positions = make([]position, n)
	}
	for i := range t.positions {
		one := &t.positions[i]
		number(c, &one.shard)
		number(c, &one.at)
		c.text(&one.sequence, maxSequence)
	}
}

func (c *codec) day(d *EventDay) {
	if number(c, &d.Start); d.Start > 0 {
		number(c, &d.Events)
		number(c, &d.Delivered)
		number(c, &d.Failed)
	}
}

func (c *codec) hour(h *HourStats) {
	number(c, &h.Start)
	number(c, &h.SuccessCount)
	number(c, &h.FailureCount)
	used := 0
	for _, n := range h.latencies {
		if n > 0 {
			used++
		}
	}
	bucket := 0
	for range c.length(used, histogramBuckets) {
		gap := 0
		for !c.reading && h.latencies[bucket+gap] == 0 {
			gap++
		}
		number(c, &gap)
		if bucket += gap; bucket >= histogramBuckets {
			c.fail()
			return
		}
		number(c, &h.latencies[bucket])
		bucket++
	}
}
