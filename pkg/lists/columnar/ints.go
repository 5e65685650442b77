package columnar

import (
	"encoding/binary"
	"math"
)

// Ints is a row group's column of int64. It grows in Raw. When packed, it keeps the
// differences from lo in the least width that holds them.
type Ints struct {
	lo, hi int64 // bounds of the values, perhaps wider; lo > hi while there is none
	Raw    []int64
	packed packedInts
}

// packedInts are differences, with room for whole words of rows because 64 rows are
// compared at a time.
type packedInts interface {
	at(row int) int64
	between(w int, from, span uint64) uint64   // which of the w-th 64 rows have from <= d <= from+span
	members(w int, lo uint64, set Bits) uint64 // which have lo+d in the set
	bytes() int
}

type packed[T uint8 | uint16 | uint32 | uint64] []T

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
	if x.packed == nil {
		return x.Raw[row]
	}
	return x.lo + x.packed.at(row)
}

// Least returns the least value, or 0 when there is none.
func (x *Ints) Least() int64 {
	if x.lo > x.hi {
		return 0
	}
	return x.lo
}

// PackInts returns a packed column and keeps nothing of values; rows in skip have no
// value.
func PackInts(values []int64, skip *RowSet) Ints {
	x := newInts()
	for row, v := range values {
		if skip == nil || !skip.Has(row) {
			x.widen(v)
		}
	}
	x.Raw = values
	x.pack()
	return x
}

func (x *Ints) pack() {
	if x.lo > x.hi {
		x.lo, x.hi = 0, 0
	}
	switch span := uint64(x.hi) - uint64(x.lo); { // int64 may not hold the span
	case span <= math.MaxUint8:
		x.packed = packRows[uint8](x.Raw, x.lo)
	case span <= math.MaxUint16:
		x.packed = packRows[uint16](x.Raw, x.lo)
	case span <= math.MaxUint32:
		x.packed = packRows[uint32](x.Raw, x.lo)
	default:
		x.packed = packRows[uint64](x.Raw, x.lo)
	}
	x.Raw = nil
}

func packRows[T uint8 | uint16 | uint32 | uint64](raw []int64, lo int64) packed[T] {
	p := make(packed[T], (len(raw)+63)&^63)
	for row, v := range raw {
		p[row] = T(uint64(v) - uint64(lo))
	}
	return p
}

// set changes a row. That unpacks the column.
func (x *Ints) set(row, rows int, v int64) {
	if x.packed != nil {
		raw := make([]int64, rows)
		for row := range raw {
			raw[row] = x.At(row)
		}
		x.Raw, x.packed = raw, nil
	}
	x.Raw[row] = v
	x.widen(v)
}

func (x *Ints) bytes() int {
	if x.packed == nil {
		return 8 * cap(x.Raw)
	}
	return 24 + x.packed.bytes()
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
	if x.packed == nil {
		rows.keep(func(row int) bool { return lo <= x.Raw[row] && x.Raw[row] <= hi })
		return
	}
	from, span := uint64(lo)-uint64(x.lo), uint64(hi)-uint64(lo)
	bytes, ok := x.packed.(packed[uint8])
	for w := range rows {
		switch {
		case rows[w] == 0:
		case ok && span == 0:
			rows[w] &= equals((*[64]byte)(bytes[w*64:]), from)
		default:
			rows[w] &= x.packed.between(w, from, span)
		}
	}
}

// among keeps the rows whose value is in the set, which has room for every value of
// the column. None is negative.
func (x *Ints) among(set Bits, rows *RowSet) {
	if x.packed == nil {
		rows.keep(func(row int) bool { return set.Has(int(x.Raw[row])) })
		return
	}
	for w := range rows {
		if rows[w] != 0 {
			rows[w] &= x.packed.members(w, uint64(x.lo), set)
		}
	}
}

func (p packed[T]) at(row int) int64 { return int64(p[row]) }

func (p packed[T]) bytes() int { return cap(p) * binary.Size(T(0)) }

// The loops below are written so that the compiler keeps all they need in registers
// and makes the bits without branches, which would be mispredicted for every other
// row. The bit of the last value is the highest.

func (p packed[T]) between(w int, from, span uint64) (m uint64) {
	for _, v := range (*[64]T)(p[w*64:]) {
		bit := uint64(0)
		if uint64(v)-from <= span {
			bit = 1 << 63
		}
		m = m>>1 | bit
	}
	return m
}

func (p packed[T]) members(w int, lo uint64, set Bits) (m uint64) {
	for _, v := range (*[64]T)(p[w*64:]) {
		n, word := lo+uint64(v), uint64(0)
		// This always holds, and costs less than the compiler's own test.
		if i := n >> 6; i < uint64(len(set)) {
			word = set[i]
		}
		m = m>>1 | word>>(n&63)<<63
	}
	return m
}

// equals is between with a span of 0, for bytes.
func equals(x *[64]byte, v uint64) (m uint64) {
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
