package queueserver

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// errMalformed is what a decoder reports; the journal adds where.
var errMalformed = errors.New("malformed record")

// Integers are varints (zigzag for times), strings are their length and their bytes, lists and maps their length and
// their elements, maps in the order of their keys.

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendMap(b []byte, m map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b = appendString(b, k)
		b = appendString(b, m[k])
	}
	return b
}

// decoder reads what the append functions wrote. After the first fault it returns zero values and keeps the fault.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail() {
	d.rest, d.err = nil, errMalformed
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// length reads a count of elements that take at least one byte each, which bounds what a reader may allocate for them.
func (d *decoder) length() int {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.fail()
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) string() string {
	return string(d.bytes(d.length()))
}

func (d *decoder) bool() bool {
	return d.uint() != 0
}

func (d *decoder) stringMap() map[string]string {
	n := d.length()
	m := make(map[string]string, n)
	for range n {
		k := d.string()
		m[k] = d.string()
	}
	return m
}

// finish reports a fault, which includes bytes that nothing has read.
func (d *decoder) finish() error {
	if d.err == nil && len(d.rest) > 0 {
		d.err = errMalformed
	}
	return d.err
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
