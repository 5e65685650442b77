package columnar

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// ints is a chunk's column of int64. It grows in raw; pack, for a full chunk, keeps
// the differences from lo in the least width that holds them, in exactly one of the
// slices. Those of one and two bytes are laid out to be compared many at a time.
type Ints struct {
	lo, hi int64 // bounds of the values, perhaps wider; lo > hi while there is none
	Raw    []int64
	u8     []byte
	u16    []byte // little endian
	u32    []uint32
}

func newInts() Ints { return Ints{lo: math.MaxInt64, hi: math.MinInt64} }

func (x *Ints) append(v int64) {
	x.lo, x.hi = min(x.lo, v), max(x.hi, v)
	x.Raw = append(x.Raw, v)
}

// appendNull appends a row whose value is never looked at.
func (x *Ints) appendNull() { x.Raw = append(x.Raw, 0) }

func (x *Ints) At(row int) int64 {
	switch {
	case x.u8 != nil:
		return x.lo + int64(x.u8[row])
	case x.u16 != nil:
		return x.lo + int64(binary.LittleEndian.Uint16(x.u16[2*row:]))
	case x.u32 != nil:
		return x.lo + int64(x.u32[row])
	}
	return x.Raw[row]
}

// pack makes room for whole words of rows, because those are compared at a time.
func (x *Ints) pack() {
	raw := x.Raw
	x.shrink(len(raw))
	if x.Raw != nil {
		x.Raw = append(make([]int64, 0, len(raw)), raw...)
		return
	}
	for row, v := range raw {
		x.put(row, uint64(v)-uint64(x.lo))
	}
}

// shrink drops the values and makes the slice that holds so many between the
// bounds; raw stays when it takes all of an int64.
func (x *Ints) shrink(rows int) {
	if x.lo > x.hi {
		x.lo, x.hi = 0, 0
	}
	rows = (rows + 63) &^ 63
	// int64 may not hold the span.
	switch span := uint64(x.hi) - uint64(x.lo); {
	case span <= math.MaxUint8:
		x.u8 = make([]byte, rows)
	case span <= math.MaxUint16:
		x.u16 = make([]byte, 2*rows)
	case span <= math.MaxUint32:
		x.u32 = make([]uint32, rows)
	default:
		return
	}
	x.Raw = nil
}

// packed returns a packed column; rows in skip have no value.
func PackInts(values []int64, skip *RowSet) Ints {
	x := newInts()
	if skip == nil {
		for _, v := range values {
			x.lo, x.hi = min(x.lo, v), max(x.hi, v)
		}
	} else {
		for row, v := range values {
			if !skip.Has(row) {
				x.lo, x.hi = min(x.lo, v), max(x.hi, v)
			}
		}
	}
	x.Raw = values
	x.pack()
	return x
}

// put writes a difference that the width holds, or that is never looked at.
func (x *Ints) put(row int, d uint64) {
	switch {
	case x.u8 != nil:
		x.u8[row] = uint8(d)
	case x.u16 != nil:
		binary.LittleEndian.PutUint16(x.u16[2*row:], uint16(d))
	case x.u32 != nil:
		x.u32[row] = uint32(d)
	}
}

// set changes a row, going back to raw when its width does not hold v.
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
		x.unpack()
	}
	if x.Raw != nil {
		x.Raw[row] = v
	} else {
		x.put(row, d)
	}
	x.lo, x.hi = min(x.lo, v), max(x.hi, v)
}

func (x *Ints) unpack() {
	raw := make([]int64, max(len(x.u8), len(x.u16)/2, len(x.u32)))
	for row := range raw {
		raw[row] = x.At(row)
	}
	x.Raw, x.u8, x.u16, x.u32 = raw, nil, nil, nil
}

func (x *Ints) bytes() int {
	return 8*cap(x.Raw) + cap(x.u8) + cap(x.u16) + 4*cap(x.u32)
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
	if x.Raw != nil {
		betweenRaw(x.Raw, uint64(lo), span, rows)
		return
	}
	for w := range rows {
		if rows[w] != 0 {
			rows[w] &= x.between(w, from, span)
		}
	}
}

// between returns which of the w-th 64 rows have from <= difference <= from+span.
func (x *Ints) between(w int, from, span uint64) uint64 {
	switch {
	case x.u8 != nil && span == 0:
		return equal8((*[64]byte)(x.u8[w*64:]), from)
	case x.u8 != nil:
		return between8(x.u8[w*64:][:64], uint8(from), uint8(span))
	case x.u16 != nil && span == 0:
		return equal16((*[128]byte)(x.u16[w*128:]), from)
	case x.u16 != nil:
		return between16(x.u16[w*128:][:128], uint16(from), uint16(span))
	}
	return between32(x.u32[w*64:][:64], uint32(from), uint32(span))
}

// The loops below are written for the compiler to keep all they need in registers
// and to make the bits without branches, which would be guessed wrong for every
// other row.

func between8(x []byte, from, span uint8) (m uint64) {
	for _, v := range x {
		var bit uint64
		if v-from <= span {
			bit = 1 << 63
		}
		m = m>>1 | bit
	}
	return m
}

func between16(x []byte, from, span uint16) (m uint64) {
	for ; len(x) >= 2; x = x[2:] {
		var bit uint64
		if binary.LittleEndian.Uint16(x)-from <= span {
			bit = 1 << 63
		}
		m = m>>1 | bit
	}
	return m
}

func between32(x []uint32, from, span uint32) (m uint64) {
	for _, v := range x {
		var bit uint64
		if v-from <= span {
			bit = 1 << 63
		}
		m = m>>1 | bit
	}
	return m
}

func betweenRaw(x []int64, from, span uint64, rows *RowSet) {
	for w := range rows {
		if rows[w] == 0 {
			continue
		}
		part := x[w<<6 : min(w<<6+64, len(x))]
		var m uint64
		for _, v := range part {
			_, outside := bits.Sub64(span, uint64(v)-from, 0)
			m = m>>1 | outside<<63
		}
		rows[w] &^= m >> (64 - len(part))
	}
}

// equal8 returns which bytes are v.
func equal8(x *[64]byte, v uint64) uint64 {
	v *= 0x0101010101010101
	return zeros(binary.LittleEndian.Uint64(x[0:])^v) |
		zeros(binary.LittleEndian.Uint64(x[8:])^v)<<8 |
		zeros(binary.LittleEndian.Uint64(x[16:])^v)<<16 |
		zeros(binary.LittleEndian.Uint64(x[24:])^v)<<24 |
		zeros(binary.LittleEndian.Uint64(x[32:])^v)<<32 |
		zeros(binary.LittleEndian.Uint64(x[40:])^v)<<40 |
		zeros(binary.LittleEndian.Uint64(x[48:])^v)<<48 |
		zeros(binary.LittleEndian.Uint64(x[56:])^v)<<56
}

// zeros returns which of eight bytes are zero: adding 0x7f to the low bits of a
// byte carries into its high bit unless they are all zero, and never beyond; the
// product gathers the high bits in the highest byte.
func zeros(x uint64) uint64 {
	const low = 0x7f7f7f7f7f7f7f7f
	return ^(x&low + low | x | low) >> 7 * 0x0102040810204080 >> 56
}

// equal16 returns which pairs of bytes are v, four at a time, as zeros does.
func equal16(x *[128]byte, v uint64) (m uint64) {
	const (
		low    = 0x7fff7fff7fff7fff
		gather = 1<<48 | 1<<33 | 1<<18 | 1<<3
	)
	v *= 0x0001000100010001
	for i := 0; i <= 120; i += 8 {
		d := binary.LittleEndian.Uint64(x[i:i+8]) ^ v
		zero := ^(d&low + low | d | low) >> 15
		m = m>>4 | zero*gather>>48<<60
	}
	return m
}

// among keeps the rows whose value is a member of the set: bit v stands for v. The
// set has room for every value of the column, and none is negative.
func (x *Ints) among(set Bits, rows *RowSet) {
	if x.Raw != nil {
		for row := range rows.all() {
			if !set.Has(int(x.Raw[row])) {
				rows.drop(row)
			}
		}
		return
	}
	for w := range rows {
		if rows[w] != 0 {
			rows[w] &= x.among64(w, set)
		}
	}
}

// among64 returns which of the w-th 64 rows have a value in the set.
func (x *Ints) among64(w int, set Bits) (m uint64) {
	lo := uint64(x.lo)
	switch {
	case x.u8 != nil:
		for _, d := range (*[64]byte)(x.u8[w*64:]) {
			m = m>>1 | member(set, lo+uint64(d))<<63
		}
	case x.u16 != nil:
		for part := x.u16[w*128:][:128]; len(part) >= 2; part = part[2:] {
			m = m>>1 | member(set, lo+uint64(binary.LittleEndian.Uint16(part)))<<63
		}
	default:
		for _, d := range (*[64]uint32)(x.u32[w*64:]) {
			m = m>>1 | member(set, lo+uint64(d))<<63
		}
	}
	return m
}

// member returns the bit of v in its lowest place, above it anything.
func member(set Bits, v uint64) uint64 {
	// This never fails, and costs less than the compiler's own test.
	if i := v >> 6; i < uint64(len(set)) {
		return set[i] >> (v & 63)
	}
	return 0
}
