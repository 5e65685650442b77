package queueserver

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// errMalformed is what reading a record reports; the journal adds where.
var errMalformed = errors.New("malformed record")

// codec writes the fields of a record, or reads them in the same order. Integers are varints (zigzag for times), strings
// are their length and their bytes, lists and maps their length and their elements, maps in the order of their keys. After
// the first fault it reads zero values and keeps the fault. Writing changes no field, so that others may read them.
type codec struct {
	reading bool
	b       []byte // what was written, or is still to be read
	err     error
}

func (c *codec) fail() { c.b, c.err = nil, errMalformed }

func (c *codec) uint(v *uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	read, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail()
		n = 0
	}
	*v, c.b = read, c.b[n:]
}

func (c *codec) int(v *int64) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, *v)
		return
	}
	read, n := binary.Varint(c.b)
	if n <= 0 {
		c.fail()
		n = 0
	}
	*v, c.b = read, c.b[n:]
}

// uints and ints code several numbers, one after the other.
func (c *codec) uints(all ...*uint64) {
	for _, v := range all {
		c.uint(v)
	}
}

func (c *codec) ints(all ...*int64) {
	for _, v := range all {
		c.int(v)
	}
}

func (c *codec) count(v *int) {
	n := uint64(*v)
	if c.uint(&n); c.reading {
		*v = int(n)
	}
}

// length codes a number of elements that take at least one byte each, which bounds what a reader may allocate for them.
func (c *codec) length(n int) int {
	c.count(&n)
	if c.reading && (n < 0 || n > len(c.b)) {
		c.fail()
		return 0
	}
	return n
}

func (c *codec) bytes(fixed []byte) {
	switch {
	case !c.reading:
		c.b = append(c.b, fixed...)
	case len(fixed) > len(c.b):
		c.fail()
	default:
		c.b = c.b[copy(fixed, c.b):]
	}
}

func (c *codec) strings(all ...*string) {
	for _, v := range all {
		n := c.length(len(*v))
		if !c.reading {
			c.b = append(c.b, *v...)
			continue
		}
		*v, c.b = string(c.b[:n]), c.b[n:]
	}
}

func (c *codec) bool(v *bool) {
	var n uint64
	if *v {
		n = 1
	}
	if c.uint(&n); c.reading {
		*v = n != 0
	}
}

func (c *codec) stringMap(m *map[string]string) {
	n := c.length(len(*m))
	if !c.reading {
		for _, k := range slices.Sorted(maps.Keys(*m)) {
			v := (*m)[k]
			c.strings(&k, &v)
		}
		return
	}
	*m = make(map[string]string, n)
	for range n {
		var k, v string
		c.strings(&k, &v)
		(*m)[k] = v
	}
}
