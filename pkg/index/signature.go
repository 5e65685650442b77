package index

import "math/bits"

// signature says for every row of a full chunk which groups of three bytes
// (grams) its searched text may contain, so that a search reads only rows that
// have all the grams of its tokens. A gram is hashed to one of a power of two of
// rowsets; a row is in the rowset when one of its grams is. With about as many
// rowsets as a row has bytes somewhat less than half of the bits are set, and a
// token of six bytes, having four grams, passes one row in forty by chance.
type signature struct {
	shift uint8 // of a gram's hash to the number of its rowset
	sets  []rowset
}

const (
	minSignature = 5  // 32 rowsets, 4 bytes a row
	maxSignature = 10 // 1,024 rowsets, 128 bytes a row
)

func sign(t *texts) signature {
	rows := len(t.starts) - 1
	width := bits.Len(uint(len(t.data) / rows))
	width = min(max(width, minSignature), maxSignature)
	s := signature{shift: uint8(32 - width), sets: make([]rowset, 1<<width)}
	for i := range rows {
		w, bit := i>>6, uint64(1)<<(i&63)
		row, run := t.row(i), 0
		for j, b := range row {
			if run++; b >= endColumn {
				run = 0
			}
			if run >= 3 {
				s.sets[gram(row[j-2:])>>s.shift][w] |= bit
			}
		}
	}
	return s
}

// gram hashes the first three bytes of b.
func gram(b []byte) uint32 {
	return (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16) * 2654435761
}

// grams hashes every three bytes of the tokens.
func grams(tokens [][]byte) []uint32 {
	var g []uint32
	for _, t := range tokens {
		for j := 0; j+3 <= len(t); j++ {
			g = append(g, gram(t[j:]))
		}
	}
	return g
}

// pass keeps the rows that have all the grams.
func (s *signature) pass(grams []uint32, rows *rowset) {
	if s.sets == nil {
		return
	}
	for _, g := range grams {
		rows.and(&s.sets[g>>s.shift])
	}
}
