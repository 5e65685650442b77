package segment

import (
	"encoding/binary"
	"slices"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// appendNumbers writes as many of the lowest bytes of the numbers as width says: all
// lowest ones, all next ones, and so on, so that those that hardly differ are together.
func appendNumbers(dst []byte, values []int64, width int) []byte {
	for plane := range width {
		for _, v := range values {
			dst = append(dst, byte(v>>(8*plane)))
		}
	}
	return dst
}

// numbers reads four or eight bytes of each of n numbers.
func (r *reader) numbers(out []int64, width int) {
	n := len(out)
	clear(out)
	for from := 0; from < width; from += 4 {
		planes := r.fixed(4 * n)
		a, b, c, d := planes[:n], planes[n:2*n], planes[2*n:3*n], planes[3*n:]
		for i := range out {
			low := uint64(a[i]) | uint64(b[i])<<8 | uint64(c[i])<<16 | uint64(d[i])<<24
			out[i] |= int64(low << (8 * from))
		}
	}
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
	lengths := make([]int64, len(d.Ends))
	for i := range d.Ends {
		lengths[i] = int64(len(d.Value(int64(i + 1))))
	}
	return append(appendNumbers(dst, lengths, 4), d.Data...)
}

// dictionary keeps parts of what it reads.
func (r *reader) dictionary(d *columnar.Dictionary) {
	n := int(r.uint32())
	if r.Fail(4*n > len(r.Data)); r.Bad {
		return
	}
	lengths := make([]int64, n)
	r.numbers(lengths, 4)
	d.Ends = make([]uint32, n)
	end := uint64(0)
	for i, length := range lengths {
		end += uint64(length)
		d.Ends[i] = uint32(end)
	}
	if d.Data = slices.Clip(r.Take(end)); r.Bad {
		return
	}
	for code := 1; code < d.Span(); code++ {
		r.Fail(!columnar.ValidStrings(d.Value(int64(code))))
	}
}
