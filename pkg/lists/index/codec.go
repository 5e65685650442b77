package index

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// codec appends values to data or, when it reads, takes them off data. One
// function describes a format for both directions. Once something does not
// fit, bad is set and what is read means nothing; counts are 0 from then on,
// so that loops end.
type codec struct {
	reading bool
	data    []byte
	bad     bool
}

func (c *codec) fail() { c.bad, c.data = true, nil }

// took moves on by the length of a varint, which is not positive where there
// was none.
func (c *codec) took(n int) {
	if n <= 0 {
		c.fail()
		return
	}
	c.data = c.data[n:]
}

func (c *codec) uvarint(v *uint64) {
	if !c.reading {
		c.data = binary.AppendUvarint(c.data, *v)
		return
	}
	n := 0
	*v, n = binary.Uvarint(c.data)
	c.took(n)
}

func (c *codec) varint(v *int64) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, *v)
		return
	}
	n := 0
	*v, n = binary.Varint(c.data)
	c.took(n)
}

// count is a number from 0 that fits a signed integer of 32 bits.
func (c *codec) count(v *int) {
	n := uint64(*v) //nolint:gosec // never negative
	if c.uvarint(&n); n > 1<<31-1 {
		c.fail()
		n = 0
	}
	*v = int(n) //nolint:gosec // checked above
}

// fixed is as many bytes as b has.
func (c *codec) fixed(b []byte) {
	switch {
	case !c.reading:
		c.data = append(c.data, b...)
	case len(b) > len(c.data):
		c.fail()
	default:
		c.data = c.data[copy(b, c.data):]
	}
}

// text is a length and so many bytes.
func (c *codec) text(s *string) {
	n := len(*s)
	c.count(&n)
	switch {
	case !c.reading:
		c.data = append(c.data, *s...)
	case n > len(c.data):
		c.fail()
	default:
		*s, c.data = string(c.data[:n]), c.data[n:]
	}
}

func (c *codec) span(r *columnar.Range) {
	c.varint(&r.Min)
	c.varint(&r.Max)
}

// elements is a count and so many elements.
func elements[T any](c *codec, s *[]T, element func(*T)) {
	n := len(*s)
	c.count(&n)
	if c.reading {
		*s = nil
	}
	for i := 0; i < n && !c.bad; i++ {
		if c.reading {
			*s = append(*s, *new(T))
		}
		element(&(*s)[i])
	}
}

// made returns what p points to, which it makes when it is nil.
func made[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // a constant table

// seal appends the CRC-32C of the context and the body to the body. The
// context is where the body belongs: at another place its checksum is wrong.
func seal(context, body []byte) []byte {
	sum := crc32.Update(crc32.Checksum(context, castagnoli), castagnoli, body)
	return binary.LittleEndian.AppendUint32(slices.Clip(body), sum)
}

// unseal returns the body of what seal returned, false when it is damaged.
func unseal(context, sealed []byte) (body []byte, ok bool) {
	if len(sealed) < crc32.Size {
		return nil, false
	}
	body, sum := sealed[:len(sealed)-crc32.Size], binary.LittleEndian.Uint32(sealed[len(sealed)-crc32.Size:])
	return body, crc32.Update(crc32.Checksum(context, castagnoli), castagnoli, body) == sum
}
