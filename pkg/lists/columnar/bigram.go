package columnar

import (
	"slices"
)

// signature says for every row of a chunk that takes no more of them which pairs
// of bytes its searched text holds within a value. A search reads the text only of
// rows that have all the pairs of a token, and of none for a token of one or two
// bytes, for which the pairs tell all.
type bigramIndex struct {
	bigrams []uint16  // those that occur, ascending; the first byte counts more
	lists   []listRef // by place in pairs
	sets    []RowSet
	deltas  []byte // of pairs that are in few rows, as appendGaps writes them
}

// ref says where the rows of a pair are.
type listRef uint32

const (
	refDeltas listRef = 1 << 31 // in gaps, from the place that the lower bits give; otherwise in sets
	refShared listRef = 1 << 30 // pairs share the set: a row of it has one of them
	refPlace          = refShared - 1
)

// gapRows is up to how many rows are written as gaps: that takes a byte for each,
// but reading them takes longer than reading a set.
const maxDeltaRows = 256

// A chunk of text in many scripts has more pairs than are worth a set each. Those
// that come late share some.
const (
	ownSets    = 2048
	sharedSets = 256
)

// signer makes signatures; it keeps its memory from one to the next.
type bigramIndexer struct {
	numbers [1 << 16]uint16 // of a pair's set, by pair; 0 for none yet
	seen    [1 << 10]uint64 // which pairs occur, a bit for each
	block   [1 << 12]uint64 // of 64 rows: those that have a pair, by number of its set
	sets    []scratchSet    // by number
	count   int             // how many own sets there are
	made    bigramIndex
}

// scratchSet is a rowset with a gap behind it: words at the same place of rowsets
// that lie side by side, 512 bytes apart, would crowd a few places of the caches.
type scratchSet struct {
	RowSet
	_ [64]byte
}

// noSet is the number of a set that nothing reads: of pairs that begin with the
// end of a value or a column.
const noSet = 1

func (s *bigramIndexer) build(t *TextRows) *bigramIndex {
	s.reset()
	rows := len(t.Starts) - 1
	previous := uint16(EndColumn)
	for first := 0; first < rows; first += 64 {
		for row := first; row < min(first+64, rows); row++ {
			previous = s.mark(t.Row(row), previous, 1<<(row&63))
		}
		// Going from set to set for every byte would take longer than all the rest.
		for n := range s.sets {
			if word := s.block[n]; word != 0 {
				s.sets[n].RowSet[first>>6] = word
				s.block[n] = 0
			}
		}
	}
	return s.write()
}

// mark sets a row's bit for each of its pairs and returns its last byte.
func (s *bigramIndexer) mark(row []byte, previous uint16, bit uint64) uint16 {
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

func (s *bigramIndexer) reset() {
	clear(s.numbers[:])
	clear(s.seen[:])
	for b := range 256 {
		s.numbers[EndColumn<<8|b] = noSet
		s.numbers[EndValue<<8|b] = noSet
	}
	s.count = 0
	s.sets = slices.Grow(s.sets[:0], 1024)[:noSet+1]
	clear(s.sets)
}

// number gives a pair its set.
func (s *bigramIndexer) number(pair uint16) uint16 {
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

func (s *bigramIndexer) write() *bigramIndex {
	m := &s.made
	m.bigrams, m.lists, m.sets, m.deltas = m.bigrams[:0], m.lists[:0], m.sets[:0], m.deltas[:0]
	shared := make([]listRef, sharedSets)
	for seen := range Bits(s.seen[:]).all() {
		pair := uint16(seen)
		n := int(s.numbers[pair])
		m.bigrams = append(m.bigrams, pair)
		if n <= noSet+ownSets {
			m.lists = append(m.lists, m.add(&s.sets[n].RowSet))
			continue
		}
		r := &shared[n-noSet-ownSets-1]
		if *r == 0 {
			*r = m.addSet(&s.sets[n].RowSet) | refShared
		}
		m.lists = append(m.lists, *r)
	}
	return &bigramIndex{
		bigrams: append(make([]uint16, 0, len(m.bigrams)), m.bigrams...),
		lists:   append(make([]listRef, 0, len(m.lists)), m.lists...),
		sets:    append(make([]RowSet, 0, len(m.sets)), m.sets...),
		deltas:  append(make([]byte, 0, len(m.deltas)), m.deltas...),
	}
}

func (s *bigramIndex) add(rows *RowSet) listRef {
	if rows.Count() > maxDeltaRows {
		return s.addSet(rows)
	}
	r := refDeltas | listRef(len(s.deltas))
	s.deltas = appendDeltas(s.deltas, rows)
	return r
}

func (s *bigramIndex) addSet(rows *RowSet) listRef {
	s.sets = append(s.sets, *rows)
	return listRef(len(s.sets) - 1)
}

// appendGaps writes a set of rows: for each row in rising order how much it is more
// than the one before, the first than -1, in one byte; 255 stands for 254 more and
// no row; and 0 at the end.
func appendDeltas(dst []byte, rows *RowSet) []byte {
	last := -1
	for row := range rows.all() {
		delta := row - last
		for ; delta > 254; delta -= 254 {
			dst = append(dst, 255)
		}
		dst = append(dst, byte(delta))
		last = row
	}
	return append(dst, 0)
}

func readDeltas(gaps []byte, rows *RowSet) {
	row := -1
	for _, gap := range gaps {
		switch gap {
		case 0:
			return
		case 255:
			row += 254
		default:
			row += int(gap)
			rows.add(row & rowMask)
		}
	}
}

// narrow keeps the rows that have all pairs of a token, and says whether all of
// those hold the token.
func (s *bigramIndex) narrow(token []byte, rows *RowSet) (exact bool) {
	if len(token) == 1 {
		return s.narrowByte(token[0], rows)
	}
	exact = len(token) == 2
	for i := 1; i < len(token) && !rows.Empty(); i++ {
		place, ok := slices.BinarySearch(s.bigrams, uint16(token[i-1])<<8|uint16(token[i]))
		if !ok {
			*rows = RowSet{}
			return true
		}
		r := s.lists[place]
		exact = exact && r&refShared == 0
		if r&refDeltas == 0 {
			rows.And(&s.sets[r&refPlace])
			continue
		}
		var few RowSet
		readDeltas(s.deltas[r&refPlace:], &few)
		rows.And(&few)
	}
	return exact
}

// narrowByte keeps the rows that have a pair which begins with b. Every byte of a
// value begins one: the last with the value's end.
func (s *bigramIndex) narrowByte(b byte, rows *RowSet) (exact bool) {
	place, _ := slices.BinarySearch(s.bigrams, uint16(b)<<8)
	exact = true
	var some RowSet
	for ; place < len(s.bigrams) && s.bigrams[place]>>8 == uint16(b); place++ {
		r := s.lists[place]
		exact = exact && r&refShared == 0
		if r&refDeltas != 0 {
			readDeltas(s.deltas[r&refPlace:], &some)
		} else {
			some.Or(&s.sets[r&refPlace])
		}
	}
	rows.And(&some)
	return exact
}

func (s *bigramIndex) bytes() int {
	return 6*cap(s.bigrams) + 8*rowWords*cap(s.sets) + cap(s.deltas) + 96
}
