package index

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/commerce-integration/service/pkg/base/strictbinary"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// codec appends values to Data or, when it reads, takes them off Data. One
// function describes a format for both directions. Once something does not
// fit, Bad is set and what is read means nothing.
type codec struct {
	reading bool
	strictbinary.Reader
}

func reading(data []byte) codec { return codec{true, strictbinary.Reader{Data: data}} }

func (c *codec) uvarint(v *uint64) {
	if c.reading {
		*v = c.Uvarint()
	} else {
		c.Data = binary.AppendUvarint(c.Data, *v)
	}
}

func (c *codec) varint(v *int64) {
	if c.reading {
		*v = c.Varint()
	} else {
		c.Data = binary.AppendVarint(c.Data, *v)
	}
}

// count is a number from 0 that fits a signed integer of 32 bits.
func (c *codec) count(v *int) {
	n := uint64(*v) //nolint:gosec // never negative
	c.uvarint(&n)
	c.Fail(n > 1<<31-1)
	*v = int(n & (1<<31 - 1))
}

// flag is a byte: 1 for true.
func (c *codec) flag(v *bool) {
	b := []byte{0}
	if *v {
		b[0] = 1
	}
	c.fixed(b)
	*v = b[0] == 1
}

// fixed is as many bytes as b has.
func (c *codec) fixed(b []byte) {
	if c.reading {
		copy(b, c.Take(uint64(len(b))))
	} else {
		c.Data = append(c.Data, b...)
	}
}

// text is a length and so many bytes.
func (c *codec) text(s *string) {
	n := len(*s)
	c.count(&n)
	if c.reading {
		*s = string(c.Take(uint64(n))) //nolint:gosec // never negative
	} else {
		c.Data = append(c.Data, *s...)
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
	for i := 0; i < n && !c.Bad; i++ {
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
