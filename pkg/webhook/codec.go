package webhook

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/commerce-integration/service/pkg/base/value"
)

// Counter shards and hours at rest begin with a version. All numbers are
// unsigned varints, times are milliseconds since the Unix epoch, and a field
// that depends on a count of zero is left out:
//
//	shard    = version counters succeeded run cells hour day
//	counters = successes [lastSuccess] failures [lastFailure length reason]
//	run      = count [start last recorded]
//	cells    = length {start attempts failed slow}
//	hour     = start successes failures length {gap count}
//	day      = start [events delivered failed]
//
// A gap is the number of empty buckets since the one before. There is one form
// only: bytes that do not read back to the same bytes are refused.
const (
	shardVersion = 2
	hourVersion  = 1

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

func (c *codec) text(t **string, limit int) {
	if !c.reading {
		c.length(len(**t), limit)
		c.b = append(c.b, **t...)
		return
	}
	n := c.length(0, limit)
	text := string(c.b[:n])
	*t, c.b = &text, c.b[n:]
}

func (c *codec) counters(v *Counters) {
	if number(c, &v.SuccessCount); v.SuccessCount > 0 {
		c.time(&v.LastSuccessAt)
	}
	if number(c, &v.FailureCount); v.FailureCount > 0 {
		c.time(&v.LastFailureAt)
		c.text(&v.LastFailureReason, MaxReason)
	}
}

func (c *codec) shard(s *CounterShard) {
	c.counters(&s.counters)
	number(c, &s.succeeded)
	if number(c, &s.run.Count); s.run.Count > 0 {
		number(c, &s.run.Start)
		number(c, &s.run.Last)
		number(c, &s.run.recorded)
	}
	if n := c.length(len(s.cells), maxCells); c.reading && n > 0 {
		s.cells = make([]cell, n)
	}
	for i := range s.cells {
		one := &s.cells[i]
		number(c, &one.start)
		number(c, &one.attempts)
		number(c, &one.failed)
		number(c, &one.slow)
	}
	c.hour(&s.hour)
	c.day(&s.day)
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
