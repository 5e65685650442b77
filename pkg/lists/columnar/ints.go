package columnar

import (
	"encoding/binary"
	"math"
	"slices"
)

// Ints is a row group's column of int64. It grows in Raw. When packed, it keeps the
// differences from lo in the least width that holds them, in one of the other slices,
// with room for whole words of rows because 64 rows are compared at a time.
type Ints struct {
	lo, hi int64 // bounds of the values, perhaps wider; lo > hi while there is none
	Raw    []int64
	u8     []byte
	u16    []uint16
	u32    []uint32
}

func newInts() Ints { return Ints{lo: math.MaxInt64, hi: math.MinInt64} }

func (x *Ints) widen(v int64) { x.lo, x.hi = min(x.lo, v), max(x.hi, v) }

func (x *Ints) append(v int64) {
	x.widen(v)
	x.Raw = append(x.Raw, v)
}

// appendNull appends a row whose value is never read.
func (x *Ints) appendNull() { x.Raw = append(x.Raw, 0) }

// At returns the value of a row.
func (x *Ints) At(row int) int64 {
	switch {
	case x.u8 != nil:
		return x.lo + int64(x.u8[row])
	case x.u16 != nil:
		return x.lo + int64(x.u16[row])
	case x.u32 != nil:
		return x.lo + int64(x.u32[row])
	}
	return x.Raw[row]
}

// PackInts returns a packed column and keeps nothing of values; rows in skip have no
// value.
func PackInts(values []int64, skip *RowSet) Ints {
	x := newInts()
	if skip == nil && len(values) > 0 {
		x.lo, x.hi = slices.Min(values), slices.Max(values)
	}
	for row := 0; skip != nil && row < len(values); row++ {
		if !skip.Has(row) {
			x.widen(values[row])
		}
	}
	x.Raw = values
	x.pack()
	return x
}

func (x *Ints) pack() {
	raw := x.Raw
	if x.lo > x.hi {
		x.lo, x.hi = 0, 0
	}
	rows := (len(raw) + 63) &^ 63
	switch span := uint64(x.hi) - uint64(x.lo); { // int64 may not hold the span
	case span <= math.MaxUint8:
		x.u8 = make([]byte, rows)
	case span <= math.MaxUint16:
		x.u16 = make([]uint16, rows)
	case span <= math.MaxUint32:
		x.u32 = make([]uint32, rows)
	default:
		x.Raw = append(make([]int64, 0, len(raw)), raw...)
		return
	}
	x.Raw = nil
	for row, v := range raw {
		x.put(row, uint64(v)-uint64(x.lo))
	}
}

// put writes a difference that the width holds, or that is never read.
func (x *Ints) put(row int, d uint64) {
	switch {
	case x.u8 != nil:
		x.u8[row] = uint8(d)
	case x.u16 != nil:
		x.u16[row] = uint16(d)
	case x.u32 != nil:
		x.u32[row] = uint32(d)
	}
}

// set changes a row. The column is no longer packed when its width does not hold v.
func (x *Ints) set(row int, v int64) {
	room := uint64(math.MaxUint32)
	switch {
	case x.u8 != nil:
		room = math.MaxUint8
	case x.u16 != nil:
		room = math.MaxUint16
	}
	d := uint64(v) - uint64(x.lo)
	if x.Raw == nil && (v < x.lo || d > room) {
		raw := make([]int64, max(len(x.u8), len(x.u16), len(x.u32)))
		for row := range raw {
			raw[row] = x.At(row)
		}
		x.Raw, x.u8, x.u16, x.u32 = raw, nil, nil, nil
	}
	if x.Raw != nil {
		x.Raw[row] = v
	} else {
		x.put(row, d)
	}
	x.widen(v)
}

func (x *Ints) bytes() int {
	return 8*cap(x.Raw) + cap(x.u8) + 2*cap(x.u16) + 4*cap(x.u32)
}

// within keeps the rows whose value lies in [lo, hi].
func (x *Ints) within(lo, hi int64, rows *RowSet) {
	switch {
	case lo > x.hi || hi < x.lo || lo > hi:
		*rows = RowSet{}
		return
	case lo <= x.lo && hi >= x.hi:
		return
	}
	lo, hi = max(lo, x.lo), min(hi, x.hi)
	from, span := uint64(lo)-uint64(x.lo), uint64(hi)-uint64(lo)
	for w := range rows {
		if rows[w] != 0 {
			rows[w] &= x.within64(w, from, span)
		}
	}
}

// within64 returns which of the w-th 64 rows have from <= value-x.lo <= from+span.
func (x *Ints) within64(w int, from, span uint64) uint64 {
	switch {
	case x.u8 != nil && span == 0:
		return equal8((*[64]byte)(x.u8[w*64:]), from)
	case x.u8 != nil:
		return between((*[64]byte)(x.u8[w*64:])[:], from, span)
	case x.u16 != nil && span == 0:
		return equal16((*[64]uint16)(x.u16[w*64:]), from)
	case x.u16 != nil:
		return between((*[64]uint16)(x.u16[w*64:])[:], from, span)
	case x.u32 != nil:
		return between((*[64]uint32)(x.u32[w*64:])[:], from, span)
	}
	part := x.Raw[w*64 : min(w*64+64, len(x.Raw))]
	return between(part, from+uint64(x.lo), span) >> (64 - len(part))
}

// among keeps the rows whose value is in the set, which has room for every value of
// the column. None is negative.
func (x *Ints) among(set Bits, rows *RowSet) {
	for w := range rows {
		if rows[w] != 0 {
			rows[w] &= x.among64(w, set)
		}
	}
}

// among64 returns which of the w-th 64 rows have a value in the set.
func (x *Ints) among64(w int, set Bits) uint64 {
	switch lo := uint64(x.lo); {
	case x.u8 != nil:
		return members((*[64]byte)(x.u8[w*64:])[:], lo, set)
	case x.u16 != nil:
		return members((*[64]uint16)(x.u16[w*64:])[:], lo, set)
	case x.u32 != nil:
		return members((*[64]uint32)(x.u32[w*64:])[:], lo, set)
	}
	part := x.Raw[w*64 : min(w*64+64, len(x.Raw))]
	return members(part, 0, set) >> (64 - len(part))
}

// The loops below are written so that the compiler keeps all they need in registers
// and makes the bits without branches, which would be mispredicted for every other
// row. The bit of the last value is the highest.

func between[T byte | uint16 | uint32 | int64](x []T, from, span uint64) (m uint64) {
	for _, v := range x {
		var bit uint64
		if uint64(v)-from <= span {
			bit = 1 << 63
		}
		m = m>>1 | bit
	}
	return m
}

func members[T byte | uint16 | uint32 | int64](x []T, lo uint64, set Bits) (m uint64) {
	for _, v := range x {
		n, word := lo+uint64(v), uint64(0)
		// This always holds, and costs less than the compiler's own test.
		if i := n >> 6; i < uint64(len(set)) {
			word = set[i]
		}
		m = m>>1 | word>>(n&63)<<63
	}
	return m
}

// equal8 returns which bytes are v.
func equal8(x *[64]byte, v uint64) (m uint64) {
	v *= 0x0101010101010101
	for i := 0; i < 64; i += 8 {
		m = m>>8 | zeros(binary.LittleEndian.Uint64(x[i:i+8])^v)<<56
	}
	return m
}

// zeros returns which of eight bytes are zero: adding 0x7f to the low bits of a
// byte carries into its high bit unless they are all zero, and never beyond; the
// product gathers the high bits in the highest byte.
func zeros(x uint64) uint64 {
	const low = 0x7f7f7f7f7f7f7f7f
	return ^(x&low + low | x | low) >> 7 * 0x0102040810204080 >> 56
}

// equal16 returns which values are v, four at a time, as zeros does.
func equal16(x *[64]uint16, v uint64) (m uint64) {
	const (
		low    = 0x7fff7fff7fff7fff
		gather = 1<<48 | 1<<33 | 1<<18 | 1<<3
	)
	v *= 0x0001000100010001
	for i := 0; i < 64; i += 4 {
		part := x[i : i+4 : i+4]
		d := (uint64(part[0]) | uint64(part[1])<<16 | uint64(part[2])<<32 | uint64(part[3])<<48) ^ v
		zero := ^(d&low + low | d | low) >> 15
		m = m>>4 | zero*gather>>48<<60
	}
	return m
}
