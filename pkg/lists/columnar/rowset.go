package columnar

import (
	"iter"
	"math/bits"
)

// A row group holds at most MaxRowGroup documents, so that a set of its rows is a
// small array, and all that is derived from the rows is cheap to throw away and make
// again.
const (
	rowShift    = 12
	MaxRowGroup = 1 << rowShift
	rowMask     = MaxRowGroup - 1
	rowWords    = MaxRowGroup / 64
)

// RowSet is a set of rows of one row group. Has, and the argument of And, Or and
// Without, may be nil: that is the empty set. For so few rows, a roaring bitmap takes 5
// times as long to cut with another, or more.
type RowSet [rowWords]uint64

// AllRows returns the first n rows.
func AllRows(n int) *RowSet {
	all := new(RowSet)
	for w := range all {
		switch left := n - w*64; {
		case left >= 64:
			all[w] = ^uint64(0)
		case left > 0:
			all[w] = 1<<left - 1
		}
	}
	return all
}

// Has says whether a row is in the set.
func (s *RowSet) Has(row int) bool { return s != nil && s[row>>6]>>(row&63)&1 != 0 }
func (s *RowSet) add(row int)      { s[row>>6] |= 1 << (row & 63) }
func (s *RowSet) drop(row int)     { s[row>>6] &^= 1 << (row & 63) }

// with returns the set, a new one for nil, with a row added.
func (s *RowSet) with(row int) *RowSet {
	if s == nil {
		s = new(RowSet)
	}
	s.add(row)
	return s
}

// Count returns how many rows are in the set.
func (s *RowSet) Count() int { return Bits(s[:]).Count() }

// Empty says whether no row is in the set.
func (s *RowSet) Empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// keep keeps the rows for which holds is true.
func (s *RowSet) keep(holds func(row int) bool) {
	for row := range s.all() {
		if !holds(row) {
			s.drop(row)
		}
	}
}

// And keeps the rows that are in o too.
func (s *RowSet) And(o *RowSet) {
	if o == nil {
		*s = RowSet{}
		return
	}
	for i := range s {
		s[i] &= o[i]
	}
}

// Without drops the rows that are in o.
func (s *RowSet) Without(o *RowSet) {
	if o == nil {
		return
	}
	for i := range s {
		s[i] &^= o[i]
	}
}

// Or adds the rows of o.
func (s *RowSet) Or(o *RowSet) {
	if o == nil {
		return
	}
	for i := range s {
		s[i] |= o[i]
	}
}

func (s *RowSet) all() iter.Seq[int] { return Bits(s[:]).all() }

func (s *RowSet) bytes() int {
	if s == nil {
		return 0
	}
	return 8 * rowWords
}

// keepWithin keeps the rows whose value lies in [lo, hi]. The loops make the bits of 64
// rows without branches, which would be mispredicted for every other row.
func (s *RowSet) keepWithin(values []int64, lo, hi int64) {
	if lo > hi {
		*s = RowSet{}
		return
	}
	from, span := uint64(lo), uint64(hi)-uint64(lo)
	for w := range s {
		if s[w] == 0 {
			continue
		}
		held := uint64(0)
		for i, v := range values[w*64 : min(w*64+64, len(values))] {
			bit := uint64(0)
			if uint64(v)-from <= span {
				bit = 1
			}
			held |= bit << i
		}
		s[w] &= held
	}
}

// keepCodes keeps the rows whose code is in the set, which has room for every code.
func (s *RowSet) keepCodes(codes []uint32, set Bits) {
	for w := range s {
		if s[w] == 0 {
			continue
		}
		held := uint64(0)
		for i, code := range codes[w*64 : min(w*64+64, len(codes))] {
			held |= set[code>>6] >> (code & 63) & 1 << i
		}
		s[w] &= held
	}
}

// Bits is a larger set of numbers, with a bit for each.
type Bits []uint64

// NewBits returns an empty set of numbers less than n.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// Has says whether n is in the set.
func (b Bits) Has(n int) bool { return b[n>>6]>>(n&63)&1 != 0 }

// Add adds n.
func (b Bits) Add(n int) { b[n>>6] |= 1 << (n & 63) }

// Count returns how many numbers are in the set.
func (b Bits) Count() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// all yields the numbers in ascending order.
func (b Bits) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for w, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(w<<6 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
