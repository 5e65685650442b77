package segment

import (
	"encoding/binary"
	"math/bits"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

// Ways of taking the differences of a column's numbers; doc.go specifies them.
const (
	fromBase     = 0 // from the least
	fromPrevious = 1 // from the row before, and zigzag
	fromOther    = 2 // from another column of the block: this and all above
)

// appendNumbers writes a column in the way with the shortest differences. Rows in
// skip have no value; they get the one that a reader will find there, because other
// columns may refer to this one.
func appendNumbers(dst []byte, values []int64, skip *columnar.RowSet, references [][]int64) []byte {
	var best, next differences
	for from := range fromOther + len(references) {
		var other []int64
		if from >= fromOther {
			other = references[from-fromOther]
		}
		next.take(from, values, skip, other)
		if from == 0 || next.bits < best.bits {
			best, next = next, best
		}
	}
	best.fill(values, skip)
	width := 0
	for _, d := range best.rows {
		width = max(width, (bits.Len64(d)+7)/8)
	}
	dst = append(dst, byte(best.from), byte(width))
	dst = binary.AppendVarint(dst, best.base)
	for plane := range width {
		for _, d := range best.rows {
			dst = append(dst, byte(d>>(8*plane)))
		}
	}
	return dst
}

// differences are a column's numbers with one way of taking differences. They may
// wrap around; the reader's sums do too.
type differences struct {
	from  int
	other []int64 // the column referred to
	base  int64
	rows  []uint64
	bits  int // the sum of their lengths
}

func (d *differences) take(from int, values []int64, skip *columnar.RowSet, other []int64) {
	d.from, d.other, d.base, d.bits = from, other, 0, 0
	d.rows = append(d.rows[:0], make([]uint64, len(values))...)
	some := false
	var last int64
	for i, v := range values {
		if skip.Has(i) {
			continue
		}
		if other != nil {
			v -= other[i]
		}
		if !some || from != fromPrevious && v < d.base {
			d.base = v
		}
		if !some {
			some, last = true, v
		}
		if d.rows[i] = uint64(v); from == fromPrevious {
			d.rows[i] = zigzag(v - last)
		}
		last = v
	}
	for i := range d.rows {
		if from != fromPrevious && !skip.Has(i) {
			d.rows[i] -= uint64(d.base)
		}
		d.bits += bits.Len64(d.rows[i])
	}
}

// fill gives the rows in skip the values that come out of a difference of 0.
func (d *differences) fill(values []int64, skip *columnar.RowSet) {
	if skip == nil {
		return
	}
	last := d.base
	for i := range values {
		if skip.Has(i) {
			values[i] = d.base
			if d.from == fromPrevious {
				values[i] = last
			} else if d.other != nil {
				values[i] += d.other[i]
			}
		}
		last = values[i]
	}
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// readNumbers reads a column of len(out) rows. It refuses all that appendNumbers does
// not write, except that any reference may be chosen.
func (r *reader) readNumbers(out []int64, skip *columnar.RowSet, references [][]int64) {
	from, width := int(r.Byte()), int(r.Byte())
	base := r.Varint()
	r.Fail(from >= fromOther+len(references) || width > 8)
	if r.Bad {
		return
	}
	planes := r.Take(uint64(width * len(out)))
	if r.Bad {
		return
	}
	gather(out, planes, width)
	r.Fail(width > 0 && allZero(planes[(width-1)*len(out):]))
	r.Fail(!startsRight(from, base, out, skip))
	switch from {
	case fromBase:
		for i := range out {
			out[i] += base
		}
	case fromPrevious:
		last := base
		for i, d := range out {
			last += unzigzag(uint64(d))
			out[i] = last
		}
	default:
		other := references[from-fromOther][:len(out)]
		for i, o := range other {
			out[i] += base + o
		}
	}
}

// startsRight says whether differences have the one right base: the least difference
// is 0, or, from row to row, the first; and it is 0 in rows without a value.
func startsRight(from int, base int64, rows []int64, skip *columnar.RowSet) bool {
	zero, some := false, false
	for i, d := range rows {
		if skip.Has(i) {
			if d != 0 {
				return false
			}
			continue
		}
		if from == fromPrevious && !some && d != 0 {
			return false
		}
		some = true
		zero = zero || d == 0
		if zero && skip == nil {
			return true
		}
	}
	return zero || !some && base == 0 && from == fromBase
}

func allZero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// gather puts the planes together.
func gather(out []int64, planes []byte, width int) {
	n := len(out)
	if width == 0 {
		clear(out)
		return
	}
	for i, b := range planes[:n] {
		out[i] = int64(b)
	}
	plane := 1
	for ; plane+2 <= width; plane += 2 {
		a, b, shift := planes[plane*n:][:n], planes[(plane+1)*n:][:n], 8*plane
		for i := range out {
			out[i] |= int64(uint64(a[i])|uint64(b[i])<<8) << shift
		}
	}
	if plane < width {
		a, shift := planes[plane*n:][:n], 8*plane
		for i := range out {
			out[i] |= int64(a[i]) << shift
		}
	}
}
