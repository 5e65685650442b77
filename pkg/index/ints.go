package index

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// ints is a chunk's column of int64. It grows in raw; pack keeps the differences
// from lo in the least width that holds them, in exactly one of the slices.
type ints struct {
	lo, hi int64 // bounds of the values, perhaps wider; lo > hi while there is none
	raw    []int64
	u8     []uint8
	u16    []uint16
	u32    []uint32
}

func newInts() ints { return ints{lo: math.MaxInt64, hi: math.MinInt64} }

func (x *ints) append(v int64) {
	x.lo, x.hi = min(x.lo, v), max(x.hi, v)
	x.raw = append(x.raw, v)
}

// appendNull appends a row whose value is never looked at.
func (x *ints) appendNull() { x.raw = append(x.raw, 0) }

func (x *ints) at(row int) int64 {
	switch {
	case x.u8 != nil:
		return x.lo + int64(x.u8[row])
	case x.u16 != nil:
		return x.lo + int64(x.u16[row])
	case x.u32 != nil:
		return x.lo + int64(x.u32[row])
	}
	return x.raw[row]
}

// span is the distance of the bounds, which int64 may not hold.
func (x *ints) span() uint64 { return uint64(x.hi) - uint64(x.lo) }

func (x *ints) pack() {
	if x.lo > x.hi {
		x.lo, x.hi = 0, 0
	}
	switch span := x.span(); {
	case span <= math.MaxUint8:
		x.u8 = differences[uint8](x.raw, x.lo)
	case span <= math.MaxUint16:
		x.u16 = differences[uint16](x.raw, x.lo)
	case span <= math.MaxUint32:
		x.u32 = differences[uint32](x.raw, x.lo)
	default:
		x.raw = append([]int64(nil), x.raw...)
		return
	}
	x.raw = nil
}

type narrow interface{ uint8 | uint16 | uint32 }

func differences[T narrow](raw []int64, lo int64) []T {
	d := make([]T, len(raw))
	for i, v := range raw {
		d[i] = T(v - lo)
	}
	return d
}

// set changes a row, unpacking when its width does not hold v.
func (x *ints) set(row int, v int64) {
	room := uint64(math.MaxUint64)
	switch {
	case x.u8 != nil:
		room = math.MaxUint8
	case x.u16 != nil:
		room = math.MaxUint16
	case x.u32 != nil:
		room = math.MaxUint32
	}
	if x.raw == nil && (v < x.lo || uint64(v)-uint64(x.lo) > room) {
		x.unpack()
	}
	switch {
	case x.u8 != nil:
		x.u8[row] = uint8(v - x.lo)
	case x.u16 != nil:
		x.u16[row] = uint16(v - x.lo)
	case x.u32 != nil:
		x.u32[row] = uint32(v - x.lo)
	default:
		x.raw[row] = v
	}
	x.lo, x.hi = min(x.lo, v), max(x.hi, v)
}

func (x *ints) unpack() {
	raw := make([]int64, max(len(x.u8), len(x.u16), len(x.u32)))
	for i := range raw {
		raw[i] = x.at(i)
	}
	x.raw, x.u8, x.u16, x.u32 = raw, nil, nil, nil
}

func (x *ints) bytes() int {
	return 8*cap(x.raw) + cap(x.u8) + 2*cap(x.u16) + 4*cap(x.u32)
}

// within keeps the rows whose value lies in [lo, hi].
func (x *ints) within(lo, hi int64, rows *rowset) {
	switch {
	case lo > x.hi || hi < x.lo || lo > hi:
		*rows = rowset{}
		return
	case lo <= x.lo && hi >= x.hi:
		return
	}
	lo, hi = max(lo, x.lo), min(hi, x.hi)
	from, span := uint64(lo)-uint64(x.lo), uint64(hi)-uint64(lo)
	switch {
	case x.u8 != nil && span == 0:
		equal8(x.u8, uint8(from), rows)
	case x.u8 != nil:
		between(x.u8, uint8(from), uint8(span), rows)
	case x.u16 != nil:
		between(x.u16, uint16(from), uint16(span), rows)
	case x.u32 != nil:
		between(x.u32, uint32(from), uint32(span), rows)
	default:
		betweenRaw(x.raw, uint64(lo), span, rows)
	}
}

// between keeps the rows with from <= x <= from+span. A branch for each row would
// be guessed wrong for every other one, so the bits are made by arithmetic.
func between[T narrow](x []T, from, span T, rows *rowset) {
	for w := range rows {
		if rows[w] == 0 {
			continue
		}
		part := x[w<<6 : min(w<<6+64, len(x))]
		var m uint64
		for _, v := range part {
			var bit uint64
			if v-from <= span {
				bit = 1 << 63
			}
			m = m>>1 | bit
		}
		rows[w] &= m >> (64 - len(part))
	}
}

func betweenRaw(x []int64, from, span uint64, rows *rowset) {
	for w := range rows {
		if rows[w] == 0 {
			continue
		}
		part := x[w<<6 : min(w<<6+64, len(x))]
		var m uint64
		for _, v := range part {
			var bit uint64
			if uint64(v)-from <= span {
				bit = 1 << 63
			}
			m = m>>1 | bit
		}
		rows[w] &= m >> (64 - len(part))
	}
}

// equal8 keeps the rows with x == v, eight at a time: a byte of (x xor v) is zero
// where they are equal, and adding 0x7f to its low bits carries into the high bit
// everywhere else.
func equal8(x []uint8, v uint8, rows *rowset) {
	const (
		low7   = 0x7f7f7f7f7f7f7f7f
		ones   = 0x0101010101010101
		gather = 0x0102040810204080
	)
	all := uint64(v) * ones
	for w := range rows {
		if rows[w] == 0 {
			continue
		}
		part := x[w<<6 : min(w<<6+64, len(x))]
		var m uint64
		for i := 0; i+8 <= len(part); i += 8 {
			d := binary.LittleEndian.Uint64(part[i:]) ^ all
			zero := ^(d&low7 + low7 | d | low7) >> 7
			m |= zero * gather >> 56 << i
		}
		for i := len(part) &^ 7; i < len(part); i++ {
			if part[i] == v {
				m |= 1 << i
			}
		}
		rows[w] &= m
	}
}

// among keeps the rows whose value is a member of the set: bit v stands for v.
// Values are not negative.
func (x *ints) among(set []uint64, rows *rowset) {
	switch {
	case x.u8 != nil:
		member(x.u8, uint64(x.lo), set, rows)
	case x.u16 != nil:
		member(x.u16, uint64(x.lo), set, rows)
	case x.u32 != nil:
		member(x.u32, uint64(x.lo), set, rows)
	default:
		for w, word := range rows {
			for ; word != 0; word &= word - 1 {
				row := w<<6 + bits.TrailingZeros64(word)
				if v := uint64(x.raw[row]); v>>6 >= uint64(len(set)) || set[v>>6]>>(v&63)&1 == 0 {
					rows.drop(row)
				}
			}
		}
	}
}

func member[T narrow](x []T, lo uint64, set []uint64, rows *rowset) {
	for w := range rows {
		if rows[w] == 0 {
			continue
		}
		part := x[w<<6 : min(w<<6+64, len(x))]
		var m uint64
		for _, d := range part {
			v := lo + uint64(d)
			var bit uint64
			if v>>6 < uint64(len(set)) {
				bit = set[v>>6] >> (v & 63)
			}
			m = m>>1 | bit<<63
		}
		rows[w] &= m >> (64 - len(part))
	}
}
