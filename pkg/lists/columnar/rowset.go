package columnar

import "math/bits"

// A chunk holds at most chunkRows documents, so that a set of its rows is a small
// fixed array and everything about it can be thrown away and built again cheaply.
const (
	chunkShift = 12
	chunkRows  = 1 << chunkShift
	chunkMask  = chunkRows - 1
	chunkWords = chunkRows / 64
)

// rowset is a set of rows of one chunk.
type rowset [chunkWords]uint64

func (s *rowset) has(row int) bool { return s[row>>6]>>(row&63)&1 != 0 }
func (s *rowset) add(row int)      { s[row>>6] |= 1 << (row & 63) }
func (s *rowset) drop(row int)     { s[row>>6] &^= 1 << (row & 63) }

func (s *rowset) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s *rowset) empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}

// and keeps the rows that are in o too; nil is the empty set.
func (s *rowset) and(o *rowset) {
	if o == nil {
		*s = rowset{}
		return
	}
	for i := range s {
		s[i] &= o[i]
	}
}

// without drops the rows that are in o; nil is the empty set.
func (s *rowset) without(o *rowset) {
	if o == nil {
		return
	}
	for i := range s {
		s[i] &^= o[i]
	}
}

func (s *rowset) or(o *rowset) {
	for i := range s {
		s[i] |= o[i]
	}
}
