package segment

import (
	"encoding/binary"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// appendNumbers writes the lowest bytes of all numbers, then the next bytes of all, and so
// on, so that those that hardly differ are together.
func appendNumbers[T uint32 | int64](dst []byte, values []T) []byte {
	for shift := 0; shift < 8*binary.Size(T(0)); shift += 8 {
		for _, v := range values {
			dst = append(dst, byte(v>>shift))
		}
	}
	return dst
}

// numbers reads n numbers.
func numbers[T uint32 | int64](r *reader, n int) []T {
	out := make([]T, n)
	for shift := 0; shift < 8*binary.Size(T(0)); shift += 8 {
		for i, b := range r.fixed(n) {
			out[i] |= T(b) << shift
		}
	}
	return out
}

// appendLengths writes how far each end lies behind the one before.
func appendLengths(dst []byte, ends []uint32) []byte {
	lengths, before := make([]uint32, len(ends)), uint32(0)
	for i, end := range ends {
		lengths[i], before = end-before, end
	}
	return appendNumbers(dst, lengths)
}

// ends reads n ends within what follows them.
func (r *reader) ends(n int) []uint32 {
	ends, end := numbers[uint32](r, n), uint64(0)
	for i, length := range ends {
		end += uint64(length)
		ends[i] = uint32(end)
	}
	r.Fail(end > uint64(len(r.Data)))
	return ends
}

// appendRows writes a bit for each of n rows; nil: none.
func appendRows(dst []byte, s *columnar.RowSet, n int) []byte {
	for i := range (n + 7) / 8 {
		b := byte(0)
		if s != nil {
			b = byte(s[i/8] >> (i % 8 * 8))
		}
		dst = append(dst, b)
	}
	return dst
}

// rowSet reads n bits; nil when none is set.
func (r *reader) rowSet(n int) *columnar.RowSet {
	s := new(columnar.RowSet)
	for i, b := range r.fixed((n + 7) / 8) {
		s[i/8] |= uint64(b) << (i % 8 * 8)
	}
	beyond := *s
	beyond.Without(columnar.AllRows(n))
	r.Fail(!beyond.Empty())
	if s.Empty() {
		return nil
	}
	return s
}

// appendDictionary writes the values of a Keyword.
func appendDictionary(dst []byte, d *columnar.Dictionary) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d.Ends)))
	return append(appendLengths(dst, d.Ends), d.Data...)
}

// dictionary keeps parts of what it reads.
func (r *reader) dictionary(d *columnar.Dictionary) {
	n := int(r.uint32())
	if r.Fail(4*n > len(r.Data)); r.Bad {
		return
	}
	if d.Ends = r.ends(n); n == 0 || r.Bad {
		return
	}
	d.Data = slices.Clip(r.Take(uint64(d.Ends[n-1])))
	for code := uint32(1); !r.Bad && int(code) < d.Span(); code++ {
		r.Fail(!columnar.ValidStrings(d.Value(code)))
	}
}
