package columnar

import (
	"math/bits"
	"slices"
)

// signature says for every row of a chunk that takes no more of them which pairs
// of bytes its searched text holds within a value. A search reads the text only of
// rows that have all the pairs of a token, and of none for a token of one or two
// bytes, for which the pairs tell all.
type signature struct {
	pairs []uint16 // those that occur, ascending; the first byte counts more
	refs  []ref    // by place in pairs
	sets  []rowset
	gaps  []byte // of pairs that are in few rows, as appendGaps writes them
}

// ref says where the rows of a pair are.
type ref uint32

const (
	refGaps   ref = 1 << 31 // in gaps, from the place that the lower bits give; otherwise in sets
	refShared ref = 1 << 30 // pairs share the set: a row of it has one of them
	refPlace      = refShared - 1
)

// gapRows is up to how many rows are written as gaps: that takes a byte for each,
// but reading them takes longer than reading a set.
const gapRows = 256

// A chunk of text in many scripts has more pairs than are worth a set each. Those
// that come late share some.
const (
	ownSets    = 2048
	sharedSets = 256
)

// signer makes signatures; it keeps its memory from one to the next.
type signer struct {
	numbers [1 << 16]uint16 // of a pair's set, by pair; 0 for none yet
	seen    [1 << 10]uint64 // which pairs occur, a bit for each
	block   [1 << 12]uint64 // of 64 rows: those that have a pair, by number of its set
	sets    []scratchSet    // by number
	count   int             // how many own sets there are
	made    signature
}

// scratchSet is a rowset with a gap behind it: words at the same place of rowsets
// that lie side by side, 512 bytes apart, would crowd a few places of the caches.
type scratchSet struct {
	rowset
	_ [64]byte
}

// noSet is the number of a set that nothing reads: of pairs that begin with the
// end of a value or a column.
const noSet = 1

func (s *signer) sign(t *texts) *signature {
	s.reset()
	rows := len(t.starts) - 1
	previous := uint16(endColumn)
	for first := 0; first < rows; first += 64 {
		for row := first; row < min(first+64, rows); row++ {
			previous = s.mark(t.row(row), previous, 1<<(row&63))
		}
		// Going from set to set for every byte would take longer than all the rest.
		for n := range s.sets {
			if word := s.block[n]; word != 0 {
				s.sets[n].rowset[first>>6] = word
				s.block[n] = 0
			}
		}
	}
	return s.write()
}

// mark sets a row's bit for each of its pairs and returns its last byte.
func (s *signer) mark(row []byte, previous uint16, bit uint64) uint16 {
	for _, b := range row {
		pair := previous<<8 | uint16(b)
		previous = uint16(b)
		n := s.numbers[pair]
		if n == 0 {
			n = s.number(pair)
		}
		s.block[n&(1<<12-1)] |= bit
	}
	return previous
}

func (s *signer) reset() {
	clear(s.numbers[:])
	clear(s.seen[:])
	for b := range 256 {
		s.numbers[endColumn<<8|b] = noSet
		s.numbers[endValue<<8|b] = noSet
	}
	s.count = 0
	s.sets = slices.Grow(s.sets[:0], 1024)[:noSet+1]
	clear(s.sets)
}

// number gives a pair its set.
func (s *signer) number(pair uint16) uint16 {
	s.seen[pair>>6] |= 1 << (pair & 63)
	n := noSet + 1 + s.count
	switch {
	case s.count < ownSets:
		s.count++
		s.sets = append(s.sets, scratchSet{})
	default:
		n = noSet + 1 + ownSets + int(uint32(pair)*2654435761>>16)%sharedSets
		for len(s.sets) <= n {
			s.sets = append(s.sets, scratchSet{})
		}
	}
	s.numbers[pair] = uint16(n)
	return uint16(n)
}

func (s *signer) write() *signature {
	m := &s.made
	m.pairs, m.refs, m.sets, m.gaps = m.pairs[:0], m.refs[:0], m.sets[:0], m.gaps[:0]
	shared := make([]ref, sharedSets)
	for w, word := range s.seen {
		for ; word != 0; word &= word - 1 {
			pair := uint16(w<<6 + bits.TrailingZeros64(word))
			n := int(s.numbers[pair])
			m.pairs = append(m.pairs, pair)
			if n <= noSet+ownSets {
				m.refs = append(m.refs, m.add(&s.sets[n].rowset))
				continue
			}
			r := &shared[n-noSet-ownSets-1]
			if *r == 0 {
				*r = m.addSet(&s.sets[n].rowset) | refShared
			}
			m.refs = append(m.refs, *r)
		}
	}
	return &signature{
		pairs: append(make([]uint16, 0, len(m.pairs)), m.pairs...),
		refs:  append(make([]ref, 0, len(m.refs)), m.refs...),
		sets:  append(make([]rowset, 0, len(m.sets)), m.sets...),
		gaps:  append(make([]byte, 0, len(m.gaps)), m.gaps...),
	}
}

func (s *signature) add(rows *rowset) ref {
	if rows.count() > gapRows {
		return s.addSet(rows)
	}
	r := refGaps | ref(len(s.gaps))
	s.gaps = appendGaps(s.gaps, rows)
	return r
}

func (s *signature) addSet(rows *rowset) ref {
	s.sets = append(s.sets, *rows)
	return ref(len(s.sets) - 1)
}

// appendGaps writes a set of rows: for each row in rising order how much it is more
// than the one before, the first than -1, in one byte; 255 stands for 254 more and
// no row; and 0 at the end.
func appendGaps(dst []byte, rows *rowset) []byte {
	last := -1
	for w, word := range rows {
		for ; word != 0; word &= word - 1 {
			row := w<<6 + bits.TrailingZeros64(word)
			gap := row - last
			for ; gap > 254; gap -= 254 {
				dst = append(dst, 255)
			}
			dst = append(dst, byte(gap))
			last = row
		}
	}
	return append(dst, 0)
}

func readGaps(gaps []byte, rows *rowset) {
	row := -1
	for _, gap := range gaps {
		switch gap {
		case 0:
			return
		case 255:
			row += 254
		default:
			row += int(gap)
			rows.add(row & chunkMask)
		}
	}
}

// narrow keeps the rows that have all pairs of a token, and says whether all of
// those hold the token.
func (s *signature) narrow(token []byte, rows *rowset) (exact bool) {
	if len(token) == 1 {
		return s.narrowByte(token[0], rows)
	}
	exact = len(token) == 2
	for i := 1; i < len(token) && !rows.empty(); i++ {
		place, ok := slices.BinarySearch(s.pairs, uint16(token[i-1])<<8|uint16(token[i]))
		if !ok {
			*rows = rowset{}
			return true
		}
		r := s.refs[place]
		exact = exact && r&refShared == 0
		if r&refGaps == 0 {
			rows.and(&s.sets[r&refPlace])
			continue
		}
		var few rowset
		readGaps(s.gaps[r&refPlace:], &few)
		rows.and(&few)
	}
	return exact
}

// narrowByte keeps the rows that have a pair which begins with b. Every byte of a
// value begins one: the last with the value's end.
func (s *signature) narrowByte(b byte, rows *rowset) (exact bool) {
	place, _ := slices.BinarySearch(s.pairs, uint16(b)<<8)
	exact = true
	var some rowset
	for ; place < len(s.pairs) && s.pairs[place]>>8 == uint16(b); place++ {
		r := s.refs[place]
		exact = exact && r&refShared == 0
		if r&refGaps != 0 {
			readGaps(s.gaps[r&refPlace:], &some)
		} else {
			some.or(&s.sets[r&refPlace])
		}
	}
	rows.and(&some)
	return exact
}

func (s *signature) bytes() int {
	return 6*cap(s.pairs) + 8*chunkWords*cap(s.sets) + cap(s.gaps) + 96
}
