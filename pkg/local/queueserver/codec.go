package queueserver

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// errMalformed is the error of reading a record; the journal adds its position.
var errMalformed = errors.New("malformed record")

// codec writes the fields of a record, or reads them in the same order. Integers are varints (zigzag for times),
// strings are their length and their bytes, lists and maps their length and their elements, maps in the order of their
// keys. After the first fault it reads zero values and keeps the fault. Writing changes no field, so that others may
// read them.
type codec struct {
	reading bool
	b       []byte // written bytes, or those still to be read
	err     error
}

func (c *codec) fail() { c.b, c.err = nil, errMalformed }

// skip drops n bytes that were read; binary reports a fault by an n that is not positive.
func (c *codec) skip(n int) {
	if n <= 0 {
		c.fail()
		return
	}
	c.b = c.b[n:]
}

func (c *codec) uints(all ...*uint64) {
	for _, v := range all {
		if !c.reading {
			c.b = binary.AppendUvarint(c.b, *v)
			continue
		}
		var n int
		*v, n = binary.Uvarint(c.b)
		c.skip(n)
	}
}

func (c *codec) ints(all ...*int64) {
	for _, v := range all {
		if !c.reading {
			c.b = binary.AppendVarint(c.b, *v)
			continue
		}
		var n int
		*v, n = binary.Varint(c.b)
		c.skip(n)
	}
}

func (c *codec) count(v *int) {
	n := uint64(*v)
	if c.uints(&n); c.reading {
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
	if c.uints(&n); c.reading {
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
