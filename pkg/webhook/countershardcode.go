package webhook

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/commerce-integration/service/pkg/value"
)

// Tallies and hours at rest begin with a version. All numbers are unsigned
// varints, times are milliseconds since the Unix epoch, and what depends on a
// count that is zero is left out:
//
//	tally   = version counters succeeded run cells hour
//	counters = successes [lastSuccess] failures [lastFailure length reason]
//	run     = count [start last recorded]
//	cells   = length {start attempts failed slow}
//	hour    = start successes failures length {gap count}
//
// A gap is the number of empty buckets since the one before. There is one
// form only: what does not read back to the same bytes is refused.
const (
	tallyVersion = 1
	hourVersion  = 1

	// largest bounds every number, so that sums of them stay exact.
	largest = 1 << 48
)

var errTally = errors.New("malformed")

func appendTime(b []byte, t value.Time) []byte { return appendNumber(b, int64(t)) }

// appendNumber writes what is not negative; a clock before 1970 counts as it.
func appendNumber(b []byte, n int64) []byte {
	return binary.AppendUvarint(b, uint64(max(n, 0))) //nolint:gosec // not negative
}

func appendCounters(b []byte, c *Counters) []byte {
	b = appendNumber(b, c.SuccessCount)
	if c.SuccessCount > 0 {
		b = appendTime(b, *c.LastSuccessAt)
	}
	b = appendNumber(b, c.FailureCount)
	if c.FailureCount > 0 {
		b = appendTime(b, *c.LastFailureAt)
		b = appendNumber(b, int64(len(*c.LastFailureReason)))
		b = append(b, *c.LastFailureReason...)
	}
	return b
}

func appendHour(b []byte, h *HourStats) []byte {
	b = appendTime(b, h.Start)
	b = appendNumber(b, h.SuccessCount)
	b = appendNumber(b, h.FailureCount)
	used := int64(0)
	for _, n := range h.latencies {
		if n > 0 {
			used++
		}
	}
	b = appendNumber(b, used)
	gap := int64(0)
	for _, n := range h.latencies {
		if n == 0 {
			gap++
			continue
		}
		b = appendNumber(appendNumber(b, gap), n)
		gap = 0
	}
	return b
}

// decoder reads from the front; bad stays once it is set, and then every
// number is zero.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() int64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > largest {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return int64(n)
}

// length is a number of things to come, each of at least one byte.
func (d *decoder) length(most int) int {
	n := d.number()
	if n > int64(most) || n > int64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) time() value.Time { return value.Time(d.number()) }

func (d *decoder) version(want byte) {
	if len(d.rest) == 0 || d.rest[0] != want {
		d.bad, d.rest = true, nil
		return
	}
	d.rest = d.rest[1:]
}

func (d *decoder) text() string {
	n := d.length(MaxReason)
	text := string(d.rest[:n])
	d.rest = d.rest[n:]
	return text
}

func (d *decoder) counters() Counters {
	var c Counters
	if c.SuccessCount = d.number(); c.SuccessCount > 0 {
		at := d.time()
		c.LastSuccessAt = &at
	}
	if c.FailureCount = d.number(); c.FailureCount > 0 {
		at, reason := d.time(), d.text()
		c.LastFailureAt, c.LastFailureReason = &at, &reason
	}
	return c
}

func (d *decoder) hour() *HourStats {
	h := &HourStats{Start: d.time(), SuccessCount: d.number(), FailureCount: d.number()}
	bucket := int64(-1)
	for range d.length(histogramBuckets) {
		bucket += d.number() + 1
		if bucket >= histogramBuckets {
			d.bad = true
			break
		}
		h.latencies[bucket] = d.number()
	}
	return h
}

// end tells whether everything was read, of which there is one form.
func (d *decoder) end(what string, b []byte, encode func() []byte) error {
	if d.bad || !bytes.Equal(encode(), b) {
		return fmt.Errorf("%s of %d bytes: %w", what, len(b), errTally)
	}
	return nil
}
