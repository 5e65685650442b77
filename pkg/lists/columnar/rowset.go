package columnar

import "math/bits"

// A chunk holds at most chunkRows documents, so that a set of its rows is a small
// fixed array and everything about it can be thrown away and built again cheaply.
const (
	rowShift = 12
	MaxRowGroup  = 1 << rowShift
	rowMask  = MaxRowGroup - 1
	rowWords = MaxRowGroup / 64
)

// rowset is a set of rows of one chunk.
type RowSet [rowWords]uint64

func (s *RowSet) Has(row int) bool { return s[row>>6]>>(row&63)&1 != 0 }
func (s *RowSet) add(row int)      { s[row>>6] |= 1 << (row & 63) }
func (s *RowSet) drop(row int)     { s[row>>6] &^= 1 << (row & 63) }

func (s *RowSet) Count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s *RowSet) Empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// and keeps the rows that are in o too; nil is the empty set.
func (s *RowSet) And(o *RowSet) {
	if o == nil {
		*s = RowSet{}
		return
	}
	for i := range s {
		s[i] &= o[i]
	}
}

// without drops the rows that are in o; nil is the empty set.
func (s *RowSet) Without(o *RowSet) {
	if o == nil {
		return
	}
	for i := range s {
		s[i] &^= o[i]
	}
}

func (s *RowSet) Or(o *RowSet) {
	for i := range s {
		s[i] |= o[i]
	}
}
